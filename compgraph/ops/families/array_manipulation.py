"""Functions that reshape, move, join, split and pad; that take, search, sort and select elements; sets; maps along axes."""

from __future__ import annotations

import numpy as np

from ..callables import flatten, getitem, scatter_add, view
from ..compositions import array_manipulation
from ..spec import OpSpec, composed, packed, piecewise, replaced, rule, writes

OPERATIONS: tuple[OpSpec, ...] = (
    # shape
    rule(np.reshape, "a", is_view=True, kind="shape"),
    rule(np.ravel, "a", method="ravel", is_view=True, kind="shape"),
    rule(flatten, kind="shape"),
    rule(np.transpose, "a", kind="shape"),
    rule(np.squeeze, "a", method="squeeze", kind="shape"),
    rule(np.expand_dims, "a", kind="shape"),
    rule(np.swapaxes, "a", method="swapaxes", kind="shape"),
    rule(np.moveaxis, "a", kind="shape"),
    composed(np.rollaxis),
    composed(np.matrix_transpose),
    composed(np.linalg.matrix_transpose),
    rule(np.broadcast_to, "array", kind="shape", scalar_result="array"),
    composed(np.broadcast_arrays),
    composed(np.atleast_1d),
    composed(np.atleast_2d),
    composed(np.atleast_3d),
    rule(view),
    rule(np.lib.stride_tricks.sliding_window_view, "x"),
    # moving elements
    rule(np.roll, "a", kind="shape", returns_buffer=True),
    composed(np.flip, returns_buffer=True),
    composed(np.fliplr),
    composed(np.flipud),
    composed(np.rot90),
    composed(np.resize),
    # joining and splitting
    packed(np.concatenate, warns="never", moves_elements=True, returns_buffer=True),
    packed(np.stack, warns="never", moves_elements=True, returns_buffer=True),
    composed(np.vstack, lists="sequence", returns_buffer=True),
    composed(np.hstack, lists="sequence", returns_buffer=True),
    composed(np.dstack, lists="sequence", returns_buffer=True),
    composed(np.column_stack, lists="sequence", returns_buffer=True),
    composed(np.append),
    replaced(np.block, array_manipulation.block, lists="unchanged", returns_buffer=True),
    composed(np.unstack, lists="unchanged"),
    composed(np.split),
    composed(np.array_split),
    composed(np.hsplit),
    composed(np.vsplit),
    composed(np.dsplit),
    # repeating and padding
    rule(np.tile, "A", warns="never", moves_elements=True, returns_buffer=True),
    rule(np.repeat, "a repeats", method="repeat", moves_elements=True, shape_depends_on="integers", returns_buffer=True),
    rule(array_manipulation.pad, "array"),
    replaced(np.pad, array_manipulation.pad_with_nodes, returns_buffer=True),
    replaced(np.meshgrid, array_manipulation.meshgrid, returns_buffer=True),
    # arrays like others
    piecewise(np.zeros_like, "a", warns="never", fill=0, scalar_result="array", returns_buffer=True),
    piecewise(np.ones_like, "a", warns="never", fill=1, scalar_result="array", returns_buffer=True),
    piecewise(np.empty_like, "prototype", fill="any", scalar_result="array", returns_buffer=True),
    rule(np.full_like, "a fill_value", warns="never", scalar_result="array", returns_buffer=True),
    rule(np.linspace, "start stop", returns_buffer=True),
    composed(np.logspace, returns_buffer=True),
    rule(np.geomspace, "start stop", returns_buffer=True),
    replaced(np.vander, array_manipulation.vander, returns_buffer=True),
    # diagonals and triangles
    rule(np.diagonal, "a", warns="never", method="diagonal", moves_elements=True),
    composed(np.linalg.diagonal),
    rule(np.diag, "v", warns="never", returns_buffer=True),
    rule(np.diagflat, "v", returns_buffer=True),
    composed(np.tril, returns_buffer=True),
    composed(np.triu, returns_buffer=True),
    # taking
    rule(getitem, kind="shape", warns="indices"),
    rule(scatter_add, kind="sequential"),
    rule(np.take, "a indices", method="take", moves_elements=True),
    rule(np.take_along_axis, "arr indices", moves_elements=True),
    replaced(np.compress, array_manipulation.compress, operands="a", moves_elements=True),
    replaced(np.extract, array_manipulation.extract),
    replaced(np.choose, array_manipulation.choose, lists="unchanged", method="choose"),
    replaced(np.select, array_manipulation.select, lists="unchanged"),
    replaced(np.piecewise, array_manipulation.piecewise, lists="unchanged", is_higher_order=True),
    # inserting and deleting
    rule(array_manipulation.delete, "arr obj", kind="sequential", shape_depends_on="integers"),
    replaced(np.delete, array_manipulation.delete_at),
    rule(array_manipulation.insert, "arr obj values", kind="sequential", shape_depends_on="integers"),
    replaced(np.insert, array_manipulation.insert_at),
    replaced(np.trim_zeros, array_manipulation.trim_zeros),
    # sorting and searching
    rule(np.sort, "a", kind="ordering", warns="never"),
    piecewise(np.argsort, "a", kind="ordering", warns="never", method="argsort"),
    piecewise(np.lexsort, "keys", kind="sequential"),
    rule(np.partition, "a", kind="ordering"),
    piecewise(np.argpartition, "a", kind="ordering", method="argpartition"),
    replaced(np.sort_complex, array_manipulation.sort_complex),
    piecewise(np.searchsorted, "a v sorter", warns="never", method="searchsorted"),
    piecewise(np.digitize, "x bins"),
    piecewise(np.nonzero, "a", kind="sequential", warns="never", method="nonzero", shape_depends_on="values"),
    piecewise(np.flatnonzero, "a", kind="sequential", warns="never", shape_depends_on="values"),
    piecewise(np.argwhere, "a", kind="sequential", shape_depends_on="values"),
    piecewise(np.isin, "element test_elements"),
    # sets
    piecewise(array_manipulation.unique, "ar", kind="sequential", shape_depends_on="values"),
    replaced(np.unique, array_manipulation.unique_values),
    composed(np.unique_all),
    composed(np.unique_counts),
    composed(np.unique_inverse),
    composed(np.unique_values),
    composed(np.union1d),
    replaced(np.setdiff1d, array_manipulation.setdiff1d),
    replaced(np.setxor1d, array_manipulation.setxor1d),
    replaced(np.intersect1d, array_manipulation.intersect1d),
    # applying functions
    replaced(np.apply_along_axis, array_manipulation.apply_along_axis, is_higher_order=True),
    replaced(np.apply_over_axes, array_manipulation.apply_over_axes, is_higher_order=True),
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
