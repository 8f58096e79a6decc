"""Compiled libraries that read the memory of an array by the dtype it reports: numba, h5py, pyFFTW.

A node within an operator is traced: it reports the dtype of its value, and its memory holds references. Most compiled code
checks the dtype of the memory, and raises. These libraries use the reported dtype, and would read or write references as numbers.
They are patched on import: numba runs the Python function that it compiled, h5py stores the values, the
interfaces of pyFFTW call NumPy and SciPy, and the rest raises.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..context import is_recording
from ..frames import frame_up
from ..graph import flatten_sequences, to_values
from ..guards import note_saved
from ..tracing import OPAQUE_CLASSES, leak_error
from ..values import BUFFERS, Node, describe, is_tracer, unwrap_buffers
from .exchanged import exchange


def traced_in(*values: Any) -> Any:
    """Return the first traced node among some values, and in lists, tuples and dictionaries among them, or None."""
    return next((leaf for value in values for leaf in _leaves(value) if is_tracer(leaf)), None)


def _holds_buffer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(type(leaf) in BUFFERS for value in (*args, kwargs) for leaf in _leaves(value))


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _leaves(value: Any) -> tuple[Any, ...]:
    return flatten_sequences(tuple(value.values()) if isinstance(value, dict) else value)


def _require_untraced(values: Any, depth: int = 1) -> None:
    """Raise if a traced node is among the arguments of the function `depth` calls up, which stands in for `original`."""
    node = traced_in(*values)
    if node is not None:
        raise leak_error(frame_up(depth), f"the {describe(node)}")


def _refusing(original: Any, fills: bool = False) -> Any:
    """Wrap a method so that it raises for traced nodes; one that only `fills` arrays is given the memory of buffers."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        _require_untraced((*args, kwargs))
        return original(*unwrap_buffers(args), **unwrap_buffers(kwargs)) if fills else original(*args, **kwargs)

    return call


# --------------------------------------------------------------------------------------------- numba


def enter_numba() -> None:
    """Let dispatchers run their Python functions on traced nodes; other parts of numba find no type for these."""
    core = _module("numba.core.dispatcher")
    extending, dispatcher = _module("numba.extending"), core._DispatcherBase
    # The type of traced nodes, for which no function is compiled.
    traced = type("Traced", (_module("numba.core.types").Type,), {})(name := "compgraph node")
    OPAQUE_CLASSES.add(name)  # by which numba's errors show them
    by_memory, compiled = extending.typeof_impl.dispatch(np.ndarray), dispatcher._compile_for_args

    @extending.typeof_impl.register(Node)  # type: ignore[untyped-decorator]
    @extending.typeof_impl.register(np.ndarray)  # type: ignore[untyped-decorator]
    def typeof_node(value: Any, context: Any) -> Any:
        return traced if is_tracer(value) or type(value) in BUFFERS else by_memory(value, context)

    def represent(manager: Any, traced: Any) -> Any:  # containers call it to compile functions for their items
        raise leak_error(frame_up(1))

    def compile_for_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        if traced_in(*args, kwargs) is None:
            if not _holds_buffer(args, kwargs):
                return compiled(self, *args, **kwargs)
            return lambda *args, **kwargs: self(*unwrap_buffers(args), **unwrap_buffers(kwargs))
        function = self.py_func
        if str(function.__globals__.get("__name__", "numba")).partition(".")[0] == "numba":  # of containers and jitclass
            _require_untraced((*args, kwargs))

        def interpreted(*args: Any, **kwargs: Any) -> Any:
            values = [value.value if isinstance(value, core.OmittedArg) else value for value in args]
            if function.__code__.co_flags & inspect.CO_VARARGS:  # numba has gathered these
                values = [*values[:-1], *values[-1]]
            return function(*values, **kwargs)

        return interpreted

    extending.register_model(type(traced))(represent)
    dispatcher._compile_for_args = compile_for_args


# --------------------------------------------------------------------------------------------- h5py


def enter_h5py() -> None:
    """Let the methods that store arrays store the values of nodes, as `numpy.save` does; `read_direct` raises."""
    h5py = _module("h5py")
    for owner, names in (
        (h5py.Dataset, ("__setitem__", "write_direct")),
        (h5py.Group, ("__setitem__", "create_dataset", "require_dataset")),
        (h5py.AttributeManager, ("__setitem__", "create", "modify")),
    ):
        for name in names:
            setattr(owner, name, _store_values(getattr(owner, name), f"h5py.{owner.__name__}.{name}"))
    h5py.Dataset.read_direct = _refusing(h5py.Dataset.read_direct, fills=True)


def _store_values(method: Any, name: str) -> Any:
    """Wrap a method so that it stores the values of traced nodes, with a warning."""

    @functools.wraps(method)
    def store(self: Any, *args: Any, **kwargs: Any) -> Any:
        if traced_in(*args, kwargs) is not None:
            args, kwargs = to_values(args), to_values(kwargs)
            if is_recording():
                note_saved(name)
        return method(self, *args, **kwargs)

    return store


# --------------------------------------------------------------------------------------------- pyFFTW


def enter_pyfftw() -> None:
    """Let the functions of its interfaces call the functions of NumPy and SciPy that they replace; all others raise."""
    pyfftw = _module("pyfftw")
    for name, replaces in (("numpy_fft", "numpy.fft"), ("scipy_fft", "scipy.fft"), ("scipy_fftpack", None)):
        module = _module(f"pyfftw.interfaces.{name}")
        for function in _functions(module):
            own = getattr(_module(replaces), function.__name__, None) if replaces else None
            exchange(function, _raise_for_traced if own is None else _make_answer(own))
    utilities = _module("pyfftw.builders._utils")
    for function in (*_functions(_module("pyfftw.builders.builders")), *_functions(utilities)):
        exchange(function, _raise_for_traced)
    exchange(utilities._FFTWWrapper.__call__, _raise_for_traced)
    pyfftw.FFTW = pyfftw.pyfftw.FFTW = _checked(pyfftw.FFTW)


def _functions(module: Any) -> list[Any]:
    """The Python functions that a module defines."""
    return [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__ == module.__name__]


def _raise_for_traced(function: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _require_untraced((*args, kwargs))
    return original(*args, **kwargs)


def _make_answer(own: Any) -> Callable[..., Any]:
    """Make an answer that calls `own` on traced nodes, with the arguments that both functions have."""

    def answer(function: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if traced_in(*args, kwargs) is None:
            return original(*args, **kwargs)
        bound = inspect.signature(original).bind(*args, **kwargs).arguments
        known = inspect.signature(own).parameters
        return own(**{name: value for name, value in bound.items() if name in known})

    return answer


def _checked(plan: Any) -> Any:
    """Make a class of plans whose instances raise for traced nodes."""

    class Kind(type):
        def __instancecheck__(cls, value: Any) -> bool:  # also for plans that the builders make
            return isinstance(value, plan) if cls is FFTW else type.__instancecheck__(cls, value)

    class FFTW(plan, metaclass=Kind):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            _require_untraced((*args, kwargs), 2)
            return plan.__new__(cls, *args, **kwargs)

        __call__ = _refusing(plan.__call__)
        update_arrays = _refusing(plan.update_arrays)

    FFTW.__module__, FFTW.__qualname__, FFTW.__doc__ = plan.__module__, plan.__qualname__, plan.__doc__
    return FFTW
