"""Calls that NumPy does not dispatch: nodes in lists (``np.sum([x[0], x[1]])``), and functions such as ``vectorize`` and ``r_``.

NumPy dispatches on the arguments that a function's dispatcher returns, and ignores the contents of lists. Patches change that:

- Patched dispatchers also return the nodes in lists.
- At the top level nodes are arrays over their data, so NumPy converts a list of them without dispatch.
  Functions that convert lists are patched on import, and record lists that contain nodes. Calls from library code are unchanged.
- Attributes of NumPy's classes cannot be patched. Functions that use them find `NUMPY_SUBSTITUTE` by the name ``np``: its methods
  of ufuncs (``np.maximum.reduce([x, y])``) first stack the nodes in lists, and ``np.ndarray(shape)`` allocates a buffer, like
  that of ``np.empty``, so that nodes can be written into it.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import arrays, ops
from ..context import is_recording
from ..frames import frame_up, is_internal, source_lines
from ..graph import flatten_sequences, stack_nested, to_values
from ..inplace import contains_node
from ..tracing import is_tracing
from ..values import NUMERIC, Value, as_buffer, is_operator_tracer, mark_python_number
from .callers import RECEIVES_PATCHES, RECORDS_SEQUENCES
from .code_patches import NODE_FREE_TYPES, patch_code

open_interceptions: set[Any] = set()  # the open interceptions of all threads: not empty while a function is differentiated
_MAX_DEPTH = 64  # of nested lists, as deep as arrays have axes
_SEQUENCES = (list, tuple)


# --------------------------------------------------------------------------------------- lists at the top level


class _Switch:
    """A flag that several modules share."""

    __slots__ = ("is_on",)

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on


interception_switch = _Switch(True)  # see `cg.interception`


def sequence_contains_node(values: Iterable[object], depth: int = _MAX_DEPTH) -> bool:
    """Whether a list or tuple contains a node, at any depth. The classes of the elements are compared first, which is fast.

    Outside of tracing, tracers do not count: they belong to an operator, which is active in another thread.
    """
    if NODE_FREE_TYPES.issuperset(classes := set(map(type, values))):
        return False
    if any(issubclass(cls, Value) for cls in classes):
        return is_tracing() or not any(isinstance(v, Value) and is_operator_tracer(v) for v in values)
    return depth > 0 and any(isinstance(v, _SEQUENCES) and sequence_contains_node(v, depth - 1) for v in values)


def is_call_recorded(filename: str, values: Iterable[object]) -> bool:
    """Whether a top-level call with these values, from a file, is recorded because a list contains a node."""
    return (
        interception_switch.is_on
        and RECORDS_SEQUENCES[filename]
        and is_recording()
        and any(isinstance(v, _SEQUENCES) and sequence_contains_node(v) for v in values)
    )


def is_call_inspected(filename: str) -> bool:
    """Whether lists in a top-level call from a file (of user code, or of NumPy) are searched for nodes."""
    return interception_switch.is_on and (RECORDS_SEQUENCES[filename] or is_internal(filename))


# -------------------------------------------------------------------------------------------------- dispatchers


def patch_dispatchers() -> None:
    """Let the dispatchers of NumPy's functions return the nodes in lists as well."""
    for dispatcher in ops.dispatchers():
        patch_code(dispatcher, _relevant_arguments)


def _relevant_arguments(dispatcher: object, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = original(*args, **kwargs)
    filename = frame_up(3).f_code.co_filename  # of the caller of the NumPy function
    if source_lines.is_package_code(filename):
        return relevant  # compgraph and autodiff stack lists of nodes themselves
    if not (is_tracing() and open_interceptions) and not is_call_inspected(filename):
        return relevant
    relevant = tuple(relevant)
    lists = [value for value in relevant if type(value) in (list, tuple)]
    node_arguments = [v for v in (*args, *kwargs.values()) if isinstance(v, Value)]  # np.sum(plain, initial=x), np.take(plain, i)
    return (*relevant, *node_arguments, *[leaf for leaf in flatten_sequences(lists) if isinstance(leaf, Value)])


Args = tuple[Any, ...]
Options = dict[str, Any]
Function = Callable[..., Any]


# ------------------------------------------------------------------- np.vectorize and np.poly1d (handlers of `patch_code`)


def run_vectorized(function: object, original: Function, args: Args, kwargs: Options) -> Any:
    """``np.vectorize(f)(*args)``: call f on elements of nodes, or on the axes that its signature names; stack results."""
    vectorized, *values = args
    vectorized_keywords = {name: value for name, value in kwargs.items() if name not in vectorized.excluded}
    positions = [k for k in range(len(values)) if k not in vectorized.excluded]
    if not positions and not vectorized_keywords:
        return vectorized.pyfunc(*values, **kwargs)
    operands = [*[values[k] for k in positions], *vectorized_keywords.values()]
    if vectorized.signature is None:
        operands = list(np.broadcast_arrays(*map(_as_operand, operands)))
        shape = operands[0].shape
    else:
        operands, shape = _broadcast_loop_axes(vectorized, operands)
    results = []
    for index in np.ndindex(shape):
        elements = [operand[index] for operand in operands]
        if vectorized.signature is None:
            elements = list(map(_as_python_number, elements))
        arguments = list(values)
        for k, element in zip(positions, elements[: len(positions)], strict=True):
            arguments[k] = element
        keywords = {**kwargs, **dict(zip(vectorized_keywords, elements[len(positions) :], strict=True))}
        results.append(vectorized.pyfunc(*arguments, **keywords))
    if not results:
        return original(*args, **kwargs)
    columns = list(zip(*results, strict=True)) if isinstance(results[0], tuple) else [results]
    if vectorized.signature is not None and len(columns) != (expected := len(vectorized._in_and_out_core_dims[1])):
        raise ValueError(f"wrong number of outputs from pyfunc: expected {expected}, got {len(columns)}")
    outputs = []
    for k, column in enumerate(columns):
        core_shape = () if vectorized.signature is None else np.shape(column[0])
        outputs.append(_stack_results(list(column), (*shape, *core_shape), vectorized.otypes, k))
    return tuple(outputs) if isinstance(results[0], tuple) else outputs[0]


def _broadcast_loop_axes(vectorized: Any, values: Sequence[object]) -> tuple[list[Any], tuple[int, ...]]:
    """Broadcast the axes that the signature of an `np.vectorize` does not name, and return their shape, too."""
    dimensions = vectorized._in_and_out_core_dims[0]
    if len(values) != len(dimensions):
        raise TypeError(f"wrong number of positional arguments: expected {len(dimensions)}, got {len(values)}")
    operands = [stacked if isinstance(stacked := stack_nested(value), Value) else np.asanyarray(stacked) for value in values]
    shape, _ = ops.parse_input_dimensions(operands, dimensions)
    return [np.broadcast_to(x, shape + x.shape[x.ndim - len(d) :]) for x, d in zip(operands, dimensions, strict=True)], shape


def _as_python_number(element: object) -> Any:
    """Mark an element that is a node as a Python number, which `np.vectorize` would pass."""
    return mark_python_number(element) if isinstance(element, Value) else element


def _as_operand(value: object) -> Any:
    value = stack_nested(value)
    return value if isinstance(value, Value) else np.asarray(value, object)  # as in np.vectorize: elements are Python numbers


def _stack_results(results: list[Any], shape: tuple[int, ...], otypes: Sequence[Any] | None, output_index: int) -> Any:
    array = np.reshape(arrays.asarray(results), shape)
    return array if otypes is None else array.astype(otypes[output_index])


def init_poly1d(init: Function, original: Function, args: Args, kwargs: Options) -> None:
    """Initialize an `np.poly1d`. Raise if leading zeros of a node are dropped, because their derivatives would be lost."""
    original(*args, **kwargs)
    polynomial, coefficients = inspect.signature(init).bind(*args, **kwargs).args[:2]
    coefficients = stack_nested(coefficients)
    if isinstance(coefficients, Value) and coefficients.ndim and len(polynomial.coeffs) < len(coefficients):
        raise ValueError(
            "np.poly1d drops leading coefficients that are zero, and their derivatives would be lost: use np.polyval(c, x), or "
            "np.polynomial.Polynomial, which keeps them"
        )


# --------------------------------------------------------------------------------------------------- np.ndenumerate


def wrap_ndenumerate(original: Function) -> Function:
    """Wrap ``np.ndenumerate``, so that it enumerates the elements of a node."""

    @functools.wraps(original, updated=())
    def enumerate_array(array: object) -> Any:
        array = stack_nested(array) if is_tracing() else array
        return _iterate_elements(array) if isinstance(array, Value) else original(array)

    return enumerate_array


def _iterate_elements(array: Value) -> Iterator[tuple[tuple[int, ...], Any]]:
    for index in np.ndindex(array.shape):
        yield index, array[index]


# ------------------------------------------------------------------------------------------------------ np.fromiter


def wrap_fromiter(original: Function) -> Function:
    """Wrap ``np.fromiter``, so that it records an iterable that contains nodes."""

    @functools.wraps(original)
    def fromiter(*args: Any, **kwargs: Any) -> Any:
        filename = frame_up(1).f_code.co_filename
        if not is_tracing() or not open_interceptions:
            return _fromiter_at_top_level(filename, original, args, kwargs)
        if not RECEIVES_PATCHES[filename]:
            return original(*args, **kwargs)
        return _fromiter(*args, **kwargs)

    return fromiter


def _fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1, **options: Any) -> Any:
    """Call ``np.fromiter``; record the call if the iterable contains nodes."""
    items = list(iterable if count < 0 else itertools.islice(iterable, count))
    if not any(map(contains_node, items)):
        return _as_buffers(np.fromiter(items, dtype, count, **options))
    if len(items) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
    np.fromiter(map(to_values, items), dtype, **options)  # raises the error of NumPy for such elements
    return arrays.asarray(items, dtype)


def _fromiter_at_top_level(filename: str, original: Function, args: Args, kwargs: Options) -> Any:
    """Call ``np.fromiter`` at the top level; record the call if the iterable contains nodes.

    Like NumPy, it consumes at most `count` elements.
    """
    if not args or not is_call_inspected(filename) or not is_recording():
        return original(*args, **kwargs)
    items: Any = args[0]
    count: Any = kwargs.get("count", args[2] if len(args) > 2 else -1)
    if type(items) not in (list, tuple):
        items = list(items if count < 0 else itertools.islice(items, count))
    if not is_call_recorded(filename, [items]):
        return original(items, *args[1:], **kwargs)
    return _fromiter(items, *args[1:], **{name: value for name, value in kwargs.items() if name != "like"})


# ------------------------------------------------------------------------------------- np.r_, c_, mgrid and ogrid


class PatchedIndexer:
    """``np.r_``, ``np.c_``, ``np.mgrid`` or ``np.ogrid``, replaced while a function is differentiated.

    Parameters
    ----------
    original : object
        The object of NumPy.
    node_indexer : object or None
        The object for indices that contain nodes; None if NumPy's object accepts them.
    """

    def __init__(self, original: Any, node_indexer: Any) -> None:
        self._original, self._node_indexer = original, node_indexer

    def __getitem__(self, key: Any) -> Any:
        if not is_tracing():
            return self._original[key]
        parts = key if isinstance(key, tuple) else (key,)
        if self._node_indexer is not None and any(map(_index_contains_node, parts)):
            return self._node_indexer[key]
        return _as_buffers(self._original[key])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __len__(self) -> int:
        return len(self._original)

    def __bool__(self) -> bool:
        return bool(self._original)


def _as_buffers(array: object) -> Any:
    """Convert a newly allocated array, or a tuple of them, to buffers."""
    if type(array) is tuple:
        return tuple(map(_as_buffers, array))
    return as_buffer(array) if type(array) is np.ndarray and array.dtype.kind in NUMERIC else array


def _index_contains_node(part: object) -> bool:
    if isinstance(part, slice):
        return contains_node([part.start, part.stop, part.step])
    return contains_node(part)


# --------------------------------------------------------------------- methods of ufuncs, and np.ndarray

UFUNC_METHODS = {"reduce": (0,), "accumulate": (0,), "reduceat": (0,), "at": (2,)}  # with the positions of operands


def needs_substitute(function: FunctionType, names: Iterable[str], codes: Iterable[CodeType]) -> bool:
    """Whether a function, of some names and codes, calls a method of ufuncs, or ``np.ndarray``.

    The substitute of ``np.ndarray`` is another object. So it is not used in a module whose functions may compare it by identity
    (``type(x) is np.ndarray``), because the name ``np`` is bound for the whole module.
    """
    names = frozenset(names)
    if names & UFUNC_METHODS.keys():
        return True
    if "ndarray" not in names or not any(_uses_of_ndarray(code)[0] for code in codes):
        return False
    return not any(_uses_of_ndarray(code)[1] for code in _codes_of_module(function.__globals__))


@functools.lru_cache(maxsize=4096)
def _uses_of_ndarray(code: CodeType) -> tuple[bool, bool]:
    """Return whether code calls ``np.ndarray``, and whether it may compare it by identity.

    A call loads a method, or pushes NULL: with the global before Python 3.13, after the function from then on.
    """
    if "ndarray" not in code.co_names:
        return False, False
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    is_called = [
        instruction.opname == "LOAD_METHOD" or "NULL" in before.argrepr + instruction.argrepr or after.opname == "PUSH_NULL"
        for before, instruction, after in zip(instructions, instructions[1:], instructions[2:], strict=False)
        if instruction.argval == "ndarray" and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
    ]
    return any(is_called), not all(is_called) and any(i.opname == "IS_OP" for i in instructions)


def _codes_of_module(namespace: dict[str, Any]) -> Iterable[CodeType]:
    """Return the codes of the functions of a module, and of the methods of its classes."""
    values = list(namespace.values())
    for value in values:
        if isinstance(value, type) and value.__module__ == namespace.get("__name__"):
            values += vars(value).values()
        function = getattr(value, "__func__", value)  # of class methods
        pending = [function.__code__] if isinstance(function, FunctionType) and function.__globals__ is namespace else []
        while pending:
            code = pending.pop()
            yield code
            pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


class StackingUfunc:
    """A ufunc whose methods take nodes in lists; otherwise the ufunc itself."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return np.ufunc

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the ufunc."""
        return self._ufunc(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._ufunc

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ufunc, name)
        if name not in UFUNC_METHODS:
            return attribute
        positions = UFUNC_METHODS[name]
        return lambda *args, **kwargs: attribute(
            *[stack_nested(a) if k in positions else a for k, a in enumerate(args)], **kwargs
        )


class _ArrayClass(type):
    """The class of `_BufferClass`, which allocates buffers and otherwise behaves as ``np.ndarray``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Allocate an array: a buffer, unless it is a view of given memory or its elements are not numbers."""
        array = np.ndarray(*args, **kwargs)
        return as_buffer(array) if is_tracing() and array.base is None and array.dtype.kind in NUMERIC else array

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(np.ndarray)


class _BufferClass(metaclass=_ArrayClass):
    """``np.ndarray`` as a callable that allocates buffers."""


class _NumPySubstitute(ModuleType):
    """NumPy, except for the methods of ufuncs and for ``np.ndarray(shape)``."""

    def __getattr__(self, name: str) -> Any:
        if name == "ndarray":
            return _BufferClass
        attribute = getattr(np, name)
        return StackingUfunc(attribute) if isinstance(attribute, np.ufunc) and attribute.nin == 2 else attribute


NUMPY_SUBSTITUTE = _NumPySubstitute("numpy")
