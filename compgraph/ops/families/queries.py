"""Functions that are not recorded: plain results, functions of dates, and functions for which NumPy does not dispatch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..spec import OpSpec, plain, unsupported

OPERATIONS: tuple[OpSpec, ...] = (
    # shapes and dtypes
    plain(np.shape, reads="shapes", is_guarded=True),
    plain(np.ndim, reads="types"),
    plain(np.size, reads="shapes", is_guarded=True),
    plain(np.result_type, reads="types"),
    plain(np.can_cast, reads="types"),
    plain(np.common_type, reads="types"),
    plain(np.min_scalar_type),
    plain(np.iscomplexobj, reads="types"),
    plain(np.isrealobj, reads="types"),
    # comparisons of whole arrays
    plain(np.allclose, is_guarded=True),
    plain(np.array_equal, is_guarded=True),
    plain(np.array_equiv, is_guarded=True),
    plain(np.may_share_memory, reads="memory"),
    plain(np.shares_memory, reads="memory"),
    # indices
    plain(np.ix_),
    plain(np.diag_indices_from, reads="shapes", returns_indices=True),
    plain(np.tril_indices_from, reads="shapes", returns_indices=True),
    plain(np.triu_indices_from, reads="shapes", returns_indices=True),
    plain(np.ravel_multi_index),
    # text and files
    plain(np.array2string, external="print options"),
    plain(np.array_repr, external="print options"),
    plain(np.array_str, external="print options"),
    plain(np.save, external="files"),
    plain(np.savetxt, external="files"),
    plain(np.savez, external="files"),
    plain(np.savez_compressed, external="files"),
    plain(np.einsum_path, reads="shapes"),
    # dates
    unsupported(np.is_busday, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.busday_count, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.busday_offset, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.datetime_as_string, "plain arrays of dates, which nodes cannot hold"),
)

# Functions for which NumPy does not dispatch to nodes. Some take no arrays. Others convert a node to a plain array and lose its
# graph; compgraph has its own versions of these (`cg.array`, `cg.full` ...), to which NumPy's names are bound while a function is
# traced (see `compgraph.interception`).
UNDISPATCHED: frozenset[Any] = frozenset(
    {
        np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite, np.asmatrix,
        np.bmat, np.require, np.full, np.kaiser, np.isfortran, np.fromiter,
        np.arange, np.empty, np.zeros, np.ones, np.eye, np.identity, np.indices, np.tri, np.mask_indices, np.diag_indices,
        np.tril_indices, np.triu_indices, np.bartlett, np.blackman, np.hamming, np.hanning,
        np.fromfunction, np.frompyfunc, np.nested_iters,
        np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.frombuffer, np.fromregex, np.fromstring, np.from_dlpack,
        np.isscalar, np.iterable, np.issubdtype, np.isdtype, np.promote_types, np.mintypecode, np.typename,
        np.datetime_data, np.broadcast_shapes, np.base_repr, np.binary_repr,
        np.format_float_positional, np.format_float_scientific, np.info, np.get_include, np.test,
        np.show_config, np.show_runtime, np.printoptions, np.get_printoptions, np.set_printoptions,
        np.geterr, np.seterr, np.geterrcall, np.seterrcall, np.getbufsize, np.setbufsize,
    }
)  # fmt: skip
