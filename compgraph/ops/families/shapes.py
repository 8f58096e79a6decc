"""Functions that reshape, move, join, split, repeat and pad."""

from __future__ import annotations

import numpy as np

from ..callables import flatten, view
from ..compositions import moving
from ..spec import OpSpec, composed, packed, piecewise, replaced, rule

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
    replaced(np.block, moving.block, lists="kept", returns_buffer=True),
    composed(np.unstack, lists="kept"),
    composed(np.split),
    composed(np.array_split),
    composed(np.hsplit),
    composed(np.vsplit),
    composed(np.dsplit),
    # repeating and padding
    rule(np.tile, "A", warns="never", moves_elements=True, returns_buffer=True),
    rule(np.repeat, "a repeats", method="repeat", moves_elements=True, shape_depends_on="integers", returns_buffer=True),
    rule(moving.pad, "array"),
    replaced(np.pad, moving.pad_with_nodes, returns_buffer=True),
    replaced(np.meshgrid, moving.meshgrid, returns_buffer=True),
    # arrays like others
    piecewise(np.zeros_like, "a", warns="never", fill=0, scalar_result="array", returns_buffer=True),
    piecewise(np.ones_like, "a", warns="never", fill=1, scalar_result="array", returns_buffer=True),
    piecewise(np.empty_like, "prototype", fill="any", scalar_result="array", returns_buffer=True),
    rule(np.full_like, "a fill_value", warns="never", scalar_result="array", returns_buffer=True),
    rule(np.linspace, "start stop", returns_buffer=True),
    composed(np.logspace, returns_buffer=True),
    rule(np.geomspace, "start stop", returns_buffer=True),
    replaced(np.vander, moving.vander, returns_buffer=True),
    # diagonals and triangles
    rule(np.diagonal, "a", warns="never", method="diagonal", moves_elements=True),
    composed(np.linalg.diagonal),
    rule(np.diag, "v", warns="never", returns_buffer=True),
    rule(np.diagflat, "v", returns_buffer=True),
    composed(np.tril, returns_buffer=True),
    composed(np.triu, returns_buffer=True),
)
