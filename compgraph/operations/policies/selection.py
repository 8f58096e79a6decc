"""Taking, sorting, moving, padding and joining elements."""

from __future__ import annotations

import numpy as np

from ..compositions import moving, pieces, selection
from .policy import Policy

POLICY = Policy(
    smooth={
        np.take: "a indices",
        np.take_along_axis: "arr indices",
        np.sort: "a",
        np.partition: "a",
        np.roll: "a",
        np.repeat: "a repeats",
        np.tile: "A",
        np.diagonal: "a",
        np.diag: "v",
        np.diagflat: "v",
        np.trace: "a",
        selection.delete: "arr obj",
        selection.insert: "arr obj values",
        np.full_like: "a fill_value",
        moving.nan_to_num: "x",
        np.lib.stride_tricks.sliding_window_view: "x",
        moving.pad: "array",
    },
    piecewise={
        np.argpartition: "a",
        np.lexsort: "keys",
        selection.unique: "ar",
        np.argwhere: "a",
        np.isin: "element test_elements",
        np.unravel_index: "indices",
        np.packbits: "a",
        np.unpackbits: "a",
        np.nanargmax: "a",
        np.nanargmin: "a",
    },
    composed=frozenset(
        {
            np.flip, np.fliplr, np.flipud, np.rot90, np.tril, np.triu, np.resize,
            np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.union1d, np.astype, np.real_if_close,
        }
    ),
    plain=frozenset(
        {np.ix_, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from, np.ravel_multi_index}
    ),
    instead={
        np.piecewise: pieces.piecewise,
        np.compress: selection.compress,
        np.extract: selection.extract,
        np.choose: selection.choose,
        np.select: selection.select,
        np.insert: selection.insert_at,
        np.delete: selection.delete_at,
        np.sort_complex: selection.sort_complex,
        np.unique: selection.unique_values,
        np.setdiff1d: selection.setdiff1d,
        np.setxor1d: selection.setxor1d,
        np.intersect1d: selection.intersect1d,
        np.meshgrid: moving.meshgrid,
        np.apply_along_axis: moving.apply_along_axis,
        np.apply_over_axes: moving.apply_over_axes,
        np.nan_to_num: moving.finite,
        np.pad: moving.pad_ends,
        np.trim_zeros: selection.trim_zeros,
        np.vander: moving.vander,
        np.block: moving.block,
    },
    methods={
        "take": np.take,
        "repeat": np.repeat,
        "diagonal": np.diagonal,
        "trace": np.trace,
        "choose": np.choose,
        "compress": selection.compress_method,
        "argpartition": np.argpartition,
    },
)  # fmt: skip
