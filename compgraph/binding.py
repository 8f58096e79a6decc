"""How the arguments of a call become operands and options, and how a call is refused."""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import Any

import numpy as np

from . import operations as ops
from .modes import is_recording
from .nodes import ACTIVE, INERT, NO_OPTIONS, Node, VariableNode, describe, record

ndarray = np.ndarray
# Not complex: where it meets a float64 scalar, Python divides, and raises where NumPy gives infinity.
RAW: frozenset[Any] = frozenset({float, int, bool, ndarray, np.float64, np.float32, np.int64})
FAMILIAR = RAW | ACTIVE | INERT | {type(None), complex, np.bool_}
PLAIN_OPTIONS = frozenset({int, bool, float, str, type(None)})


# ------------------------------------------------------------------------------------------- operands


def as_operand(value: Any) -> Any:
    """An operand as the graph keeps it: a sequence as an array, with the history of every node in it."""
    if value is None or isinstance(value, (Node, int, float, complex)):
        return value
    value = gathered(value)
    if isinstance(value, Node):
        return value
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"a {type(value).__name__} has operators of its own, which a node cannot follow; pass np.asarray(value)")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a node computes with numbers, not with a {type(value).__name__} of dtype {array.dtype}; convert it to a "
            "floating dtype, or compute with node.value"
        )
    return value if isinstance(value, np.generic) else array


def as_operands(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each of several operands as the graph keeps it."""
    for value in values:
        if value.__class__ not in FAMILIAR:
            return tuple(map(as_operand, values))
    return values


def gathered(value: Any) -> Any:
    """A sequence with nodes in it as one array, which NumPy's own code would make without their history."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Node) for v in leaves_of(value)):
        return np.stack([as_operand(v) for v in value])
    return value


def leaves_of(value: Any) -> tuple[Any, ...]:
    """What stands in lists and tuples, however deep."""
    if isinstance(value, (list, tuple)):
        return tuple([leaf for part in value for leaf in leaves_of(part)])
    return (value,)


def to_plain(value: Any) -> Any:
    """`value` with every node in it, also inside tuples, lists and dicts, as a plain array."""
    if isinstance(value, Node):
        return value.plain
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(to_plain, value))
    if isinstance(value, dict):
        return {k: to_plain(v) for k, v in value.items()}
    return value


def is_foreign(operand: Any, protocol: str) -> bool:
    """Whether an operand has a protocol of its own, so that NumPy should ask it."""
    theirs = getattr(type(operand), protocol, None)
    if isinstance(operand, Node) or theirs is None:
        return False
    return theirs is not getattr(ndarray, protocol)


# ------------------------------------------------------------------------------------------- binding


@functools.cache
def parameters_of(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters, in order."""
    return tuple(inspect.signature(function).parameters)


@functools.cache
def _layout(function: Any, operand_names: tuple[str, ...]) -> tuple[int, frozenset[str]]:
    """How many operands come first, and the keywords that need a closer look."""
    pairs = zip(parameters_of(function), operand_names, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)), frozenset({*operand_names, "out"})


def _is_special(option: Any) -> bool:
    """Whether an option is, or may hold, a node."""
    kind = option.__class__
    return kind not in PLAIN_OPTIONS and (kind is not tuple or any(isinstance(x, Node) for x in leaves_of(option)))


def bind(function: Any, operand_names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Split a call into operands and options, and record it."""
    leading, reserved = _layout(function, operand_names)
    if 0 < len(args) <= leading:
        operands = args if len(args) == 1 and isinstance(args[0], Node) else as_operands(args)
        if not kwargs:
            return record(function, operands)
        if reserved.isdisjoint(kwargs) and not any(map(_is_special, kwargs.values())):
            return record(function, operands, kwargs)
    return _bind_by_name(function, operand_names, args, kwargs)


def _bind_by_name(function: Any, operand_names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Bind a call in any form NumPy allows."""
    names = parameters_of(function)
    if len(args) > len(names):
        raise TypeError(f"{full_name(function)} takes at most {len(names)} arguments, {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    doubled = given.keys() & kwargs.keys()
    if doubled:
        raise TypeError(f"{full_name(function)}: argument {doubled.pop()!r} was given twice")
    given.update(kwargs)
    out = given.pop("out", None)
    options = {k: tuple(v) if v.__class__ is list else v for k, v in given.items() if v is not np._NoValue}
    leading: list[Any] = []
    for name in operand_names:
        if name != names[len(leading)] or name not in options:
            break
        leading.append(options.pop(name))
    if out is not None:
        return write_out(function, tuple(leading), options, out)
    return record_keywords(function, operand_names, tuple(leading), options)


def record_keywords(function: Any, operand_names: tuple[str, ...], operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Record a call; operands given as keywords are kept as operands, and so are nodes that count or decide."""
    options = {k: gathered(v) if v.__class__ is tuple else v for k, v in options.items()}
    keywords = tuple(sorted((k for k, v in options.items() if isinstance(v, Node)), key=lambda k: k not in operand_names))
    for name in keywords:
        if name not in operand_names and options[name].dtype.kind not in "biu":
            raise TypeError(f"{full_name(function)}: {name}= cannot be a node; give node.value")
    if keywords:
        operands += tuple(options.pop(k) for k in keywords)
        function = ops.keyworded(function, keywords)
    return record(function, as_operands(operands), options or NO_OPTIONS)


def settled_order(node: Any, order: str) -> tuple[Any, str]:
    """The orders that follow the memory, ``"A"`` and ``"K"``, as ``"C"`` or ``"F"``, and the node to read so.

    A tangent or an adjoint may lie otherwise in memory than the value, so what is recorded must not depend on it.
    """
    if order == "A":
        return node, "F" if node.flags.fnc else "C"
    if order == "K":
        axes = sorted(range(node.ndim), key=lambda axis: -abs(node.strides[axis]))
        return (node, "C") if axes == sorted(axes) else (np.transpose(node, axes), "C")
    return node, order


# ------------------------------------------------------------------------------------------- refusals


def refusal_to_write(node: Node, what: str, instead: str) -> TypeError:
    """What to raise where a node would be written into."""
    return TypeError(f"{what} would write into the {describe(node)}, which the graph needs as it is; use {instead}")


def full_name(function: Any) -> str:
    """The name of a NumPy function as users write it."""
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)


def unsupported(name: str, instead: str) -> str:
    """What to say of a call that cannot be recorded."""
    return (
        f"{name} is not supported on nodes, and a plain array would lose the graph; use {instead}, "
        "or node.value where only the numbers are meant"
    )


def write_out(function: Any, args: tuple[Any, ...], options: dict[str, Any], out: Any) -> Any:
    """``out=``: a variable is updated; a plain array would lose the graph, another node would change."""
    targets = out if isinstance(out, tuple) else (out,)
    name = ops.OPNAMES.get(function, getattr(function, "__name__", str(function)))
    if len(targets) == 1 and isinstance(targets[0], VariableNode):
        values, plain = to_plain(args), to_plain(options)
        sources = leaves_of((args, tuple(options.values())))
        return targets[0].update(lambda array: function(*values, out=array, **plain), sources)
    for target in targets:
        if isinstance(target, Node):
            raise refusal_to_write(target, f"{name}(..., out=a)", f"a = {name}(...)")
    if not is_recording():
        return function(*to_plain(args), out=out, **to_plain(options))
    raise TypeError(f"{name}(..., out=plain array) would lose the graph of its result; use result = {name}(...)")
