"""`jit` with ``backend=``: functions compiled to programs of another array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracing import is_tracing
from ...trees import flatten, unflatten
from ..call_signatures import Call, StaticArgument, flatten_arguments, key_of, signature_of
from ..compile_errors import NotCompilableError
from ..jitted import Jitted
from ..node_calls import record_call
from ..specializations import Specializations
from .engine_program import EngineBackend, backend_of
from .libraries import Library, find_library


class EngineSpecializations(Specializations):
    """The programs of one call signature.

    A call that cannot be compiled raises instead of running as NumPy, because the user chose the library.
    """

    def __init__(self, jitted: EngineJitted, call: Call) -> None:
        super().__init__(jitted, call)
        self.is_eager = True

    def has_nan(self, results: Any) -> bool:
        """Return whether a result contains nan, as computed by the program."""
        return bool(results.has_nan)

    def reject(self, error: NotCompilableError) -> None:
        """Raise a NotImplementedError with the reason."""
        name = getattr(self.jitted, "__qualname__", "the function")
        raise NotImplementedError(f"{name} does not run on backend={self.jitted.library.name!r}: {error}") from error


class EngineJitted(Jitted[..., Any]):
    """A function compiled for another library, returned by `jit` with ``backend=``."""

    specializations_class = EngineSpecializations

    def __init__(self, f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...]) -> None:
        self.library: Library = find_library(options["backend"])
        super().__init__(f, options, static_argnames)
        self._programs_by_device_key: dict[Any, tuple[Any, tuple[int, ...]]] = {}  # for arguments with arrays of the library

    @property
    def backend(self) -> EngineBackend:  # type: ignore[override]
        """The backend of the library."""
        return backend_of(self.library)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function: run a program that matches the arguments, on the library's device."""
        library = self.library
        if is_tracing():
            return record_call(self, args, kwargs)
        leaves, structure = flatten_arguments(args, kwargs, self.static_parameters)
        library_positions = [position for position, leaf in enumerate(leaves) if library.is_array(leaf)]
        if not library_positions:
            return super().__call__(*args, **kwargs)
        static_leaves = list(leaves)
        for position in library_positions:
            static_leaves[position] = None
        shapes = [(position, leaves[position].dtype, tuple(leaves[position].shape)) for position in library_positions]
        key = (*key_of(static_leaves, structure, (args, kwargs)), *shapes)
        programs, dynamic = self._programs_by_device_key.get(key, (None, ()))
        if programs is not None:
            match = programs.run_matching([leaves[position] for position in dynamic])
            if match is not None:
                return match[0].build(match[1])
        numpy_leaves = [library.as_argument(leaf) if library.is_array(leaf) else leaf for leaf in leaves]
        args, kwargs = unflatten(structure, [leaf.value if type(leaf) is StaticArgument else leaf for leaf in numpy_leaves])
        call = signature_of(args, kwargs, self.static_parameters)
        programs = self._specializations_of(call)
        if programs is None:
            raise NotImplementedError(next(reversed(self._fallback_reasons)))
        self._programs_by_device_key[key] = programs, call.dynamic
        match = programs.run_matching(programs.values(call.leaves))
        result = programs.call_without_program(call, args, kwargs) if match is None else match[0].build(match[1])
        results, tree = flatten(result)
        with library.context():
            return unflatten(tree, [library.from_numpy(r) if isinstance(r, (np.ndarray, np.generic)) else r for r in results])

    def _record_fallback(self, message: str) -> None:
        raise NotImplementedError(f"{self.display_name()} does not run on backend={self.library.name!r}: {message}")
