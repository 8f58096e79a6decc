"""`Jitted`: a compiled function, its caches of programs by call signature, and the report on it."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..executor import fastest_backend
from ..tracing import is_tracing
from . import compiler_thread
from .call_signatures import (
    Call,
    NodeArgumentError,
    StaticParameters,
    dict_orders,
    extend_quick_key,
    flatten_arguments,
    key_of,
    make_call,
    record_call,
    signature_of,
    value_order,
)
from .compile_errors import NotCompilableError
from .specializations import SignatureCache, Specialization


def report(name: str, backend: str, caches: Sequence[SignatureCache], notes: Sequence[str]) -> str:
    """Return a report of several lines: a verdict, then the programs of each signature with their times.

    Parameters
    ----------
    name : str
        The name of the function.
    backend : str
        The name of the backend.
    caches : sequence of SignatureCache
        The cache of each signature.
    notes : sequence of str
        Reasons why calls without a signature run as NumPy.
    """
    lines = [f"{name}: {_verdict(backend, caches, notes)}"]
    lines += [f"  runs as NumPy: {note}" for note in notes]
    for cache in caches:
        lines.append(f"  ({cache.title})")
        if cache.rejection is not None:
            lines.append(f"    runs as NumPy: {cache.rejection}")
        lines += [f"    not compiled so far: {note}" for note in dict.fromkeys(cache.notes)]
        if not cache.specializations and cache.rejection is None:
            lines.append(f"    {_count(cache.calls, 'call')} so far, as NumPy")
        for number, specialization in enumerate(cache.specializations, 1):
            lines += _describe(number, specialization)
    return "\n".join(lines)


def _verdict(backend: str, caches: Sequence[SignatureCache], notes: Sequence[str]) -> str:
    """Summarize whether calls run compiled, compiled with NumPy calls, or as NumPy, with the first reason."""
    reasons = [*notes, *(cache.rejection for cache in caches if cache.rejection is not None)]
    compiled_caches = [cache for cache in caches if cache.specializations]
    if not compiled_caches:
        if reasons:
            return f"runs as NumPy: {reasons[0]}"
        return "not compiled so far" if caches else "not called so far"
    specializations = [specialization for cache in compiled_caches for specialization in cache.specializations]
    uncompiled = [reason for each in specializations if (reason := getattr(each.program, "numpy_reason", ""))]
    if len(uncompiled) == len(specializations):
        return f"runs as NumPy calls: {uncompiled[0]}"
    reasons += uncompiled
    verdict = f"compiled by {backend}"
    calls = max(getattr(specialization.program, "numpy_calls", 0) for specialization in specializations)
    if calls:
        verdict += f", with {_count(calls, 'NumPy call')} in each run"
    if reasons:
        verdict += f", but some arguments run as NumPy: {reasons[0]}"
    return verdict


def _describe(number: int, specialization: Specialization) -> list[str]:
    """Return the lines of a report on a program."""
    times = ", ".join(f"{step} {_time(seconds)}" for step, seconds in specialization.times.items())
    mean = f", {_time(specialization.seconds / specialization.timed)} each" if specialization.timed else ""
    lines = [f"    program {number}: {specialization.size} operations; {times}; {_count(specialization.runs, 'run')}{mean}"]
    if reason := getattr(specialization.program, "numpy_reason", ""):
        lines.append(f"      runs as NumPy calls: {reason}")
    return lines + [f"      {line}" for line in getattr(specialization.program, "report", ())]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"


_log = logging.getLogger(__name__)
ndarray = np.ndarray
MAX_SIGNATURES = 256  # call signatures with programs
MAX_STATIC_VALUES = 16  # values of static arguments compiled for the same shapes


def backend() -> str:
    """Return the name of the backend of compiled functions: ``"llvm"`` if it is available and works, else ``"numpy"``."""
    return fastest_backend()


P = ParamSpec("P")
R = TypeVar("R")


class Jitted(Generic[P, R]):
    """A compiled function, returned by `jit`; see there."""

    def __init__(self, f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...]) -> None:
        functools.update_wrapper(self, f)  # which sets `__wrapped__`
        self.options, self.static_argnames = options, static_argnames
        self.static_parameters = StaticParameters(f, static_argnames) if static_argnames else None
        self._caches_by_signature: dict[Any, SignatureCache] = {}
        self._caches_by_quick_key: dict[Any, tuple[SignatureCache, list[int] | None]] = {}  # with the order of values
        self._static_counts: dict[Any, int] = {}
        self._fallback_reasons: dict[str, int] = {}

    __wrapped__: Callable[..., Any]
    cache_class = SignatureCache
    dict_orders = staticmethod(dict_orders)  # also used for the keys of calls on nodes

    @property
    def backend(self) -> str:
        """The name of the backend, which is imported on first use."""
        return backend()

    @property
    def __func__(self) -> Callable[..., Any]:
        """The wrapped function, for code that unwraps callables as it unwraps methods."""
        return self.__wrapped__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function: run a program that matches the arguments, else NumPy."""
        if is_tracing():  # inside an operator
            return record_call(self, args, kwargs)
        key: list[Any] = []
        values: Any = args
        if kwargs:
            values = None
        else:
            for a in args:
                if type(a) is not ndarray:
                    values = None
                    break
                key += (a.dtype, a.shape, a.strides)
        if values is None:
            key, values = [*kwargs], []
            if self.static_parameters is not None or not extend_quick_key((*args, *kwargs.values()), key, values):
                return self._call_general(args, kwargs, None)
        call_key = tuple(key)
        entry = self._caches_by_quick_key.get(call_key)
        if entry is None:
            return self._call_general(args, kwargs, call_key)
        cache, order = entry
        match = cache.run_matching(values if order is None else [values[position] for position in order])
        if match is None:
            return self._call_general(args, kwargs, None)
        return match[0].build(match[1])

    def _call_general(self, args: tuple[Any, ...], kwargs: dict[str, Any], call_key: object) -> R:
        """Call with arguments of any kind; `call_key` is their quick key, or None."""
        try:
            leaves, structure = flatten_arguments(args, kwargs, self.static_parameters)
            key = key_of(leaves, structure, (args, kwargs))
        except NodeArgumentError:
            return record_call(self, args, kwargs)
        except NotCompilableError as error:
            self._record_fallback(str(error))
            return self.__wrapped__(*args, **kwargs)
        cache = self._caches_by_signature.get(key)
        if cache is not None and cache.specializations:
            if call_key is not None and self.static_parameters is None:
                self._caches_by_quick_key[call_key] = cache, value_order(make_call(leaves, structure, key))
            match = cache.run_matching(cache.values(leaves))
            if match is not None:
                return match[0].build(match[1])
        call = make_call(leaves, structure, key)
        cache = self._cache_of(call)
        if cache is None:
            return self.__wrapped__(*args, **kwargs)
        return cache.call_without_program(call, args, kwargs)

    def run_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any] | None, Callable[..., Any]]:
        """Run a program for plain arrays; return its result in a list (None if no program matches) and a fallback.

        The fallback ``call(args, kwargs)`` takes nodes with the same values. It calls the function once, and starts a
        compilation if one is due.
        """
        try:
            call = signature_of(args, kwargs, self.static_parameters)
        except (NodeArgumentError, NotCompilableError):
            return None, self._call_numpy
        cache = self._cache_of(call)
        if cache is None:
            return None, self._call_numpy
        match = cache.run_matching(cache.values(call.leaves))
        return None if match is None else [match[0].build(match[1])], functools.partial(cache.call_without_program, call)

    def _call_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def is_rejected(self) -> bool:
        """Whether calls with some signature always run as NumPy."""
        return any(cache.rejection is not None for cache in list(self._caches_by_signature.values()))

    def _cache_of(self, call: Call) -> SignatureCache | None:
        """Return the cache of a call's signature; None if there are too many signatures."""
        cache = self._caches_by_signature.get(call.key)
        if cache is not None:
            return cache
        count = self._static_counts.get(call.shapes, 0)
        if count >= MAX_STATIC_VALUES:
            self._record_fallback(
                f"static arguments had more than {MAX_STATIC_VALUES} values, and each needs a program of its own; pass "
                "numbers that change as arrays, or as NumPy scalars (np.float64(t))"
            )
            return None
        if len(self._caches_by_signature) >= MAX_SIGNATURES:
            self._record_fallback(
                f"the arguments had more than {MAX_SIGNATURES} combinations of shapes, dtypes and memory layouts"
            )
            return None
        if len(call.dynamic) < len(call.leaves):
            self._static_counts[call.shapes] = count + 1
        return self._caches_by_signature.setdefault(call.key, self.cache_class(self, call))

    def _record_fallback(self, message: str) -> None:
        if message not in self._fallback_reasons:
            _log.info("%s runs as NumPy: %s", self.display_name(), message)
        self._fallback_reasons[message] = self._fallback_reasons.get(message, 0) + 1

    def roots(self, call: Call) -> Iterator[tuple[Any, str]]:
        """Yield the values where the search for captured state begins: the function, and the static arguments of a call."""
        yield self.__wrapped__, "the function"
        for value in call.statics():
            yield value, "a static argument"

    # ------------------------------------------------------------------------------------------ for users

    def compile(self, *args: P.args, **kwargs: P.kwargs) -> Jitted[P, R]:
        """Compile a program for some arguments, and wait for it.

        Later programs for arguments of the same shapes are also compiled immediately instead of in the background.

        Parameters
        ----------
        *args, **kwargs : object
            Arguments of the function. It is called, on copies of the arrays.

        Returns
        -------
        Jitted
            This function.

        Raises
        ------
        TypeError
            If an argument is a node.
        """
        try:
            call = signature_of(args, kwargs, self.static_parameters)
        except NodeArgumentError:
            raise TypeError("compile: expected plain arrays, not nodes; calls on nodes are recorded") from None
        except NotCompilableError as error:
            self._record_fallback(str(error))
            return self
        cache = self._cache_of(call)
        if cache is not None:
            cache.compile(call)
        return self

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until no program of this function is being compiled in the background.

        Parameters
        ----------
        timeout : float
            The maximum number of seconds.

        Returns
        -------
        bool
            False if the timeout expired.
        """
        deadline = time.perf_counter() + timeout
        while any(cache._pending == compiler_thread.generation for cache in list(self._caches_by_signature.values())):
            if time.perf_counter() > deadline:
                return False
            time.sleep(0.001)
        return True

    def source(self) -> str:
        """Return readable sources of the programs, the latest first; empty without programs."""
        return self._join_sources("source")

    def llvm(self) -> str:
        """Return the LLVM IR of the programs; empty if programs are functions of NumPy calls."""
        return self._join_sources("llvm")

    def _join_sources(self, name: str) -> str:
        caches = reversed(list(self._caches_by_signature.values()))
        texts = [getattr(each.program, name, "") for cache in caches for each in cache.specializations]
        return "\n\n".join(filter(None, texts))

    def compiled_programs(self) -> Iterator[tuple[Any, Sequence[str]]]:
        """Iterate over the compiled programs, the latest first, each with the names of its inputs."""
        for cache in reversed(list(self._caches_by_signature.values())):
            for specialization in cache.specializations:
                yield specialization.program, cache.input_names()

    def report(self) -> str:
        """Return a report: a verdict, then programs with their times, and what runs as NumPy and why.

        The verdict is "compiled", "compiled, with N NumPy calls in each run", or "runs as NumPy" with the reason. Each NumPy
        call is listed with its line, its reason, and what to use instead.
        """
        return report(self.display_name(), self.backend, list(self._caches_by_signature.values()), list(self._fallback_reasons))

    def display_name(self) -> str:
        """Return the qualified name of the function, for messages."""
        return str(getattr(self, "__qualname__", None) or repr(self.__wrapped__))

    def __repr__(self) -> str:
        return f"<jit of {self.display_name()}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an object, as functions do; the object is a static argument."""
        return self if instance is None else Bound(self, instance)

    # ------------------------------------------------------------------------------------------ copies

    def __reduce_ex__(self, protocol: object) -> Any:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        if module is not None and name is not None and _lookup(module, name) is self:
            return name if "." not in name else (_lookup, (module, name))
        return _rebuild, (self.__wrapped__, self.options, self.static_argnames, type(self))

    def __copy__(self) -> Jitted[P, R]:
        return _rebuild(self.__wrapped__, self.options, self.static_argnames, type(self))

    def __deepcopy__(self, memo: dict[str, Any]) -> Jitted[P, R]:
        return self.__copy__()


class Bound:
    """A compiled function bound to an object as its method."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Jitted[..., Any], instance: object) -> None:
        self.__func__, self.__self__ = function, instance

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As `Jitted.__call__`, for this object."""
        return self.__func__(self.__self__, *args, **kwargs)

    def compile(self, *args: object, **kwargs: object) -> Bound:
        """As `Jitted.compile`, for this object."""
        self.__func__.compile(self.__self__, *args, **kwargs)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __repr__(self) -> str:
        return f"{self.__func__!r} of {self.__self__!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __reduce__(self) -> Any:
        return Bound, (self.__func__, self.__self__)


def _rebuild(f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...], jitted_class: Any = Jitted) -> Any:
    return jitted_class(f, dict(options), static_argnames)


def _lookup(module: str, name: str) -> Any:
    """Return the object of a qualified name in a module, or None."""
    try:
        return functools.reduce(inspect.getattr_static, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None


_remade, _found = _rebuild, _lookup  # names in older pickles
