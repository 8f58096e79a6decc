"""Functions that take, search, sort and select elements; sets; functions applied along axes."""

from __future__ import annotations

import numpy as np

from ..callables import added_at, getitem
from ..compositions import moving, selection
from ..spec import OpSpec, composed, piecewise, replaced, rule, writes

OPERATIONS: tuple[OpSpec, ...] = (
    # taking
    rule(getitem, kind="shape", warns="indices"),
    rule(added_at, kind="sequential"),
    rule(np.take, "a indices", method="take", moves_elements=True),
    rule(np.take_along_axis, "arr indices", moves_elements=True),
    replaced(np.compress, selection.compress, operands="a", moves_elements=True),
    replaced(np.extract, selection.extract),
    replaced(np.choose, selection.choose, lists="kept", method="choose"),
    replaced(np.select, selection.select, lists="kept"),
    replaced(np.piecewise, selection.piecewise, lists="kept", is_higher_order=True),
    # inserting and deleting
    rule(selection.delete, "arr obj", kind="sequential", shape_depends_on="integers"),
    replaced(np.delete, selection.delete_at),
    rule(selection.insert, "arr obj values", kind="sequential", shape_depends_on="integers"),
    replaced(np.insert, selection.insert_at),
    replaced(np.trim_zeros, selection.trim_zeros),
    # sorting and searching
    rule(np.sort, "a", kind="ordering", warns="never"),
    piecewise(np.argsort, "a", kind="ordering", warns="never", method="argsort"),
    piecewise(np.lexsort, "keys", kind="sequential"),
    rule(np.partition, "a", kind="ordering"),
    piecewise(np.argpartition, "a", kind="ordering", method="argpartition"),
    replaced(np.sort_complex, selection.sort_complex),
    piecewise(np.searchsorted, "a v sorter", warns="never", method="searchsorted"),
    piecewise(np.digitize, "x bins"),
    piecewise(np.nonzero, "a", kind="sequential", warns="never", method="nonzero", shape_depends_on="values"),
    piecewise(np.flatnonzero, "a", kind="sequential", warns="never", shape_depends_on="values"),
    piecewise(np.argwhere, "a", kind="sequential", shape_depends_on="values"),
    piecewise(np.isin, "element test_elements"),
    # sets
    piecewise(selection.unique, "ar", kind="sequential", shape_depends_on="values"),
    replaced(np.unique, selection.unique_values),
    composed(np.unique_all),
    composed(np.unique_counts),
    composed(np.unique_inverse),
    composed(np.unique_values),
    composed(np.union1d),
    replaced(np.setdiff1d, selection.setdiff1d),
    replaced(np.setxor1d, selection.setxor1d),
    replaced(np.intersect1d, selection.intersect1d),
    # applying functions
    replaced(np.apply_along_axis, moving.apply_along_axis, is_higher_order=True),
    replaced(np.apply_over_axes, moving.apply_over_axes, is_higher_order=True),
    # indices and bits
    piecewise(np.unravel_index, "indices", kind="sequential"),
    piecewise(np.packbits, "a", kind="sequential"),
    piecewise(np.unpackbits, "a", kind="sequential"),
    # writing
    writes(np.copyto),
    writes(np.put),
    writes(np.place),
    writes(np.putmask),
    writes(np.put_along_axis),
    writes(np.fill_diagonal),
)
