"""NumPy's protocols: which call of a ufunc or a function becomes which record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import operations as ops
from ..arrays import MADE_LIKE
from ..graph import (
    ACTIVE,
    BOTH,
    FAMILIAR,
    LEFT,
    NO_OPTIONS,
    RAW,
    RIGHT,
    Node,
    as_operand,
    as_operands,
    full_name,
    gathered,
    has_history,
    is_foreign,
    next_tick,
    operation,
    record,
    recover,
    to_plain,
)
from ..graph.context import is_quick, is_recording
from ..graph.interpreter import source_lines
from ..guards import freezes_nothing, note, note_length, notice_saved
from ..inplace import copyto, fill_diagonal, nan_to_num, place, put, put_along_axis, putmask, ufunc_at, write_out, write_where
from .binding import bind, parameters_of, record_keywords, settled_order, unsupported

ndarray = np.ndarray

# --------------------------------------------------------------------------------------------- ufuncs


def array_ufunc(self: Node, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """Record the call of a ufunc."""
    if options or method != "__call__" or ufunc not in ops.SMOOTH_UFUNCS:
        return _general_ufunc(ufunc, method, inputs, options)
    if ufunc.nout == 1 and is_quick():
        try:
            if len(inputs) == 1:
                if self.__class__ in ACTIVE:
                    return operation(ufunc(self.plain), ufunc, inputs, LEFT)
            else:
                a, b = inputs
                if a.__class__ in ACTIVE:
                    if b.__class__ in RAW:
                        return operation(ufunc(a.plain, b), ufunc, inputs, LEFT)
                    if b.__class__ in ACTIVE:
                        return operation(ufunc(a.plain, b.plain), ufunc, inputs, BOTH)
                elif a.__class__ in RAW and b.__class__ in ACTIVE:
                    return operation(ufunc(a, b.plain), ufunc, inputs, RIGHT)
        except AttributeError as error:
            recover(error, *inputs)
    if not FAMILIAR.issuperset(map(type, inputs)):
        if any(is_foreign(x, "__array_ufunc__") for x in inputs):
            return NotImplemented
        inputs = tuple(map(as_operand, inputs))
    return record(ufunc, inputs)


def _general_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    if any(is_foreign(x, "__array_ufunc__") for x in (*inputs, *(out or ()))):
        return NotImplemented
    if out and (out[0] is Ellipsis or _rebinds(out[0], source_lines.frame_up(2))):
        out = None
    if ufunc is ops.CLIP and method == "__call__":
        return np.clip(*inputs, out=out and out[0], **options)
    if method != "__call__":
        return _ufunc_method(ufunc, method, inputs, options, out)
    if out is not None:
        where = options.pop("where", True)
        if where is not True:
            return write_where(ufunc, inputs, options, out, where)
        return write_out(ufunc, inputs, options, out, lambda: ufunc(*inputs, **options))
    if ufunc not in ops.OPNAMES:
        raise TypeError(unsupported(f"np.{ufunc.__name__}", "cg.primitive with a rule of your own"))
    if options.get("where", True) is not True:
        raise TypeError(f"np.{ufunc.__name__}: where= leaves values undefined without out=; use np.where(mask, result, other)")
    nodes = [k for k, v in options.items() if isinstance(v, Node)]
    if nodes:
        raise TypeError(f"np.{ufunc.__name__}: {nodes[0]}= cannot be a node")
    is_complex_sign = ufunc is np.sign and any(np.iscomplexobj(x) for x in inputs)
    function = ops.complex_sign if is_complex_sign else ufunc
    settings = {k: v for k, v in options.items() if k != "where"}
    if "axes" in settings:
        if not isinstance(settings["axes"], list):
            raise TypeError("axes should be a list.")
        settings["axes"] = tuple(settings["axes"])
    operands = tuple(map(as_operand, inputs))
    if function in ops.PIECEWISE:
        return record(function, operands, settings or NO_OPTIONS)
    settled = ops.on_axes if settings.keys() & {"axes", "axis", "keepdims"} else ops.configured
    return record(settled(function, tuple(settings.items())) if settings else function, operands)


def _rebinds(target: Any, frame: Any) -> bool:
    """Whether NumPy's own code gives a scalar as out= and goes on with the result, as that of ``mean`` does."""
    return (
        isinstance(target, Node)
        and has_history(target)
        and target.is_scalar
        and source_lines.is_internal(frame.f_code.co_filename)
    )


def _ufunc_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], out: Any) -> Any:
    """``np.add.reduce`` and kin: a function that has a rule, or the ufunc applied step by step."""
    if method == "at":
        return ufunc_at(ufunc, *inputs)
    function: Any = _METHOD_FUNCTIONS.get((ufunc, method))
    if function in HANDLERS and options.keys() <= {*parameters_of(function)}:
        return array_function(inputs[0], function, (), inputs, {"axis": 0, **options, "out": out and out[0]})
    if out is not None:
        compute = lambda: _ufunc_method(ufunc, method, inputs, options, None)  # noqa: E731
        return write_out(ops.ufunc_method(ufunc, method), inputs, options, out, compute)
    if ufunc not in ops.SMOOTH_UFUNCS | ops.PIECEWISE_UFUNCS:
        raise TypeError(unsupported(f"np.{ufunc.__name__}.{method}", "the operator or function on whole arrays"))
    if method == "outer":
        a, b = map(as_operand, inputs)
        return ufunc(np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b))), b, **options)
    x, *indices = map(as_operand, inputs)
    folded = ops.ufunc_method(ufunc, method)
    return record_keywords(folded, ops.operand_names(folded), (x,), {**_named_indices(indices), **options})


def _named_indices(indices: list[Any]) -> dict[str, Any]:
    """The indices of ``reduceat`` as an option."""
    return {"indices": np.asarray(to_plain(indices[0]))} if indices else {}


_METHOD_FUNCTIONS: dict[tuple[np.ufunc, str], Any] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
    (np.minimum, "reduce"): np.min,
    (np.logical_and, "reduce"): np.all,
    (np.logical_or, "reduce"): np.any,
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
}


# ------------------------------------------------------------------------------------------ functions


def array_function(self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the call of a NumPy function, or refuse it."""
    if any(not issubclass(t, Node) and t.__array_function__ is not ndarray.__array_function__ for t in types):
        return NotImplemented
    return call_on_nodes(function, args, kwargs)


def call_on_nodes(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the call of a ufunc or function that has a node somewhere among its arguments, or refuse it."""
    if isinstance(function, np.ufunc):
        return function(*map(gathered, args), **kwargs)
    function = ops.ALIASES.get(function, function)
    handler = HANDLERS.get(function)
    if handler is None:
        instead = ops.REFUSED_FUNCTIONS.get(function, "cg.primitive with a rule of your own")
        raise TypeError(unsupported(full_name(function), instead))
    return handler(function, args, kwargs)


def _recorded(operand_names: str) -> Any:
    names = tuple(operand_names.split())
    return lambda function, args, kwargs: bind(function, names, args, kwargs)


def _packed(packed: ops.Packed) -> Any:
    def handler(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = parameters_of(function)
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        if names[0] not in options or set(options) - set(names):
            strange = ", ".join(f"{name}=" for name in options if name not in names)
            told = f"it does not know {strange}" if strange else f"{names[0]} are missing"
            raise TypeError(f"{full_name(function)}: {told}; its arguments are {', '.join(names)}")
        operands = options.pop(names[0])
        out = options.pop("out", None)
        if out is not None:
            compute = functools.partial(record_keywords, packed, (), tuple(operands), dict(options))
            return write_out(function, (operands,), options, out, compute)
        return record_keywords(packed, (), tuple(operands), options)

    return handler


def _in_steps(handler: Any) -> Any:
    """A handler whose steps are nodes that all know the line of the call."""

    @functools.wraps(handler)
    def steps(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code, instruction = source_lines.users_line()
        before = next_tick()
        result = handler(function, args, kwargs)
        if code is not None:
            source_lines.made_since(result, before, code, instruction)
        return result

    return steps


@_in_steps
def _composed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own = ops.implementation(function)
    if function in ops.STACKING_FUNCTIONS and args:
        return own([gathered(a) for a in args[0]], *args[1:], **kwargs)
    return own(*map(gathered, args), **{k: gathered(v) for k, v in kwargs.items()})


@_in_steps
def _instead(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return ops.INSTEAD_FUNCTIONS[function](*args, **kwargs)


def _plain_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if function in _SAVING and is_recording():
        notice_saved(full_name(function))
    answer = function(*to_plain(args), **to_plain(kwargs))
    if function in _DECIDING and not (function in _SHAPES and freezes_nothing(source_lines.frame_up(3))):
        ask = functools.partial(_asked, function, tuple(kwargs), len(args))
        note(f"{full_name(function)}()", ask, (*args, *kwargs.values()), answer, source_lines.users_frame(2))
    if function in ops.INDICES_OF_SHAPE:
        note_length(next(a for a in (*args, *kwargs.values()) if isinstance(a, Node)), f"the shape, by {full_name(function)},")
    return answer


_SHAPES = frozenset({np.shape, np.size})
_DECIDING = _SHAPES | {np.allclose, np.array_equal, np.array_equiv}


def _asked(function: Any, names: tuple[str, ...], count: int, *values: Any) -> Any:
    """The answer of a plain function, to be asked for again; the last arguments have names."""
    return function(*values[:count], **dict(zip(names, values[count:], strict=True)))


_SAVING = frozenset({np.save, np.savez, np.savez_compressed, np.savetxt})


def _einsum(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Both forms of einsum's arguments become subscripts and operands."""
    subscripts, *operands = args
    if not isinstance(subscripts, str):
        subscripts, operands = _einsum_letters(args)
    out = kwargs.pop("out", None) if kwargs else None
    options = {"subscripts": subscripts, **kwargs}
    if out is not None:
        compute = functools.partial(record, ops.einsum, as_operands(tuple(operands)), options)
        return write_out(ops.einsum, tuple(operands), options, out, compute)
    return record(ops.einsum, as_operands(tuple(operands)), options)


def _einsum_letters(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as ``'ab,bc->ac'`` and its operands."""

    def letters(axes: Any) -> str:
        return "".join(
            "..." if axis is Ellipsis else chr(ord("A") + axis if axis < 26 else ord("a") + axis - 26) for axis in axes
        )

    pairs = len(args) // 2
    terms = ",".join(letters(args[2 * i + 1]) for i in range(pairs))
    return (f"{terms}->{letters(args[-1])}" if len(args) % 2 else terms), [args[2 * i] for i in range(pairs)]


def _called(ours: Any) -> Any:
    return lambda function, args, kwargs: ours(*args, **kwargs)


def _ordered(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``reshape`` and ``ravel``, whose order may follow the memory."""
    given = {**dict(zip(parameters_of(function), args, strict=False)), **kwargs}
    node = as_operand(given.pop("a"))
    if "order" in given:
        node, given["order"] = settled_order(node, given["order"])
    return bind(function, ("a",), (node,), given)


def _clip(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``min=`` and ``max=`` are newer names of the second and third operand."""
    if len(args) == 1 and not kwargs.keys() & {"a_min", "a_max"}:
        kwargs = dict(kwargs)
        args = (*args, kwargs.pop("min", None), kwargs.pop("max", None))
    return bind(function, ("a", "a_min", "a_max"), args, kwargs)


def _broadcast_arrays(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args = tuple(map(gathered, args))
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    return tuple([np.broadcast_to(a, shape) for a in args])


def _column_stack(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (columns,) = args or kwargs.values()
    return np.concatenate([c if np.ndim(c) > 1 else np.reshape(as_operand(c), (-1, 1)) for c in columns], axis=1)


HANDLERS: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    **{f: _recorded(names) for f, names in {**ops.SMOOTH_FUNCTIONS, **ops.PIECEWISE_FUNCTIONS}.items()},
    **{f: _packed(packed) for f, packed in ops.PACKED_FUNCTIONS.items()},
    **dict.fromkeys(ops.COMPOSED_FUNCTIONS, _composed),
    **dict.fromkeys(ops.INSTEAD_FUNCTIONS, _instead),
    **dict.fromkeys(ops.PLAIN_FUNCTIONS, _plain_call),
    np.einsum: _einsum,
    np.copyto: _called(copyto),
    np.put: _called(put),
    np.place: _called(place),
    np.putmask: _called(putmask),
    np.nan_to_num: _called(nan_to_num),
    np.put_along_axis: _called(put_along_axis),
    np.fill_diagonal: _called(fill_diagonal),
    np.clip: _clip,
    np.ravel: _ordered,
    np.reshape: _ordered,
    np.broadcast_arrays: _broadcast_arrays,
    **{like: _called(ours) for like, ours in MADE_LIKE.items()},
    np.column_stack: _column_stack,
}
