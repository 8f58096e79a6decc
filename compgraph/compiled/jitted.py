"""A function of arrays that runs as a program made of its graph."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..executor import fastest_backend
from ..tracing import is_tracing
from . import worker
from .arguments import Call, OutsideError, StaticNames, call_of, called_with, key_of, order_of, orders_of, parts_of, quick_key
from .outer import recorded
from .refusals import RefusedError
from .report import report
from .variants import Programs

ndarray = np.ndarray
KEYS = 256  # keys of which programs are kept
STATICS = 16  # values of static arguments, for the same shapes, of which programs are made


def backend() -> str:
    """The name of the backend that makes programs: ``"llvm"`` where that is there and works, else ``"numpy"``."""
    return fastest_backend()


class Jitted:
    """A function that runs as a compiled program; made by `jit`, which says what it does."""

    def __init__(self, f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...]) -> None:
        functools.update_wrapper(self, f)  # which sets `__wrapped__`
        self.options, self.static_argnames = options, static_argnames
        self.names = StaticNames(f, static_argnames) if static_argnames else None
        self._entries: dict[Any, Programs] = {}
        self._flat: dict[Any, tuple[Programs, list[int] | None]] = {}  # by quick keys: programs, and the order of values
        self._static_counts: dict[Any, int] = {}
        self._notes: dict[str, int] = {}

    __wrapped__: Callable[..., Any]
    orders_of = staticmethod(orders_of)  # calls on nodes are keyed in the same way

    @property
    def backend(self) -> str:
        """The name of the backend that makes the programs; asked for late, since it takes a while to import."""
        return backend()

    @property
    def __func__(self) -> Callable[..., Any]:
        """The function, for those who look for the one behind a callable, as they do behind a method."""
        return self.__wrapped__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives: by a program if one holds for these arguments, else by NumPy."""
        if is_tracing():  # within a function that is differentiated
            return recorded(self, args, kwargs)
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
            if self.names is not None or not quick_key((*args, *kwargs.values()), key, values):
                return self._called(args, kwargs, None)
        flat = tuple(key)
        known = self._flat.get(flat)
        if known is None:
            return self._called(args, kwargs, flat)
        programs, order = known
        found = programs.found(values if order is None else [values[place] for place in order])
        if found is None:
            return self._called(args, kwargs, None)
        return found[0].build(found[1])

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], flat: Any) -> Any:
        """As ``__call__``, of arguments of any kind; `flat` is the quick key under which their programs are remembered."""
        try:
            leaves, structure = parts_of(args, kwargs, self.names)
            key = key_of(leaves, structure, (args, kwargs))
        except OutsideError:
            return recorded(self, args, kwargs)
        except RefusedError as error:
            self._note(str(error))
            return self.__wrapped__(*args, **kwargs)
        programs = self._entries.get(key)
        if programs is not None and programs.variants:
            if flat is not None and self.names is None:
                self._flat[flat] = programs, order_of(call_of(leaves, structure, key))
            found = programs.found(programs.values(leaves))
            if found is not None:
                return found[0].build(found[1])
        call = call_of(leaves, structure, key)
        programs = self._programs(call)
        if programs is None:
            return self.__wrapped__(*args, **kwargs)
        return programs.missed(call, args, kwargs)

    def by_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any] | None, Callable[..., Any]]:
        """Run a program for plain arrays; return its result in a list (None if no program holds) and a fallback.

        The fallback ``call(args, kwargs)`` takes nodes with the same values. It calls the function once, and requests a program
        if it is time for that.
        """
        try:
            call = called_with(args, kwargs, self.names)
        except (OutsideError, RefusedError):
            return None, self._by_numpy
        programs = self._programs(call)
        if programs is None:
            return None, self._by_numpy
        found = programs.found(programs.values(call.leaves))
        return None if found is None else [found[0].build(found[1])], functools.partial(programs.missed, call)

    def _by_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def is_refused(self) -> bool:
        """Whether some arguments run as NumPy for ever."""
        return any(programs.refusal is not None for programs in list(self._entries.values()))

    def _programs(self, call: Call) -> Programs | None:
        """What is known of the key of a call; None if there are too many keys already."""
        found = self._entries.get(call.key)
        if found is not None:
            return found
        count = self._static_counts.get(call.shapes, 0)
        if count >= STATICS:
            self._note(
                f"arguments that are no arrays have had more than {STATICS} values, each of which is another program; give "
                "numbers that change as arrays, or as NumPy's scalars (np.float64(t))"
            )
            return None
        if len(self._entries) >= KEYS:
            self._note(f"arguments of more than {KEYS} shapes, dtypes and memory layouts were given")
            return None
        if len(call.dynamic) < len(call.leaves):
            self._static_counts[call.shapes] = count + 1
        return self._entries.setdefault(call.key, Programs(self, call))

    def _note(self, message: str) -> None:
        self._notes[message] = self._notes.get(message, 0) + 1

    def roots(self, call: Call) -> Iterator[tuple[Any, str]]:
        """Where what the function reaches begins: itself, and the static arguments of a call."""
        yield self.__wrapped__, "the function"
        for value in call.statics():
            yield value, "a static argument"

    # ------------------------------------------------------------------------------------------ for users

    def compile(self, *args: Any, **kwargs: Any) -> Jitted:
        """Make the program for some arguments now, and wait for it.

        Further programs that are needed for arguments of their shapes are made at once as well, and not in the background.

        Parameters
        ----------
        *args, **kwargs : object
            As the function is called. It is called, on copies of the arrays.

        Returns
        -------
        Jitted
            This function itself.
        """
        try:
            call = called_with(args, kwargs, self.names)
        except OutsideError:
            raise TypeError("compile: give plain arrays; for nodes the function runs as it is, and is recorded") from None
        except RefusedError as error:
            self._note(str(error))
            return self
        programs = self._programs(call)
        if programs is not None:
            programs.compile(call)
        return self

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until no program of this function is being made in the background; whether that is so."""
        until = time.perf_counter() + timeout
        while any(p._pending == worker.generation for p in list(self._entries.values())):
            if time.perf_counter() > until:
                return False
            time.sleep(0.001)
        return True

    def source(self) -> str:
        """The programs that were made, as text, the latest first; an empty text if there is none."""
        return self._texts("source")

    def llvm(self) -> str:
        """What is compiled for the processor, as LLVM's text; an empty text where programs are functions of NumPy calls."""
        return self._texts("llvm")

    def _texts(self, name: str) -> str:
        found = [getattr(v.program, name, "") for p in reversed(list(self._entries.values())) for v in p.variants]
        return "\n\n".join(filter(None, found))

    def programs_made(self) -> Iterator[tuple[Any, Sequence[str]]]:
        """The programs that exist, the latest first, each with the names of its inputs."""
        for programs in reversed(list(self._entries.values())):
            for variant in programs.variants:
                yield variant.program, programs.names()

    def report(self) -> str:
        """What was compiled, how long that took, how often it ran, and what runs as NumPy and why; a text of several lines."""
        return report(self._called_as(), self.backend, list(self._entries.values()), list(self._notes))

    def _called_as(self) -> str:
        return str(getattr(self, "__qualname__", None) or repr(self.__wrapped__))

    def __repr__(self) -> str:
        return f"<jit of {self._called_as()}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The method of an object, as functions are; the object is a static argument."""
        return self if instance is None else Bound(self, instance)

    # ------------------------------------------------------------------------------------------ copies

    def __reduce_ex__(self, protocol: Any) -> Any:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        if module is not None and name is not None and _found(module, name) is self:
            return name if "." not in name else (_found, (module, name))
        return _remade, (self.__wrapped__, self.options, self.static_argnames)

    def __copy__(self) -> Jitted:
        return _remade(self.__wrapped__, self.options, self.static_argnames)

    def __deepcopy__(self, memo: Any) -> Jitted:
        return self.__copy__()


class Bound:
    """A compiled function as a method of an object."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Jitted, instance: Any) -> None:
        self.__func__, self.__self__ = function, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As `Jitted.__call__`, of this object."""
        return self.__func__(self.__self__, *args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Bound:
        """As `Jitted.compile`, for this object."""
        self.__func__.compile(self.__self__, *args, **kwargs)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __repr__(self) -> str:
        return f"{self.__func__!r} of {self.__self__!r}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Bound) and self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __reduce__(self) -> Any:
        return Bound, (self.__func__, self.__self__)


def _remade(f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...]) -> Jitted:
    return Jitted(f, dict(options), static_argnames)


def _found(module: str, name: str) -> Any:
    """What stands under a qualified name in a module that was imported; None if nothing does."""
    import importlib

    try:
        return functools.reduce(inspect.getattr_static, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
