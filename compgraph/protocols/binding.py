"""Split the arguments of a call into operands and options; the error message for calls that cannot be recorded."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import ops
from ..bind import bind
from ..graph import as_operands, flatten_sequences, full_name, stack_nested
from ..guards import note_layout
from ..inplace import write_out
from ..values import NO_OPTIONS, Value

PLAIN_OPTIONS = frozenset({int, bool, float, str, type(None)})


@functools.cache
def parameters_of(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters, in order."""
    return tuple(inspect.signature(function).parameters)


def pass_leading_by_position(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with leading keyword arguments passed by position."""
    options = dict(kwargs)
    for name in parameters_of(function)[len(args) :]:
        if name not in options:
            break
        args = (*args, options.pop(name))
    return args, options


@functools.cache
def _leading_operands(function: object, operand_names: tuple[str, ...]) -> tuple[int, frozenset[str]]:
    """The number of operands that lead the parameters, and the keywords that `_bind_by_name` handles: operands and ``out=``."""
    pairs = zip(parameters_of(function), operand_names, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)), frozenset({*operand_names, "out"})


def _may_hold_node(option: tuple[Any, ...] | bool | str | None) -> bool:
    """Whether an option may be, or contain, a node."""
    cls = type(option)
    return cls not in PLAIN_OPTIONS and (cls is not tuple or any(isinstance(x, Value) for x in flatten_sequences(option)))


def bind_arguments(
    function: Callable[..., Any], operand_names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Split the call ``function(*args, **kwargs)`` into operands (named in `operand_names`) and options, and record it."""
    leading, reserved = _leading_operands(function, operand_names)
    if 0 < len(args) <= leading:
        operands = args if len(args) == 1 and isinstance(args[0], Value) else as_operands(args)
        if not kwargs:
            return bind(function, operands)
        plain = PLAIN_OPTIONS.issuperset(map(type, kwargs.values())) or not any(map(_may_hold_node, kwargs.values()))
        if plain and reserved.isdisjoint(kwargs):
            return bind(function, operands, kwargs)
    return _bind_by_name(function, operand_names, args, kwargs)


def _bind_by_name(
    function: Callable[..., Any], operand_names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`bind_arguments` for every form of call that NumPy allows: operands by keyword, ``out=``, nodes among the options."""
    names = parameters_of(function)
    if len(args) > len(names):
        raise TypeError(f"{full_name(function)} takes at most {len(names)} arguments, {len(args)} were given")
    arguments = dict(zip(names, args, strict=False))
    duplicates = arguments.keys() & kwargs.keys()
    if duplicates:
        raise TypeError(f"{full_name(function)}: argument {duplicates.pop()!r} was given twice")
    arguments.update(kwargs)
    out = arguments.pop("out", None)
    options = {k: tuple(v) if type(v) is list else v for k, v in arguments.items() if v is not ops.NO_VALUE}
    leading: list[Any] = []
    for name in operand_names:
        if name != names[len(leading)] or name not in options:
            break
        leading.append(options.pop(name))
    operands = tuple(leading)
    if out is not None:
        compute = functools.partial(record_keywords, function, operand_names, operands, dict(options))
        return write_out(function, operands, options, out, compute)
    return record_keywords(function, operand_names, operands, options)


def record_keywords(function: Any, operand_names: tuple[str, ...], operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Record a call whose options may contain nodes; operands by keyword and integer or boolean nodes become operands."""
    options = {k: _stack_option(k, v) if type(v) is tuple else v for k, v in options.items()}
    keywords = tuple(sorted((k for k, v in options.items() if isinstance(v, Value)), key=lambda k: k not in operand_names))
    for name in keywords:
        if name not in operand_names and options[name].dtype.kind not in "biu":
            raise TypeError(f"{full_name(function)}: {name}= cannot be a node; pass node.value")
    if keywords:
        operands += tuple(options.pop(k) for k in keywords)
        function = ops.keyworded(function, keywords)
    return bind(function, as_operands(operands), options or NO_OPTIONS)


def _stack_option(name: str, option: tuple[int, ...]) -> Any:
    """Stack an option that is a sequence with nodes into one node; convert a node for ``where`` to booleans."""
    node = stack_nested(option)
    return np.not_equal(node, 0) if name == "where" and isinstance(node, Value) and node.dtype != bool else node


def resolve_order(node: Any, order: str) -> tuple[Any, str]:
    """Replace an order that depends on the memory layout (``"A"``, ``"K"``) by ``"C"`` or ``"F"``; transpose the node if needed.

    The memory layout of a tangent or cotangent may differ from that of its value, so the recorded order must not depend on it.
    """
    if order in ("A", "K") and isinstance(node, Value) and not node.level and node.ndim > 1:
        note_layout(node, f"the memory layout, on which order={order!r} depends,")
    if order == "A":
        return node, "F" if node.flags.fnc else "C"
    if order == "K":
        axes = sorted(range(node.ndim), key=lambda axis: -abs(node.strides[axis]))
        return (node, "C") if axes == sorted(axes) else (np.transpose(node, axes), "C")
    return node, order


def unsupported_message(name: str, instead: str) -> str:
    """The message for a call that cannot be recorded."""
    return (
        f"{name} is not supported on nodes, and a plain array would lose the graph; use {instead}, "
        "or node.value where only the numbers are meant"
    )
