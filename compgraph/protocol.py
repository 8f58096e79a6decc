"""NumPy's protocols: which call becomes which record.

Importing this module installs the operators, ``__array_ufunc__``, ``__array_function__`` and the array methods
on `Node`. Everything ends in `nodes.record`; for the commonest calls, one or two operands and no options, the
same steps are written out so that an operation costs little.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from . import operations as ops
from .modes import is_recording
from .nodes import (
    ACTIVE,
    INERT,
    NO_OPTIONS,
    Node,
    VariableNode,
    describe,
    operation,
    record,
)

ndarray = np.ndarray
RAW = frozenset({float, int, bool, complex, ndarray, np.float64, np.float32, np.int64})
FAMILIAR = RAW | ACTIVE | INERT | {type(None), np.bool_}
LEFT, RIGHT, BOTH = (0,), (1,), (0, 1)


# ------------------------------------------------------------------------------------------- operators


def _binary(name: str, function: Any, compute: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The operator and the reflected operator of a binary function."""
    by_numpy = getattr(ndarray, f"__{name}__")
    reflected_by_numpy = getattr(ndarray, f"__r{name}__")
    quick = (function in ops.SMOOTH_UFUNCS and function.nout == 1) or function is ops.power

    def forward(self: Node, other: Any) -> Any:
        if quick and self.__class__ in ACTIVE and is_recording():
            kind = other.__class__
            if kind in RAW:
                return operation(compute(self.plain, other), function, (self, other), LEFT)
            if kind in ACTIVE:
                return operation(compute(self.plain, other.plain), function, (self, other), BOTH)
        if isinstance(other, Node) or other.__class__ in RAW:
            return record(function, (self, other))
        return by_numpy(self, other)

    def reflected(self: Node, other: Any) -> Any:
        if other.__class__ in RAW:
            if quick and self.__class__ in ACTIVE and is_recording():
                return operation(compute(other, self.plain), function, (other, self), RIGHT)
            return record(function, (other, self))
        return reflected_by_numpy(self, other)

    return forward, reflected


def _comparison(name: str, ufunc: np.ufunc) -> Any:
    by_numpy = getattr(ndarray, f"__{name}__")

    def compare(self: Node, other: Any) -> Any:
        if isinstance(other, Node) or other.__class__ in RAW:
            return record(ufunc, (self, other))
        if isinstance(other, (str, bytes)):
            return by_numpy(self.value, other)  # never equal, whatever the numbers: no part of the graph
        if isinstance(other, (list, tuple)) or hasattr(other, "__array_ufunc__") or hasattr(other, "__array_priority__"):
            return by_numpy(self, other)
        return record(ufunc, (self, other))

    return compare


def _in_place(name: str, forward: Any) -> Any:
    """``a += b``: a variable is updated, a scalar rebinds, anything else refuses."""
    symbol = {"truediv": "/", "floordiv": "//", "matmul": "@", "lshift": "<<", "rshift": ">>"}.get(name) or {
        "add": "+", "sub": "-", "mul": "*", "mod": "%", "pow": "**", "and": "&", "or": "|", "xor": "^",
    }[name]  # fmt: skip
    by_numpy = getattr(ndarray, f"__i{name}__")

    def in_place(self: Node, other: Any) -> Any:
        if self.is_scalar:
            return forward(self, other)
        if self.__class__ is VariableNode:
            if not hasattr(other, "__array_ufunc__") and getattr(other, "__array_priority__", 0) > 0:
                return NotImplemented  # as NumPy does: the other has an operator of its own
            return self.update(lambda array: by_numpy(array, _plain(other)), _leaves(other))  # type: ignore[attr-defined]
        raise _refusal_to_write(self, f"a {symbol}= b", f"a = a {symbol} b")

    return in_place


def _refusal_to_write(node: Node, what: str, instead: str) -> TypeError:
    return TypeError(f"{what} would write into the {describe(node)}, which the graph needs as it is; use {instead}")


def _install_operators() -> None:
    for name, (function, compute) in ops.BINARY_OPERATORS.items():
        forward, reflected = _binary(name, function, compute)
        setattr(Node, f"__{name}__", forward)
        setattr(Node, f"__r{name}__", reflected)
        if name != "divmod":
            setattr(Node, f"__i{name}__", _in_place(name, forward))
    for name, ufunc in ops.COMPARISONS.items():
        setattr(Node, f"__{name}__", _comparison(name, ufunc))
    for name, ufunc in ops.UNARY_OPERATORS.items():
        setattr(Node, f"__{name}__", _unary(ufunc))


def _unary(ufunc: np.ufunc) -> Any:
    """The operator of a unary function."""
    quick = ufunc in ops.SMOOTH_UFUNCS

    def operate(self: Node) -> Any:
        if quick and self.__class__ in ACTIVE and is_recording():
            return operation(ufunc(self.plain), ufunc, (self,), LEFT)
        return record(ufunc, (self,))

    return operate


# --------------------------------------------------------------------------------------------- ufuncs


def array_ufunc(self: Node, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """Record the call of a ufunc."""
    if not options and method == "__call__" and ufunc in ops.SMOOTH_UFUNCS:
        if len(inputs) == 1 and self.__class__ in ACTIVE and is_recording():
            return operation(ufunc(self.plain), ufunc, inputs, LEFT)
        for x in inputs:
            if x.__class__ not in FAMILIAR:
                if any(_foreign(x, "__array_ufunc__") for x in inputs):
                    return NotImplemented
                return record(ufunc, tuple(map(_operand, inputs)))
        return record(ufunc, inputs)
    return _general_ufunc(ufunc, method, inputs, options)


def _general_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    if any(_foreign(x, "__array_ufunc__") for x in (*inputs, *(out or ()))):
        return NotImplemented
    if out and out[0] is Ellipsis:
        out = None
    if method != "__call__":
        if method == "reduce" and ufunc in _REDUCTIONS and options.keys() <= {*_parameters(_REDUCTIONS[ufunc])}:
            return array_function(inputs[0], _REDUCTIONS[ufunc], (), inputs, {"axis": 0, **options, "out": out and out[0]})
        raise TypeError(_unsupported(f"np.{ufunc.__name__}.{method}", "the operator or function on whole arrays"))
    if out is not None:
        return _write_out(ufunc, inputs, options, out)
    if ufunc not in ops.OPNAMES:
        raise TypeError(_unsupported(f"np.{ufunc.__name__}", "cg.primitive with a rule of your own"))
    if options.get("where", True) is not True:
        raise TypeError(f"np.{ufunc.__name__}: where= leaves values undefined without out=; use np.where(mask, result, other)")
    nodes = [k for k, v in options.items() if isinstance(v, Node)]
    if nodes:
        raise TypeError(f"np.{ufunc.__name__}: {nodes[0]}= cannot be a node")
    return record(ufunc, tuple(map(_operand, inputs)), {k: v for k, v in options.items() if k != "where"})


def _operand(value: Any) -> Any:
    """An operand as the graph keeps it: a sequence as an array, with the history of every node in it."""
    if value is None or isinstance(value, (Node, int, float, complex)):
        return value
    value = _gathered(value)
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


def _operands(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each of several operands as the graph keeps it."""
    for value in values:
        if value.__class__ not in FAMILIAR:
            return tuple(map(_operand, values))
    return values


def _leaves(value: Any) -> tuple[Any, ...]:
    """What stands in lists and tuples, however deep."""
    if isinstance(value, (list, tuple)):
        return tuple([leaf for part in value for leaf in _leaves(part)])
    return (value,)


_REDUCTIONS: dict[np.ufunc, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}


def _foreign(operand: Any, protocol: str) -> bool:
    """Whether an operand has a protocol of its own, so that NumPy should ask it."""
    theirs = getattr(type(operand), protocol, None)
    if isinstance(operand, Node) or theirs is None:
        return False
    return theirs is not getattr(ndarray, protocol)


def _write_out(function: Any, args: tuple[Any, ...], options: dict[str, Any], out: Any) -> Any:
    """``out=``: a variable is updated; a plain array would lose the graph, another node would change."""
    targets = out if isinstance(out, tuple) else (out,)
    name = ops.OPNAMES.get(function, getattr(function, "__name__", str(function)))
    if len(targets) == 1 and isinstance(targets[0], VariableNode):
        values, plain = _plain(args), _plain(options)
        sources = _leaves((args, tuple(options.values())))
        return targets[0].update(lambda array: function(*values, out=array, **plain), sources)
    for target in targets:
        if isinstance(target, Node):
            raise _refusal_to_write(target, f"{name}(..., out=a)", f"a = {name}(...)")
    if not is_recording():
        return function(*_plain(args), out=out, **_plain(options))
    raise TypeError(f"{name}(..., out=plain array) would lose the graph of its result; use result = {name}(...)")


def _plain(value: Any) -> Any:
    """`value` with every node in it, also inside tuples, lists and dicts, as a plain array."""
    if isinstance(value, Node):
        return value.plain
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


# ------------------------------------------------------------------------------------------ functions


def array_function(self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the call of a NumPy function, or refuse it."""
    if any(not issubclass(t, Node) and t.__array_function__ is not ndarray.__array_function__ for t in types):
        return NotImplemented
    function = ops.ALIASES.get(function, function)
    handler = HANDLERS.get(function)
    if handler is None:
        raise TypeError(_unsupported(_full_name(function), "cg.primitive with a rule of your own"))
    return handler(function, args, kwargs)


def _full_name(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)


def _unsupported(name: str, instead: str) -> str:
    return (
        f"{name} is not supported on nodes, and a plain array would lose the graph; use {instead}, "
        "or node.value where only the numbers are meant"
    )


@functools.cache
def _parameters(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters, in order."""
    return tuple(inspect.signature(function).parameters)


def _bind(function: Any, operand_names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Split a call into operands and options, and record it."""
    if not kwargs and len(args) <= len(operand_names) and _parameters(function)[: len(args)] == operand_names[: len(args)]:
        return record(function, args if len(args) == 1 else _operands(args))
    names = _parameters(function)
    if len(args) > len(names):
        raise TypeError(f"{_full_name(function)} takes at most {len(names)} arguments, {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    doubled = given.keys() & kwargs.keys()
    if doubled:
        raise TypeError(f"{_full_name(function)}: argument {doubled.pop()!r} was given twice")
    given.update(kwargs)
    out = given.pop("out", None)
    options = {k: v for k, v in given.items() if v is not np._NoValue}  # type: ignore[attr-defined]
    leading = []
    for name in operand_names:
        if name != names[len(leading)] or name not in options:
            break
        leading.append(options.pop(name))
    if out is not None:
        return _write_out(function, tuple(leading), options, out)
    return _record_keywords(function, operand_names, tuple(leading), options)


def _record_keywords(function: Any, operand_names: tuple[str, ...], operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Record a call; operands given as keywords are kept as operands."""
    keywords = tuple(k for k, v in options.items() if isinstance(v, Node))
    for name in keywords:
        if name not in operand_names:
            raise TypeError(f"{_full_name(function)}: {name}= cannot be a node; give node.value")
    if keywords:
        operands += tuple(options.pop(k) for k in keywords)
        function = ops.keyworded(function, keywords)
    return record(function, _operands(operands), options or NO_OPTIONS)


def _recorded(operand_names: str) -> Any:
    names = tuple(operand_names.split())
    return lambda function, args, kwargs: _bind(function, names, args, kwargs)


def _packed(packed: ops.Packed) -> Any:
    def handler(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = _parameters(function)
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        operands = options.pop(names[0])
        out = options.pop("out", None)
        if out is not None:
            return _write_out(function, (operands,), options, out)
        return _record_keywords(packed, (), tuple(operands), options)

    return handler


def _composed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if function in ops.STACKING_FUNCTIONS and args:
        return function._implementation([_gathered(a) for a in args[0]], *args[1:], **kwargs)
    return function._implementation(*map(_gathered, args), **kwargs)


def _gathered(value: Any) -> Any:
    """A sequence with nodes in it as one array, which NumPy's own code would make without their history."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Node) for v in _leaves(value)):
        return np.stack([_operand(v) for v in value])
    return value


def _plain_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*_plain(args), **_plain(kwargs))


def _einsum(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Both forms of einsum's arguments become subscripts and operands."""
    subscripts, *operands = args
    if not isinstance(subscripts, str):
        subscripts, operands = _einsum_letters(args)
    out = kwargs.pop("out", None) if kwargs else None
    options = {"subscripts": subscripts, **kwargs}
    if out is not None:
        return _write_out(ops.einsum, tuple(operands), options, out)
    return record(ops.einsum, _operands(tuple(operands)), options)


def _einsum_letters(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as ``'ab,bc->ac'`` and its operands."""

    def letters(axes: Any) -> str:
        return "".join(
            "..." if axis is Ellipsis else chr(ord("A") + axis if axis < 26 else ord("a") + axis - 26) for axis in axes
        )

    pairs = len(args) // 2
    terms = ",".join(letters(args[2 * i + 1]) for i in range(pairs))
    return (f"{terms}->{letters(args[-1])}" if len(args) % 2 else terms), [args[2 * i] for i in range(pairs)]


def _copyto(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_parameters(function), args, strict=False)), **kwargs}
    target = given.pop("dst")
    if isinstance(target, VariableNode):
        plain = _plain(given)
        target.update(lambda array: np.copyto(array, **plain), _leaves(tuple(given.values())))
        return
    if isinstance(target, Node):
        raise _refusal_to_write(target, "np.copyto(a, b)", "a = np.where(mask, b, a)")
    if is_recording():
        raise TypeError("np.copyto(plain array, node) would lose the graph; use np.copy(node) or np.where(mask, node, plain)")
    np.copyto(target, **_plain(given))


def _clip(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``min=`` and ``max=`` are newer names of the second and third operand."""
    if len(args) == 1 and not kwargs.keys() & {"a_min", "a_max"}:
        kwargs = dict(kwargs)
        args = (*args, kwargs.pop("min", None), kwargs.pop("max", None))
    return _bind(function, ("a", "a_min", "a_max"), args, kwargs)


def _broadcast_arrays(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args = tuple(map(_gathered, args))
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    return tuple([np.broadcast_to(a, shape) for a in args])


def _column_stack(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (columns,) = args or kwargs.values()
    return np.concatenate([c if np.ndim(c) > 1 else np.reshape(_operand(c), (-1, 1)) for c in columns], axis=1)


HANDLERS: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    **{f: _recorded(names) for f, names in {**ops.SMOOTH_FUNCTIONS, **ops.PIECEWISE_FUNCTIONS}.items()},
    **{f: _packed(packed) for f, packed in ops.PACKED_FUNCTIONS.items()},
    **dict.fromkeys(ops.COMPOSED_FUNCTIONS, _composed),
    **dict.fromkeys(ops.PLAIN_FUNCTIONS, _plain_call),
    np.einsum: _einsum,
    np.copyto: _copyto,
    np.clip: _clip,
    np.broadcast_arrays: _broadcast_arrays,
    np.column_stack: _column_stack,
}


# ------------------------------------------------------------------------------------- array methods


def _method(function: Any) -> Any:
    @functools.wraps(function)
    def method(self: Node, *args: Any, **kwargs: Any) -> Any:
        return handler(function, (self, *args), kwargs) if handler else function(self, *args, **kwargs)

    handler = HANDLERS.get(function)
    return method


def _getitem(self: Node, index: Any) -> Any:
    if index.__class__ is tuple and any(isinstance(i, Node) for i in index):
        return record(ops.getitem, (self, *index))
    if self.__class__ in ACTIVE and is_recording() and not isinstance(index, Node):
        return operation(self.plain[index], ops.getitem, (self, index), LEFT)
    return record(ops.getitem, (self, index))


def _setitem(self: Node, index: Any, value: Any) -> None:
    if self.__class__ is VariableNode:
        self.update(lambda array: array.__setitem__(_plain(index), _plain(value)), _leaves(value))  # type: ignore[attr-defined]
        return
    if self.is_scalar:
        raise TypeError(f"the {describe(self)} is a scalar, which does not support item assignment; rebind its name")
    raise _refusal_to_write(self, "a[index] = b", "np.where(mask, b, a) or np.concatenate")


def _reshape(self: Node, *shape: Any, **options: Any) -> Any:
    return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)


def _transpose(self: Node, *axes: Any) -> Any:
    return np.transpose(self, *axes) if len(axes) <= 1 else np.transpose(self, axes)


def _astype(self: Node, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind not in "biufc":
        raise TypeError(f"a node holds numbers; use node.value.astype({dtype}) where its graph is not needed any more")
    return record(ops.astype, (self,), {"dtype": dtype, "order": order, "casting": casting, "copy": copy})


def _conj(self: Node) -> Any:
    return np.conjugate(self) if self.dtype.kind == "c" else self


def _clip_method(self: Node, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    return np.clip(self, min, max, out, **options)


def _contains(self: Node, element: Any) -> bool:
    return bool(np.any(self.plain == _plain(element)))


def _round(self: Node, digits: int | None = None) -> Any:
    if self.ndim:
        raise TypeError("round takes a single number; use np.round for an array")
    return round(self.item()) if digits is None else np.round(self, digits)


def _copy(self: Node, order: Any = "C") -> Any:
    return record(ops.copy, (self,), {"order": order})


def _flatten(self: Node, order: Any = "C") -> Any:
    return record(ops.flatten, (self,), {"order": order})


def _writing_method(name: str) -> Any:
    def method(self: Node, *args: Any, **kwargs: Any) -> None:
        if self.__class__ is not VariableNode:
            raise _refusal_to_write(self, f"a.{name}()", f"a = np.{name}(a)" if name in {"sort", "partition"} else "a new array")
        write = getattr(ndarray, name)
        values = _leaves((args, tuple(kwargs.values())))
        self.update(lambda array: write(array, *_plain(args), **_plain(kwargs)), values)  # type: ignore[attr-defined]

    return method


def _refused_method(name: str, instead: str) -> Any:
    def method(self: Node, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"the array method {name} is not supported on nodes, since its result would lose the graph; {instead}")

    return method


def _attribute(read: Any, name: str) -> property:
    """A property that `read` computes and that cannot be set."""

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(read, refuse)


def _flat(self: Node) -> Any:
    raise TypeError(_unsupported("the array attribute flat", "x.ravel()"))


def _install_methods() -> None:
    methods = {
        **{name: _method(function) for name, function in ops.METHODS.items()},
        **{name: _writing_method(name) for name in ops.WRITING_METHODS},
        **{name: _refused_method(name, instead) for name, instead in ops.REFUSED_METHODS.items()},
        "__getitem__": _getitem,
        "__setitem__": _setitem,
        "__contains__": _contains,
        "__round__": _round,
        "clip": _clip_method,
        "conj": _conj,
        "conjugate": _conj,
        "reshape": _reshape,
        "transpose": _transpose,
        "astype": _astype,
        "copy": _copy,
        "flatten": _flatten,
        "T": _attribute(np.transpose, "T"),
        "mT": _attribute(np.matrix_transpose, "mT"),
        "real": _attribute(lambda self: np.real(self), "real"),
        "imag": _attribute(lambda self: np.imag(self), "imag"),
        "flat": _attribute(_flat, "flat"),
        **{name: _attribute(getattr(ndarray, name).__get__, name) for name in ("shape", "dtype", "strides")},
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
    }
    for name, method in methods.items():
        setattr(Node, name, method)


_install_operators()
_install_methods()
