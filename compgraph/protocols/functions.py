"""NumPy's functions on nodes (``__array_function__``): one handler per function, which records the call.

Much of NumPy is Python that begins with ``asanyarray(x)``, which is written in C and does not dispatch. `rebind` copies a
function: its code is the same, and its globals bind such names to functions that accept nodes. NumPy itself is not changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import arrays, inplace, ops
from ..arrays import LIKE_CONSTRUCTORS
from ..bind import bind
from ..context import is_recording
from ..frames import source_lines
from ..graph import as_operand, as_operands, full_name, stack_nested, to_values
from ..guards import needs_shape_guard, note_file, note_guard, note_shape, note_text
from ..inplace import as_traced, write_out
from ..ops import ARRAY_CONVERTER, NUMPY, UNDISPATCHED, ensure_array
from ..values import TRACEABLE, Borrowed, Buffer, Value, next_sequence_number, require_computed
from .binding import bind_arguments, parameters_of, pass_leading_by_position, record_keywords, resolve_order, unsupported_message
from .class_views import call_with_views


class _Converter:
    """Replaces NumPy's private ``_array_converter``; it does not convert nodes."""

    def __init__(self, *values: Any) -> None:
        self._values = tuple(map(ensure_array, values))
        self._converter = ARRAY_CONVERTER(*[getattr(value, "raw_value", value) for value in self._values])

    def as_arrays(self, subok: bool = True, pyscalars: object = "convert_if_no_array") -> tuple[Any, ...]:
        return self._values

    def wrap(self, array: object, to_scalar: bool | None = None) -> Any:
        return array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._converter, name)

    def __getitem__(self, position: int) -> Any:
        return self._values[position]


_REPLACEMENTS: dict[Any, Any] = {
    ARRAY_CONVERTER: _Converter,
    **{
        spec.function: getattr(arrays, spec.function.__name__)
        for spec in UNDISPATCHED
        if spec.converts == "lists" and hasattr(arrays, spec.function.__name__)
    },
}
_globals_by_module: dict[int, dict[str, Any]] = {}  # by the id of a module's own globals, which live as long as NumPy


class _Module(ModuleType):
    """Replaces a module of NumPy: its functions that convert to arrays accept nodes."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        original = getattr(NUMPY, name, None) if self._module is np else None
        return _replacement(getattr(self._module, name) if original is None else original)


def _replacement(value: object) -> Any:
    try:
        return _REPLACEMENTS.get(value, value)
    except TypeError:  # not hashable
        return value


def rebind(function: Callable[..., Any]) -> Any:
    """Copy a Python function of NumPy with globals that accept nodes; other callables are returned unchanged."""
    if not isinstance(function, FunctionType) or not function.__module__.startswith("numpy"):
        return function
    own_globals = function.__globals__
    namespace = _globals_by_module.get(id(own_globals))
    if namespace is None:
        namespace = _globals_by_module[id(own_globals)] = dict(own_globals)
        for name, value in own_globals.items():
            if isinstance(value, ModuleType) and value.__name__.startswith("numpy"):
                namespace[name] = _Module(value)
            elif isinstance(value, FunctionType) and value.__module__ == own_globals["__name__"]:
                namespace[name] = _with_globals(value, namespace)
            else:
                original = getattr(NUMPY, name, None)  # of a name that is patched while a function is differentiated
                is_patch = original is not None and getattr(value, "__wrapped__", None) is original
                namespace[name] = _replacement(original if is_patch else value)
    return _with_globals(function, namespace)


def _with_globals(function: FunctionType, namespace: dict[str, Any]) -> FunctionType:
    new_function = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    new_function.__kwdefaults__ = function.__kwdefaults__
    return new_function


ndarray = np.ndarray


def array_function(
    self: Any, function: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``Node.__array_function__``: record the call of a NumPy function, or raise; NotImplemented for other libraries' arrays."""
    if any(
        not issubclass(t, (Value, Buffer)) and t is not Borrowed and t.__array_function__ is not ndarray.__array_function__
        for t in types
    ):
        require_computed((*args, *kwargs.values()), f"an argument of {full_name(function)}")
        return call_with_views(function, "__array_function__", args, kwargs)
    return call_on_nodes(function, args, kwargs)


def call_on_nodes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the call of a ufunc or function with a node among its arguments, or raise a TypeError."""
    if isinstance(function, np.ufunc):
        return function(*map(stack_nested, args), **kwargs)
    function = ops.ALIASES.get(function, function)
    if function in ops.WRITING_FUNCTIONS:
        args, kwargs = pass_leading_by_position(function, args, kwargs)
    if type(kwargs.get("out")) in TRACEABLE or (args and type(args[0]) in TRACEABLE and function in ops.WRITING_FUNCTIONS):
        as_traced(kwargs["out"] if "out" in kwargs else args[0], (*args, *kwargs.values()))
    handler = HANDLERS.get(function)
    if handler is None:
        alternative = ops.UNSUPPORTED_FUNCTIONS.get(function, "cg.primitive with a rule of your own")
        raise TypeError(unsupported_message(full_name(function), alternative))
    return handler(function, args, kwargs)


def _make_recording_handler(operand_names: str) -> Any:
    """Return the handler of a function that is recorded with these operands."""
    names = tuple(operand_names.split())
    return lambda function, args, kwargs: bind_arguments(function, names, args, kwargs)


def _make_packing_handler(packed: ops.Packed) -> Any:
    """Return the handler of a function whose first argument is a sequence of operands, such as ``np.vstack``."""

    def handler(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = parameters_of(function)
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        unknown = ", ".join(f"{name}=" for name in options if name not in names)
        if unknown or names[0] not in options:
            problem = f"unknown argument {unknown}" if unknown else f"the argument {names[0]} is missing"
            raise TypeError(f"{full_name(function)}: {problem}. Its arguments are {', '.join(names)}")
        operands = options.pop(names[0])
        out = options.pop("out", None)
        if out is not None:
            compute = functools.partial(record_keywords, packed, (), tuple(operands), dict(options))
            return write_out(function, (operands,), options, out, compute)
        return record_keywords(packed, (), tuple(operands), options)

    return handler


def with_user_line(handler: Callable[..., Any]) -> Any:
    """Wrap a handler that records several nodes, so that all of them get the user's line of the call."""

    @functools.wraps(handler)
    def wrapper(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code, instruction = source_lines.user_line()
        first_sequence_number = next_sequence_number()
        result = handler(function, args, kwargs)
        if code is not None:
            source_lines.set_lines_since(result, first_sequence_number, code, instruction)
        return result

    return wrapper


@with_user_line
def _run_numpy_code(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run NumPy's own Python code of a function on nodes."""
    run = rebind(ops.implementation(function))
    lists = ops.SPECS[function].lists
    if lists == "sequence" and args:
        return run([stack_nested(a) for a in args[0]], *args[1:], **kwargs)
    if lists == "unchanged":
        return run(*args, **kwargs)
    return run(*map(stack_nested, args), **{k: stack_nested(v) for k, v in kwargs.items()})


@with_user_line
def _run_replacement(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the replacement of a function, whose steps are recorded."""
    if ops.SPECS[function].lists == "arrays":
        args, kwargs = tuple(map(stack_nested, args)), {name: stack_nested(value) for name, value in kwargs.items()}
    return ops.REPLACED_FUNCTIONS[function](*args, **kwargs)


def _call_on_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function on plain values, and log guards on its result and on shapes that determine it."""
    spec = ops.SPECS[function]
    args, kwargs = tuple(map(stack_nested, args)), {name: stack_nested(value) for name, value in kwargs.items()}
    if spec.external == "files" and is_recording():
        note_file(full_name(function), (*args, *kwargs.values()))
    reads_types = spec.reads in ("types", "shapes")
    result = function(*_plain_arguments(args, reads_types), **_plain_arguments(kwargs, reads_types))
    if type(result) is str:
        note_text()
    # `frame_up(3)` is the frame that called the NumPy function
    if spec.is_guarded and (spec.reads != "shapes" or needs_shape_guard(source_lines.frame_up(3))):
        evaluate = functools.partial(_call_by_names, function, tuple(kwargs), len(args))
        note_guard(f"{full_name(function)}()", evaluate, (*args, *kwargs.values()), result, source_lines.user_frame(2))
    if spec.returns_indices:
        note_shape(next(a for a in (*args, *kwargs.values()) if isinstance(a, Value)), f"the shape read by {full_name(function)}")
    return result


def _plain_arguments(arguments: object, reads_types: bool) -> Any:
    """Return the arguments of a plain function; one that only reads shapes and dtypes receives a single batch element."""
    if not reads_types:
        return to_values(arguments)
    if isinstance(arguments, dict):
        return {name: _plain_arguments(value, reads_types) for name, value in arguments.items()}
    if isinstance(arguments, (tuple, list)):
        return type(arguments)([_plain_arguments(value, reads_types) for value in arguments])
    return arguments.raw_value if isinstance(arguments, Value) and arguments.trace_kind == "batch" else to_values(arguments)


def _call_by_names(function: Callable[..., Any], keyword_names: tuple[str, ...], num_positional: int, *values: object) -> Any:
    """Call a function with the values after the first `num_positional` as keyword arguments. Guards re-evaluate calls with it."""
    return function(*values[:num_positional], **dict(zip(keyword_names, values[num_positional:], strict=True)))


def _einsum(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.einsum``, in both of its forms: with subscripts, or with lists of axes, which become subscripts."""
    subscripts, *operands = args
    if not isinstance(subscripts, str):
        subscripts, operands = _einsum_letters(args)
    out = kwargs.pop("out", None) if kwargs else None
    options = {"subscripts": subscripts, **kwargs}
    if out is not None:
        compute = functools.partial(bind, ops.einsum, as_operands(tuple(operands)), options)
        return write_out(ops.einsum, tuple(operands), options, out, compute)
    return bind(ops.einsum, as_operands(tuple(operands)), options)


def _einsum_letters(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as ``'ab,bc->ac'`` and its operands."""

    def letters(axes: Any) -> str:
        return "".join(
            "..." if axis is Ellipsis else chr(ord("A") + axis if axis < 26 else ord("a") + axis - 26) for axis in axes
        )

    pairs = len(args) // 2
    terms = ",".join(letters(args[2 * i + 1]) for i in range(pairs))
    return (f"{terms}->{letters(args[-1])}" if len(args) % 2 else terms), [args[2 * i] for i in range(pairs)]


def _make_replacement_handler(replacement: Callable[..., Any]) -> Any:
    """Return a handler that calls a replacement with nested lists of nodes as arrays; lists of a mask stay as they are."""

    def call(function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stacked = {name: value if name == "where" else stack_nested(value) for name, value in kwargs.items()}
        return replacement(*map(stack_nested, args), **stacked)

    return call


def _bind_with_order(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``reshape`` and ``ravel``, whose ``order=`` may depend on the memory layout; see `resolve_order`."""
    arguments = {**dict(zip(parameters_of(function), args, strict=False)), **kwargs}
    node = as_operand(arguments.pop("a"))
    if "order" in arguments:
        node, arguments["order"] = resolve_order(node, arguments["order"])
    return bind_arguments(function, ("a",), (node,), arguments)


def _clip(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.clip``: its keywords ``min=`` and ``max=`` are newer names of the second and third operand."""
    if len(args) < 2 and not kwargs.keys() & {"a_min", "a_max"}:
        kwargs = dict(kwargs)
        operand = args[0] if args else kwargs.pop("a")
        args = (operand, kwargs.pop("min", None), kwargs.pop("max", None))
    return bind_arguments(function, ("a", "a_min", "a_max"), args, kwargs)


def _broadcast_arrays(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args = tuple(map(stack_nested, args))
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    return tuple([np.broadcast_to(a, shape) for a in args])


def _column_stack(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (columns,) = args or kwargs.values()
    arrays = map(stack_nested, columns)
    return np.concatenate([a if np.ndim(a) > 1 else np.reshape(as_operand(a), (-1, 1)) for a in arrays], axis=1)


HANDLERS: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    **{f: _make_recording_handler(names) for f, names in {**ops.SMOOTH_FUNCTIONS, **ops.PIECEWISE_FUNCTIONS}.items()},
    **{f: _make_packing_handler(packed) for f, packed in ops.PACKED_FUNCTIONS.items()},
    **dict.fromkeys(ops.COMPOSED_FUNCTIONS, _run_numpy_code),
    **dict.fromkeys(ops.REPLACED_FUNCTIONS, _run_replacement),
    **dict.fromkeys(ops.PLAIN_FUNCTIONS, _call_on_values),
    np.einsum: _einsum,
    **{f: _make_replacement_handler(getattr(inplace, f.__name__)) for f in ops.WRITING_FUNCTIONS},
    np.nan_to_num: _make_replacement_handler(inplace.nan_to_num),
    np.clip: _clip,
    np.ravel: _bind_with_order,
    np.reshape: _bind_with_order,
    np.broadcast_arrays: _broadcast_arrays,
    **{function: _make_replacement_handler(constructor) for function, constructor in LIKE_CONSTRUCTORS.items()},
    np.column_stack: _column_stack,
}
