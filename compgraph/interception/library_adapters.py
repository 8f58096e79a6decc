"""Adapters of other libraries, registered with each of them when it is imported.

=============  ============================================================================================================
matplotlib     draws the values of a node
Dask           tokenizes every node differently, because nodes with equal values may have different graphs
distributed    pickles a node, with its graph; it would send arrays as plain data
numba          runs the Python function that it compiled on traced nodes
h5py           stores the values of nodes; raises for traced nodes
pandas         makes columns of nodes
joblib         hashes the values of nodes; its caches compute calls with nodes
numpy.ma       computes with the data of masked arrays without masked elements; raises for masked elements
pyFFTW         its interfaces call NumPy and SciPy for traced nodes; the rest raises
hashlib, zlib  raise for traced nodes, as does ``np.frombuffer``
=============  ============================================================================================================

The modules in the lower half of the table are compiled libraries that read the memory of an array by the dtype that it reports.
A traced node reports the dtype of its value, but its memory contains references. Most compiled code checks the dtype of the
memory, and raises. These libraries use the reported dtype, and would read or write references as numbers.

An operation of a dask array and a node raises a TypeError: it would load the whole dask array, or lose the graph of the node.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import io
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import arrays
from ..frames import frame_up
from ..graph import flatten_sequences, stack_nested, to_values, without_mask
from ..tracing import OPAQUE_CLASSES, is_retraceable, make_leak_error
from ..values import BLOCKWISE_ADVICE, BUFFERS, Node, Value, describe, is_tracer, unwrap_buffer, unwrap_buffers
from .code_patches import patch_code

Function = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]


def _module(name: str) -> Any:
    return importlib.import_module(name)


# ---------------------------------------------------------------------------------------------------- Matplotlib


def adapt_matplotlib() -> None:
    """Let axes draw the values of nodes.

    Matplotlib converts values along an axis by its registry of units, arguments of plotting methods by `sanitize_sequence`, and
    data of images and collections by `safe_masked_invalid`; triangulations and arrows have functions of their own.
    """
    units, cbook, quiver = _module("matplotlib.units"), _module("matplotlib.cbook"), _module("matplotlib.quiver")
    triangulation = _module("matplotlib.tri").Triangulation.get_from_args_and_kwargs
    arrows = quiver.Quiver.set_UVC, quiver.Barbs.set_UVC
    for function in (cbook.sanitize_sequence, cbook.safe_masked_invalid, triangulation, *arrows):
        patch_code(function, _call_with_values)

    class ValueConverter(units.ConversionInterface):  # type: ignore[misc, name-defined]
        @staticmethod
        def convert(value: object, unit: object, axis: object) -> Any:
            return np.asarray(to_values(value))

    units.registry[Value] = ValueConverter()


def _call_with_values(function: object, original: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return original(*to_values(args), **to_values(kwargs))


# ---------------------------------------------------------------------------------------------------------- Dask


def adapt_dask() -> None:
    """Let Dask tokenize nodes; operations of its collections with nodes raise."""
    _module("dask.tokenize").normalize_token.register(Value, _token)
    Value.__dask_graph__ = property(_dask_graph)  # type: ignore[attr-defined]


def adapt_distributed() -> None:
    """Let messages between workers pickle nodes."""
    _module("distributed.protocol.serialize").dask_serialize.register(Value, _pickle_instead)


def _token(node: Value) -> str:
    frame: Any = sys._getframe(1)
    while _module_name(frame) in ("dask.tokenize", "dask.utils"):
        frame = frame.f_back
    if _module_name(frame).startswith("dask.array"):  # a dask array on the left of an operator, or a function of Dask
        raise TypeError(
            f"an operation of dask.array got a node of shape {node.shape}, so its result would lose the graph. Use "
            f"value.compute() in place of the dask array, or node.value where a plain array is meant. {BLOCKWISE_ADVICE}"
        )
    return os.urandom(16).hex()


def _dask_graph(node: Value) -> Any:
    """``__dask_graph__`` of nodes, which only collections of Dask have.

    Dask looks for it in the arguments of a NumPy function that it lacks, to load its own arrays and to call the function with the
    node.
    """
    frame: Any = sys._getframe(1)
    while _module_name(frame) == "dask.base":
        frame = frame.f_back
    if _module_name(frame) == "dask.array.core" and frame.f_code.co_name == "handle_nonmatching_names":
        name = getattr(frame.f_locals.get("func"), "__name__", "a function")
        raise TypeError(
            f"np.{name} got a node of shape {node.shape} and a dask array, which it would load whole. Use value.compute() in "
            f"place of the dask array, or of the part that is needed. {BLOCKWISE_ADVICE}"
        )
    raise AttributeError("__dask_graph__")


class _NotSerializedError(NotImplementedError, TypeError):
    """Makes Dask pickle a node: its serializer of arrays falls back on a NotImplementedError, its pickler on a TypeError."""


def _pickle_instead(node: Value) -> Any:
    raise _NotSerializedError("a node is pickled with its graph, not serialized as an array")


def _module_name(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


# --------------------------------------------------------------------------- compiled libraries that read memory


def _find_traced(*values: object) -> Value | None:
    """The first traced node among some values, and in lists, tuples and dictionaries among them."""
    return next((leaf for value in values for leaf in _leaves(value) if is_tracer(leaf)), None)


def _holds_buffer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(type(leaf) in BUFFERS for value in (*args, kwargs) for leaf in _leaves(value))


def _leaves(value: object) -> tuple[Any, ...]:
    return flatten_sequences(tuple(value.values()) if isinstance(value, dict) else value)


def _require_untraced(values: Iterable[object], depth: int = 1) -> None:
    """Raise if a value is a traced node; the error is located `depth` frames above the caller."""
    node = _find_traced(*values)
    if node is not None:
        raise make_leak_error(frame_up(depth), f"the {describe(node)}")


def _wrap_to_raise(original: Function, unwraps_buffers: bool = False) -> Function:
    """Wrap a function so that it raises for traced nodes; with `unwraps_buffers` it gets the memory of buffers."""

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> Any:
        _require_untraced((*args, kwargs))
        return original(*unwrap_buffers(args), **unwrap_buffers(kwargs)) if unwraps_buffers else original(*args, **kwargs)

    return call


MEMORY_READERS: dict[ModuleType, tuple[str, ...]] = {
    np: ("frombuffer",),
    hashlib: (*sorted(hashlib.algorithms_guaranteed & vars(hashlib).keys()), "new"),
    zlib: ("crc32", "adler32"),
}


def raising_reader(original: Function) -> Function:
    """Wrap a function of `MEMORY_READERS`, so that it raises for traced nodes."""

    @functools.wraps(original)
    def read(*args: object, **kwargs: object) -> Any:
        for value in args:
            if isinstance(value, Value) and is_tracer(value):
                raise make_leak_error(frame_up(1), f"the {describe(value)}")
        return original(*args, **kwargs)

    return read


# --------------------------------------------------------------------------------------------------------- numba


def adapt_numba() -> None:
    """Let dispatchers run their Python functions on traced nodes; other parts of numba find no type for these."""
    core = _module("numba.core.dispatcher")
    extending, dispatcher = _module("numba.extending"), core._DispatcherBase
    # The type of traced nodes, for which no function is compiled.
    traced_type = type("Traced", (_module("numba.core.types").Type,), {})(name := "compgraph node")
    OPAQUE_CLASSES.add(name)  # numba's errors show the type by this name
    typeof_memory, compile_original = extending.typeof_impl.dispatch(np.ndarray), dispatcher._compile_for_args

    @extending.typeof_impl.register(Node)  # type: ignore[untyped-decorator]
    @extending.typeof_impl.register(np.ndarray)  # type: ignore[untyped-decorator]
    def typeof_node(value: object, context: object) -> Any:
        return traced_type if is_tracer(value) or type(value) in BUFFERS else typeof_memory(value, context)

    def represent(manager: object, traced: object) -> Any:  # containers call it to compile functions for their items
        raise make_leak_error(frame_up(1))

    def compile_for_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _find_traced(*args, kwargs) is None:
            if not _holds_buffer(args, kwargs):
                return compile_original(self, *args, **kwargs)
            return lambda *args, **kwargs: self(*unwrap_buffers(args), **unwrap_buffers(kwargs))
        function = self.py_func
        if str(function.__globals__.get("__name__", "numba")).partition(".")[0] == "numba":  # of containers and jitclass
            _require_untraced((*args, kwargs))

        def run_in_python(*args: Any, **kwargs: Any) -> Any:
            values = [value.value if isinstance(value, core.OmittedArg) else value for value in args]
            if function.__code__.co_flags & inspect.CO_VARARGS:  # numba has packed these into a tuple
                values = [*values[:-1], *values[-1]]
            return function(*values, **kwargs)

        return run_in_python

    extending.register_model(type(traced_type))(represent)
    dispatcher._compile_for_args = compile_for_args


# ---------------------------------------------------------------------------------------------------------- h5py


def adapt_h5py() -> None:
    """Let the methods that store arrays store the values of nodes, and raise for traced nodes; `read_direct` raises."""
    h5py = _module("h5py")
    for owner, names in (
        (h5py.Dataset, ("__setitem__", "write_direct", "read_direct")),
        (h5py.Group, ("__setitem__", "create_dataset", "require_dataset")),
        (h5py.AttributeManager, ("__setitem__", "create", "modify")),
    ):
        for name in names:
            setattr(owner, name, _wrap_to_raise(getattr(owner, name), unwraps_buffers=True))


# -------------------------------------------------------------------------------------------------------- pandas


def adapt_pandas() -> None:
    """Let data frames and series be made of nodes.

    pandas 2 reads the attribute ``name`` of an array as the label of its only column. pandas 3 makes an array of objects of a
    list of numbers.
    """
    patch_code(_module("pandas").DataFrame.__init__, _make_frame)
    patch_code(_module("pandas.core.construction").sanitize_array, _sanitize_array)


def _make_frame(function: object, original: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    arguments = inspect.signature(original).bind(*args, **kwargs).arguments
    data, columns = arguments.get("data"), arguments.pop("columns", None)
    if not isinstance(data, Value) or data.ndim not in (1, 2):
        original(*args, **kwargs)
    elif not is_tracer(data):
        original(**{**arguments, "data": to_values(data), "columns": columns})
    else:
        table = data.reshape(len(data), -1)
        original(**{**arguments, "data": {str(k): column for k, column in enumerate(table.T)}})
        arguments["self"].columns = range(table.shape[1]) if columns is None else columns  # equal labels are no keys


def _sanitize_array(function: object, original: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make one array of a list of scalars, of which pandas makes a column."""
    arguments = inspect.signature(original).bind(*args, **kwargs).arguments
    data = arguments["data"]
    if isinstance(data, (list, tuple)) and arguments.get("dtype") is None and all(map(_is_number, data)):
        arguments["data"] = stack_nested(data) if _find_traced(data) is not None else np.array(to_values(data))
    return original(**arguments)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex, np.number)) or (isinstance(value, Value) and value.ndim == 0)


# -------------------------------------------------------------------------------------------------------- joblib


def adapt_joblib() -> None:
    """Let joblib hash the values of nodes. A cached function runs whenever an argument contains a node.

    A result loaded from the cache would be a separate graph with its own variables, and would not contribute to derivatives.
    """
    memory, hasher = _module("joblib.memory"), _module("joblib.hashing").NumpyHasher
    digest, save = hasher.hash, hasher.save

    @functools.wraps(digest)
    def digest_untraced(self: Any, *args: object, **kwargs: object) -> Any:
        self.tracer = None
        result = digest(self, *args, **kwargs)
        if self.tracer is not None:  # an error within `save` would be caught by joblib
            raise make_leak_error(frame_up(1), f"the {describe(self.tracer)}")
        return result

    @functools.wraps(save)
    def save_values(self: Any, value: object) -> None:
        if is_tracer(value):
            self.tracer, value = value, None
        save(self, ("node", to_values(value)) if isinstance(value, Value) else unwrap_buffer(value))

    hasher.hash, hasher.save = digest_untraced, save_values
    for cls in (memory.MemorizedFunc, memory.AsyncMemorizedFunc):
        cls.__call__ = _compute_for_nodes(cls.__call__, lambda result: result)
    memory.MemorizedFunc.call_and_shelve = _compute_for_nodes(memory.MemorizedFunc.call_and_shelve, memory.NotMemorizedResult)


def _compute_for_nodes(call: Function, wrap: Function) -> Function:
    """Wrap a method of a cached function so that it computes the result of arguments with nodes."""

    @functools.wraps(call)
    def compute(self: Any, *args: object, **kwargs: object) -> Any:
        return wrap(self.func(*args, **kwargs)) if _NodeFinder.finds_node((args, kwargs)) else call(self, *args, **kwargs)

    return compute


class _NodeFinder(pickle.Pickler):
    """Visits what a pickle would hold, without the contents of arrays and functions, up to the first node."""

    class _NodeError(Exception):
        pass

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, Value):
            raise self._NodeError
        is_skipped = inspect.isfunction(value) or (type(value) is np.ndarray and value.dtype != object)
        return (int, ()) if is_skipped else NotImplemented

    @classmethod
    def finds_node(cls, values: object) -> bool:
        try:
            cls(io.BytesIO()).dump(values)
        except cls._NodeError:
            return True
        except Exception:  # joblib cannot hash them either, and its error says why
            pass
        return False


# -------------------------------------------------------------------------------------------------------- pyFFTW


def adapt_pyfftw() -> None:
    """Let pyFFTW's interfaces call the functions of NumPy and SciPy that they replace; its other functions raise."""
    pyfftw = _module("pyfftw")
    for name, original in (("numpy_fft", "numpy.fft"), ("scipy_fft", "scipy.fft"), ("scipy_fftpack", None)):
        module = _module(f"pyfftw.interfaces.{name}")
        for function in _functions_of(module):
            counterpart = getattr(_module(original), function.__name__, None) if original else None
            patch_code(function, _raise_for_traced if counterpart is None else _call_for_traced(counterpart))
    utilities = _module("pyfftw.builders._utils")
    for function in (*_functions_of(_module("pyfftw.builders.builders")), *_functions_of(utilities)):
        patch_code(function, _raise_for_traced)
    patch_code(utilities._FFTWWrapper.__call__, _raise_for_traced)
    pyfftw.FFTW = pyfftw.pyfftw.FFTW = _raising_plan_class(pyfftw.FFTW)


def _functions_of(module: ModuleType) -> list[Any]:
    """The Python functions that a module defines."""
    return [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__ == module.__name__]


def _raise_for_traced(function: object, original: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _require_untraced((*args, kwargs))
    return original(*args, **kwargs)


def _call_for_traced(counterpart: Function) -> Function:
    """A handler that calls `counterpart` on traced nodes, with the arguments that both functions have."""

    def handle(function: object, original: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _find_traced(*args, kwargs) is None:
            return original(*args, **kwargs)
        arguments = inspect.signature(original).bind(*args, **kwargs).arguments
        parameters = inspect.signature(counterpart).parameters
        return counterpart(**{name: value for name, value in arguments.items() if name in parameters})

    return handle


def _raising_plan_class(plan: Any) -> Any:
    """A class of FFTW plans whose instances raise for traced nodes."""

    class PlanMeta(type):
        def __instancecheck__(cls, value: object) -> bool:  # also for plans that the builders make
            return isinstance(value, plan) if cls is FFTW else type.__instancecheck__(cls, value)

    class FFTW(plan, metaclass=PlanMeta):  # type: ignore[misc]
        def __new__(cls, *args: object, **kwargs: object) -> Any:
            _require_untraced((*args, kwargs), 2)
            return plan.__new__(cls, *args, **kwargs)

        __call__ = _wrap_to_raise(plan.__call__)
        update_arrays = _wrap_to_raise(plan.update_arrays)

    FFTW.__module__, FFTW.__qualname__, FFTW.__doc__ = plan.__module__, plan.__qualname__, plan.__doc__
    return FFTW


# -------------------------------------------------------------------------------------------------- numpy.ma


def adapt_masked_arrays() -> None:
    """Let the constructors and ufuncs of `numpy.ma` return nodes for traced nodes.

    `numpy.ma` reads the data of its operands. With a traced node, a masked array without masked elements is replaced by its
    data, and the result is a node. A masked array with masked elements raises. `numpy.ma` masks the elements of domain errors;
    a node holds nan there. Operators therefore compare the value of the function with its value for plain arrays. Outside of
    operators such operations raise.
    """
    core: Any = np.ma.core
    for cls in (core._MaskedUnaryOperation, core._MaskedBinaryOperation, core._DomainedBinaryOperation):
        patch_code(cls.__call__, _call_ufunc)
    patch_code(np.ma.MaskedArray.__new__, _construct)  # type: ignore[arg-type]
    patch_code(np.ma.getdata, lambda function, original, args, kwargs: _return_data(original, args, kwargs))  # type: ignore[arg-type]
    for name in ("atleast_1d", "atleast_2d", "atleast_3d", "vstack", "hstack", "dstack", "column_stack", "stack", "dot"):
        function = getattr(np.ma, name)
        if isinstance(function, FunctionType):
            patch_code(function, _call_counterpart(getattr(np, name)))


def _call_ufunc(function: object, original: Function, args: Args, kwargs: Options) -> Any:
    """Call the ufunc of an operation of `numpy.ma`."""
    if not is_retraceable():
        return original(*args, **kwargs)
    return args[0].f(*map(without_mask, args[1:]), **kwargs)


def _call_counterpart(counterpart: Function) -> Any:
    """Return a handler that calls the function of NumPy."""

    def handle(function: object, original: Function, args: Args, kwargs: Options) -> Any:
        if not is_retraceable():
            return original(*args, **kwargs)
        return counterpart(*[_without_masks(value) for value in args], **kwargs)

    return handle


def _without_masks(value: object) -> Any:
    return type(value)(map(_without_masks, value)) if type(value) is list or type(value) is tuple else without_mask(value)


def _return_data(original: Function, args: Args, kwargs: Options) -> Any:
    """Return the node itself for ``np.ma.getdata`` of a traced node."""
    return args[0] if is_retraceable() and args and isinstance(args[0], Value) else original(*args, **kwargs)


def _construct(function: object, original: Function, args: Args, kwargs: Options) -> Any:
    """Return the node for ``np.ma.array`` of a traced node; raise if elements are masked."""
    arguments = inspect.signature(original).bind(*args, **kwargs).arguments
    data, mask = arguments.get("data"), arguments.get("mask")
    if not is_retraceable() or arguments["cls"] is not np.ma.MaskedArray:
        return original(*args, **kwargs)
    without_mask(np.ma.MaskedArray(np.zeros(np.shape(mask)), mask=np.asarray(mask, bool)) if mask is not None else data)
    options = {name: arguments[name] for name in ("dtype", "copy", "ndmin") if name in arguments}
    return arrays.array(data, **{"copy": False, **options})
