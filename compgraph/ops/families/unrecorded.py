"""Functions that are not recorded: with plain results, of dates, or not dispatched by NumPy (constructors, files, settings)."""

from __future__ import annotations

import numpy as np

from ..spec import OpSpec, plain, undispatched, unsupported

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

# Functions that NumPy does not dispatch to nodes. Some take no arrays. Others convert a node to a plain array and lose its graph;
# compgraph has its own versions of these (`cg.array`, `cg.full` ...), to which NumPy's names are bound while a function is traced
# (see `compgraph.interception`).
UNDISPATCHED: tuple[OpSpec, ...] = (
    # conversions
    undispatched(np.array, converts="lists", returns_buffer=True),
    undispatched(np.asarray, converts="lists", returns_buffer=True),
    undispatched(np.asanyarray, converts="lists", keeps_subclasses=True, returns_buffer=True),
    undispatched(np.ascontiguousarray, converts="lists", returns_buffer=True),
    undispatched(np.asfortranarray, converts="lists", returns_buffer=True),
    undispatched(np.asarray_chkfinite, converts="lists", returns_buffer=True),
    undispatched(np.require, converts="lists", keeps_subclasses=True, returns_buffer=True),
    undispatched(np.fromiter, converts="lists"),
    undispatched(np.full, converts="elements", returns_buffer=True),
    undispatched(np.arange, converts="elements", returns_buffer=True),
    undispatched(np.asmatrix, external="other objects"),
    undispatched(np.bmat),
    # new arrays
    *[undispatched(f, returns_buffer=True) for f in (np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri, np.indices)],
    *[undispatched(f, returns_buffer=True) for f in (np.kaiser, np.bartlett, np.blackman, np.hamming, np.hanning)],
    undispatched(np.fromfunction, returns_buffer=True),
    undispatched(np.mask_indices),
    undispatched(np.diag_indices),
    undispatched(np.tril_indices),
    undispatched(np.triu_indices),
    undispatched(np.frombuffer),
    undispatched(np.fromstring, external="other objects", returns_buffer=True),
    # files and other objects
    *[undispatched(f, external="files", returns_buffer=True) for f in (np.load, np.loadtxt, np.genfromtxt, np.fromfile)],
    undispatched(np.fromregex, external="files"),
    undispatched(np.from_dlpack, external="other objects"),
    undispatched(np.frompyfunc, external="other objects"),
    undispatched(np.nested_iters, external="other objects"),
    # shapes and dtypes
    *[undispatched(f) for f in (np.isfortran, np.isscalar, np.iterable, np.issubdtype, np.isdtype, np.promote_types)],
    *[undispatched(f) for f in (np.mintypecode, np.typename, np.broadcast_shapes)],
    # texts and settings
    *[undispatched(f, external="print options") for f in (np.base_repr, np.binary_repr, np.datetime_data)],
    *[undispatched(f, external="print options") for f in (np.format_float_positional, np.format_float_scientific)],
    *[undispatched(f, external="print options") for f in (np.printoptions, np.get_printoptions, np.set_printoptions)],
    *[undispatched(f, external="settings") for f in (np.geterr, np.seterr, np.geterrcall, np.seterrcall)],
    *[undispatched(f, external="settings") for f in (np.getbufsize, np.setbufsize)],
    *[undispatched(f, external="settings") for f in (np.info, np.get_include, np.test, np.show_config, np.show_runtime)],
)
