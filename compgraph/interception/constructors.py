"""Patches of NumPy's array constructors, which return buffers and accept nodes.

A node may be written later into an array that ``np.zeros(n)`` creates. While a function is differentiated, the names of
constructors refer to these patches, for calls from user code. The functions that convert lists (`LIST_CONVERTERS`) are patched
permanently, and record lists with nodes outside of operators as well.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import arrays, ops
from ..frames import frame_up, is_internal
from ..graph import stack_nested
from ..guards import note_arange_length, note_conversion
from ..inplace import contains_node
from ..protocols import ClassView, construct_view
from ..storage import address_of, owner_of
from ..tracing import is_tracing
from ..values import NUMERIC, TRACEABLE, Value, as_buffer, new_view, require_unbatched, unwrap_buffer, unwrap_buffers, wrap_result
from .callers import RECEIVES_BUFFERS, RECEIVES_PATCHES, is_library, runs_on_nodes, works_on_tracers
from .code_patches import NODE_FREE_TYPES
from .random_functions import Generator, traceable_generator
from .undispatched_functions import is_call_recorded, open_interceptions

ndarray = np.ndarray
Args = tuple[Any, ...]
Options = dict[str, Any]
Function = Callable[..., Any]
_IGNORED_OPTIONS = frozenset({"subok", "device", "like"})  # they change nothing for a node


# ---------------------------------------------------------------------------------------------------- the tables


def _arange_of_nodes(*args: Any, **kwargs: Any) -> Any:
    """``numpy.arange`` of nodes: ``start + k * step``, where the number of elements is plain."""
    arguments = dict(zip(("start", "stop", "step"), args, strict=False)) | kwargs
    if "stop" not in arguments:
        arguments = {**arguments, "start": 0, "stop": arguments.get("start", 0)}
    start, step = arguments.get("start", 0), arguments.get("step", 1)
    require_unbatched("np.arange", start, arguments["stop"], step)
    numbers = [v.raw_value if isinstance(v, Value) else v for v in (start, arguments["stop"], step)]
    note_arange_length(start, arguments["stop"], step)
    count = as_buffer(np.arange(len(np.arange(*numbers))))
    points = start + count * step
    return points if arguments.get("dtype") is None else points.astype(arguments["dtype"])


# The names of constructors in NumPy, and the functions that replace them for nodes. None: NumPy dispatches to nodes, and the
# patch only converts results of plain arguments to buffers.
CONSTRUCTORS: dict[str, Function | None] = {
    spec.function.__name__: getattr(arrays, spec.function.__name__, _arange_of_nodes) if spec.converts else None
    for spec in (*ops.OPERATIONS, *ops.UNDISPATCHED)
    if spec.returns_buffer
}
# Constructors in NumPy's submodules.
POLYNOMIAL_QUADRATURES: dict[str, tuple[str, ...]] = {
    f"numpy.polynomial.{family}": (f"{short}gauss",)
    for family, short in {
        "legendre": "leg", "chebyshev": "cheb", "hermite": "herm", "hermite_e": "herme", "laguerre": "lag",
    }.items()
}  # fmt: skip
CONSTRUCTOR_NAMES = frozenset(CONSTRUCTORS)

# Functions that convert lists without dispatch; their patches record a list with nodes at the top level, too. If the value is
# True, they also record a single node as an argument; the others convert it to a plain array.
LIST_CONVERTERS = {
    spec.function.__name__: spec.converts == "elements" for spec in ops.UNDISPATCHED if spec.converts and spec.returns_buffer
}
_LIST_ONLY_CONVERTERS = frozenset(spec.function for spec in ops.UNDISPATCHED if spec.converts == "lists")
_CONSTRUCTORS_KEEPING_SUBCLASSES = frozenset(spec.function for spec in ops.UNDISPATCHED if spec.keeps_subclasses)


# --------------------------------------------------------------------------------------------------- the patches


def wrap_constructor(original: Function, node_function: Function | None, takes_nodes: bool | None = None) -> Function:
    """Wrap a constructor for user code within a function that is differentiated.

    At the top level the original runs, unless the function is in `LIST_CONVERTERS`; `takes_nodes` is the value in this table.
    """

    @functools.wraps(original)
    def construct(*args: Any, **kwargs: Any) -> Any:
        if not open_interceptions and len(args) == 1 and not kwargs and (type(args[0]) in NODE_FREE_TYPES or _is_plain(args[0])):
            return original(args[0])
        if not open_interceptions or not is_tracing():
            if takes_nodes is None or (len(args) == 1 and not kwargs and _is_plain(args[0])):
                return original(*args, **kwargs)
            return _construct_at_top_level(frame_up(1), original, node_function, args, kwargs)
        if not RECEIVES_PATCHES[frame_up(1).f_code.co_filename]:
            return original(*args, **kwargs)
        if args and isinstance(args[0], ClassView) and takes_nodes is not None:
            keeps_class = original in _CONSTRUCTORS_KEEPING_SUBCLASSES or bool(kwargs.get("subok"))
            if not isinstance(args[0].traced, Value):
                return construct_view(original, args, kwargs, keeps_class)
            return construct_view(node_function, args, _without_options(kwargs, *_IGNORED_OPTIONS), keeps_class)  # type: ignore[arg-type]
        like = kwargs.get("like")
        if isinstance(like, Value):  # NumPy would pass this function, which is in no table, to the node's protocol
            return like.__array_function__(original, (type(like),), args, _without_options(kwargs, "like"))
        for value in (*args, *kwargs.values()):
            if contains_node(value):
                if node_function is None:  # NumPy calls the node's protocol
                    return result_as_buffer(original(*args, **kwargs), args)
                if original in _LIST_ONLY_CONVERTERS and _is_object(kwargs.get("dtype", args[1] if len(args) > 1 else None)):
                    return _object_array(args[0])
                return node_function(*args, **_without_options(kwargs, *_IGNORED_OPTIONS))
        if takes_nodes is not None and any(type(value) in TRACEABLE for value in (*args, *kwargs.values())):
            # Whether NumPy's function would read the memory of a buffer depends on the version of Python.
            sources = (*args, *kwargs.values())
            array, args = original(*unwrap_buffers(args), **unwrap_buffers(kwargs)), sources
        else:
            try:
                array = original(*args, **kwargs)
            except ValueError:
                value = _values_of_container(args)
                if value is None or node_function is None:
                    raise
                return node_function(value, *args[1:], **_without_options(kwargs, *_IGNORED_OPTIONS))
        frame = frame_up(1)
        if frame.f_code.co_name == "__array__":  # NumPy requires an array
            return unwrap_buffer(array)
        makes_buffer = RECEIVES_BUFFERS[frame.f_code.co_filename] or works_on_tracers(frame)
        return result_as_buffer(array, args) if makes_buffer else array

    return construct


def _values_of_container(args: Args) -> Value | None:
    """Return the node or buffer that the ``__array__`` of a container, as a data frame, returns; NumPy rejects it."""
    values = args[0].__array__() if args and hasattr(args[0], "__array__") else None
    return values if isinstance(values, Value) else None


def _without_options(options: Options, *names: str) -> Options:
    return {name: value for name, value in options.items() if name not in names}


def _is_plain(value: Any) -> bool:
    """Whether a value is of a class without nodes, or a list (nested once at most) of such values: the common calls."""
    cls = type(value)
    if cls in NODE_FREE_TYPES:
        return True
    if cls not in _LIST_CLASSES:
        return False
    if NODE_FREE_TYPES.issuperset(map(type, value)):
        return True
    return _LIST_CLASSES.issuperset(map(type, value)) and NODE_FREE_TYPES.issuperset(
        map(type, itertools.chain.from_iterable(value))
    )


_LIST_CLASSES = frozenset({list, tuple})


def _construct_at_top_level(frame: FrameType, original: Function, node_function: Any, args: Args, kwargs: Options) -> Any:
    """Call one of `LIST_CONVERTERS` outside of operators: a list that holds nodes is recorded."""
    if NODE_FREE_TYPES.issuperset(map(type, args)) and NODE_FREE_TYPES.issuperset(map(type, kwargs.values())):
        return original(*args, **kwargs)
    like: Any = kwargs.get("like")
    if hasattr(like, "__array_function__") and type(like) is not ndarray:
        return like.__array_function__(original, (type(like),), args, _without_options(kwargs, "like"))
    filename, takes_nodes = frame.f_code.co_filename, LIST_CONVERTERS[original.__name__]
    if takes_nodes or runs_on_nodes(filename):
        values: Any = [list(args), list(kwargs.values())]
    else:
        values = args[:1] or [kwargs.get("object", kwargs.get("a"))]
    if is_tracing() and original in _CONSTRUCTORS_KEEPING_SUBCLASSES and isinstance(values[0], Value):
        return node_function(*args, **_without_options(kwargs, *_IGNORED_OPTIONS))
    if not is_call_recorded(filename, values):
        array = original(*args, **kwargs)
        if isinstance(values[0], Value) and not isinstance(array, Value) and not is_library(filename):
            note_conversion(values[0], f"np.{original.__name__}()", frame)
        return array
    if _is_object(kwargs.get("dtype", args[1] if len(args) > 1 and not takes_nodes else None)):
        return _with_node_elements(original(*args, **kwargs), args)
    return node_function(*args, **_without_options(kwargs, *_IGNORED_OPTIONS))


def _with_node_elements(array: NDArray[Any], args: Args) -> Any:
    """Replace the plain numbers that NumPy read from a node into an object array by elements of the node."""
    node = stack_nested(args[0]) if args and not any(isinstance(v, Value) for v in array.ravel().tolist()) else None
    return _object_array(node) if isinstance(node, Value) and node.shape == array.shape else array


def _object_array(values: NDArray[Any] | list[Any]) -> Any:
    """Convert nested lists with nodes to an object array of nodes and elements of nodes."""
    array = np.empty(np.array(_nodes_as_zeros(values), object).shape, object)
    for index in np.ndindex(array.shape):
        array[index] = functools.reduce(operator.getitem, index, values)
    return array


def _nodes_as_zeros(values: object) -> Any:
    """Replace the nodes in nested lists by arrays of zeros, of which NumPy infers the shape."""
    if isinstance(values, Value):
        return np.zeros(values.shape)
    return list(map(_nodes_as_zeros, values)) if isinstance(values, (list, tuple)) else values


def _is_object(dtype: DTypeLike | None) -> bool:
    return dtype is object or (dtype is not None and dtype == np.dtype(object))


def result_as_buffer(array: Any, args: Sequence[object]) -> Any:
    """Convert a new array to a buffer, which becomes a tracer once a tracer is written into it.

    Lists and tuples of arrays are converted likewise, structured arrays to a `StructuredBuffer`. A view of a buffer among the
    arguments becomes a view of that buffer; a view of another argument is returned unchanged.
    """
    if type(array) is not ndarray:
        return type(array)([result_as_buffer(part, args) for part in array]) if type(array) in (list, tuple) else array
    if array.dtype.names is not None and array.base is None:
        return new_view(array, StructuredBuffer)
    if array.dtype.kind not in NUMERIC:
        return array
    owner = owner_of(array)
    for value in args:
        if isinstance(value, ndarray) and owner_of(value) is owner:
            if type(value) not in TRACEABLE:
                return array
            is_whole = array.shape == value.shape and array.strides == value.strides and array.dtype == value.dtype
            return value if is_whole and address_of(array) == address_of(unwrap_buffer(value)) else wrap_result(array, (value,))
    return as_buffer(array)


def wrap_default_rng(original: Function) -> Function:
    """Wrap ``np.random.default_rng``, so that user code gets generators whose parameters may be nodes."""

    @functools.wraps(original)
    def default_rng(*args: object, **kwargs: object) -> Any:
        generator = original(*args, **kwargs)
        if not is_tracing() or isinstance(generator, Generator) or is_internal(frame_up(1).f_code.co_filename):
            return generator
        seed = args[0] if args else kwargs.get("seed")
        is_seeded = seed is not None and not isinstance(seed, np.random.Generator | np.random.BitGenerator)
        return traceable_generator(generator, is_seeded)

    return default_rng


# --------------------------------------------------------------------------------------------- structured arrays


class StructuredBuffer(np.ndarray):
    """A structured array created within a differentiated function; each field is a buffer: ``bodies["mass"] = x``."""

    __slots__ = ("_fields",)

    _fields: dict[str, Any]

    def _field(self, name: str) -> Any:
        """The array of a field: always the same object, so that it can become a node."""
        fields = getattr(self, "_fields", None)
        if fields is None:
            fields = self._fields = {}
        if name not in fields:
            field = np.ndarray.__getitem__(new_view(self, np.ndarray), name)
            fields[name] = as_buffer(field) if field.dtype.kind in "fc" else field
        return fields[name]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str) and self.dtype.names is not None and index in self.dtype.names:
            return self._field(index)
        self._require_plain()
        return np.ndarray.__getitem__(self, index)

    def __setitem__(self, index: Any, value: object) -> None:
        if isinstance(index, str):
            self._field(index)[...] = value
            return
        if contains_node(value):
            raise TypeError('a node cannot be written into a whole record; write field by field: records["mass"][i] = x')
        self._require_plain()
        np.ndarray.__setitem__(self, index, value)

    def _require_plain(self) -> None:
        """Raise a TypeError if a field is a node, because whole records then cannot be read or written."""
        nodes = [name for name, field in (getattr(self, "_fields", None) or {}).items() if isinstance(field, Value)]
        if nodes:
            raise TypeError(
                f"whole records cannot be read or written, because their field {nodes[0]!r} is a node; index the field first: "
                f'records["{nodes[0]}"][i]'
            )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self._require_plain()
        return np.ndarray.__array_function__(self, function, types, args, kwargs)

    def __reduce__(self) -> Any:
        self._require_plain()
        return new_view(self, np.ndarray).__reduce__()
