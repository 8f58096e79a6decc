"""Functions for which NumPy does not dispatch to nodes.

Some take no arrays. Others convert a node to a plain array and lose its graph; compgraph has its own versions of these
(`cg.array`, `cg.full` ...), to which NumPy's names are bound while a function is traced (see `compgraph.interception`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
