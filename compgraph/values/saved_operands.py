"""Plain operands of recorded operations, protected from later writes by the caller.

Arrays up to `LARGE_BYTES` bytes are copied. Larger ones are kept by reference with a fingerprint, which is compared when a
derivative is computed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..context import is_deriving
from ..storage import Write
from .node import ConstantNode, Value, new_view
from .traced_values import TRACEABLE, unwrap_buffer

ndarray = np.ndarray
LARGE_BYTES = 1 << 20  # bytes
_SHARED_COPY_BYTES = 1 << 15  # bytes; copies of larger arrays are shared between operations
_VALUE_FREE_RULES = frozenset(f for f, sign in ops.INFIX.items() if sign in ("+", "-"))  # derivatives need no operand values
# Of fingerprints: odd, and thus invertible modulo 2**64, so that a change of a single word changes the sum.
_FACTORS = np.random.default_rng(0).integers(1 << 62, size=1 << 13, dtype=np.int64) | 1

# By the id of an array: weak references to it and to its latest copy. By the id of a view of a large array: the view and its
# fingerprint.
_copies: dict[int, tuple[weakref.ref[Any], weakref.ref[Any]]] = {}
_views: dict[int, tuple[weakref.ref[Any], int]] = {}


def save_operand(array: Any) -> Any:
    """Return a plain array as the operand of an operation that is being recorded.

    Parameters
    ----------
    array : ndarray
        An array of the caller, who may change it later.

    Returns
    -------
    ndarray
        A copy; of a large array, a view with a fingerprint, which `require_unchanged` checks.
    """
    size = array.nbytes
    if size <= _SHARED_COPY_BYTES and type(array) is ndarray:
        return array.copy("K")
    if type(array) in TRACEABLE:
        return current_copy(array)
    if is_deriving():  # arrays made by rules are never written into
        return array
    if size > LARGE_BYTES:
        return fingerprinted_view(array)
    return _shared_copy(array)


def current_copy(array: Any) -> Any:
    """The present values of a buffer or borrowed array as a plain array that is never changed: an operand of the graph.

    It is a copy, shared by all operations until the values change. A caller's large array is not copied; see `save_operand`.
    """
    plain, operand = unwrap_buffer(array), getattr(array, "_operands", None)
    if array.is_borrowed and plain.nbytes > LARGE_BYTES:
        if operand is None:
            operand = array._operands = fingerprinted_view(plain)
        return operand
    if operand is None or not has_same_bits(operand, plain):
        operand = array._operands = plain.copy("K")
    return operand


def is_plain_array(value: object) -> bool:
    """Whether a value is an array but not a node."""
    return isinstance(value, ndarray) and not isinstance(value, Value)


def constant_operand(value: NDArray[Any]) -> ConstantNode:
    """A plain number or array of the caller as a constant node with its present value."""
    return ConstantNode.wrap(save_operand(value) if is_plain_array(value) else value)


def save_operands(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The operands and keyword arguments of an operation, with `save_operand` applied to plain arrays."""
    args = tuple([save_operand(a) if is_plain_array(a) else a for a in args])
    if any(map(is_plain_array, options.values())):
        options = {name: save_operand(value) if is_plain_array(value) else value for name, value in options.items()}
    return args, options


def as_plain_views(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands with ``np.ndarray`` views in place of plain arrays."""
    return tuple([new_view(unwrap_buffer(a), ndarray) if is_plain_array(a) else a for a in args])


def _shared_copy(array: NDArray[Any]) -> Any:
    entry = _copies.get(id(array))
    if entry is not None and entry[0]() is array:
        copy = entry[1]()
        if copy is not None and has_same_bits(copy, array):
            return copy
    key, copy = id(array), array.copy("K")

    def remove_entry(reference: object) -> None:
        if _copies.get(key, (None, None))[1] is reference:
            del _copies[key]

    _copies[key] = weakref.ref(array), weakref.ref(copy, remove_entry)
    return copy


def fingerprinted_view(array: NDArray[Any]) -> Any:
    """A view of a large array with a fingerprint, which `require_unchanged` checks."""
    view = array.view()
    key = id(view)
    reference = weakref.ref(view, lambda reference: _views.pop(key, None))
    _views[key] = reference, fingerprint(view)
    return view


def freeze_operand(operand: Any) -> Any:
    """Return an operand or index that is never changed; arrays kept by reference are copied."""
    if type(operand) is tuple:
        return tuple(map(freeze_operand, operand))
    return _shared_copy(operand) if id(operand) in _views else operand


def require_unchanged(nodes: Iterable[Any], for_values: bool = False) -> None:
    """Raise if a large plain operand has changed since its operation was recorded.

    Parameters
    ----------
    nodes : iterable of Node, MultiOutput or Write
        The operations to differentiate or to run again.
    for_values : bool
        Whether they are run again; then the operands of sums are checked as well.

    Raises
    ------
    ValueError
        The message names the operation and its line.
    """
    if not _views:
        return
    checked_ids = set()
    for node in nodes:
        if isinstance(node, Write):  # it has copied its value
            continue
        args, options = node.args, node.options
        if len(args) == len(node.parent_argnums) and not options:
            continue
        for operand in args if not options else (*args, *options.values()):
            if id(operand) in _views:
                saved_arrays = (operand,)
            elif type(operand) is tuple:  # an index
                saved_arrays = tuple([part for part in operand if id(part) in _views])
            else:
                continue
            if node.function not in _VALUE_FREE_RULES or for_values:
                for array in saved_arrays:
                    if id(array) not in checked_ids:
                        checked_ids.add(id(array))
                        _require_same_bits(array, node)


def _require_same_bits(array: Any, node: Any) -> None:
    """Raise if an array kept by reference has changed since a node was computed from it."""
    if _views[id(array)][1] != fingerprint(array):
        line = f" ({node.line})" if getattr(node, "line", None) else ""
        raise ValueError(
            f"a plain array (shape {array.shape}, {array.dtype}), an operand of {node.opname}{line}, was written into later, so "
            "the derivative is unknown. Pass a copy to the operation (np.copy(a)), or write into a new array"
        )


def has_same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two plain arrays have equal shape, dtype and bits; of large ones only 8-byte elements are compared by bits."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.nbytes <= _SHARED_COPY_BYTES:
        return bool(one.tobytes() == other.tobytes())
    if one.itemsize == 8:
        return bool((one.view(np.int64) == other.view(np.int64)).all())
    return bool(np.array_equal(one, other))


def fingerprint(array: NDArray[Any]) -> int:
    """A hash of an array's bits: sums modulo 2**64 of its words, each with a factor for its position."""
    array = array[tuple([slice(None) if step else slice(1) for step in array.strides])]  # without broadcast axes
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return _fingerprint(array.ravel("K"))
    parts = np.nditer(array, flags=["external_loop", "buffered", "zerosize_ok"], order="K", buffersize=1 << 16)
    return hash(tuple([_fingerprint(np.ascontiguousarray(part)) for part in parts]))


def _fingerprint(array: NDArray[Any]) -> int:
    """The `fingerprint` of a contiguous array of one axis."""
    octets = array.view(np.uint8)
    block_bytes = octets.size // _FACTORS.nbytes * _FACTORS.nbytes
    blocks = octets[:block_bytes].view(np.int64).reshape(-1, _FACTORS.size)
    return hash((np.einsum("ij,j->i", blocks, _FACTORS).tobytes(), octets[block_bytes:].tobytes()))
