"""NumPy functions compiled for another library: `jit` with ``backend=``, and `to_jax` and `to_torch`.

The former computes with arrays of NumPy; the latter return functions of the other library, for its own transformations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...executor import compile_schedule
from ...tracing import Tracing, is_tracing
from ...trees import flatten, unflatten
from ..call_signatures import Call, StaticArgument, flatten_arguments, key_of, make_call, record_call, signature_of
from ..captured_state import CapturedState
from ..compile_errors import NotCompilableError
from ..function_trace import trace_function
from ..jitted import Jitted
from ..result_trees import snapshot_results
from ..specializations import SignatureCache
from .engine_program import EngineBackend, EngineProgram, backend_of
from .libraries import Library, find_library, load_library


class EngineSignatureCache(SignatureCache):
    """The specializations of one call signature.

    A call that cannot be compiled raises instead of running as NumPy, because the user chose the library.
    """

    def __init__(self, jitted: EngineJitted, call: Call) -> None:
        super().__init__(jitted, call)
        self.is_eager = True

    def has_nan(self, results: Any) -> bool:
        """Return whether a result contains nan, as computed by the program."""
        return self.jitted.library.is_true(results.has_nan)  # type: ignore[no-any-return]

    def reject(self, error: NotCompilableError) -> None:
        """Raise a NotImplementedError with the reason."""
        name = getattr(self.jitted, "__qualname__", "the function")
        raise NotImplementedError(f"{name} does not run on backend={self.jitted.library.name!r}: {error}") from error


class EngineJitted(Jitted[..., Any]):
    """A function compiled for another library, returned by `jit` with ``backend=``."""

    cache_class = EngineSignatureCache

    def __init__(self, f: Callable[..., Any], options: dict[str, Any], static_argnames: tuple[str, ...]) -> None:
        self.library: Library = find_library(options["backend"])
        super().__init__(f, options, static_argnames)
        self._caches_by_device_key: dict[Any, tuple[Any, tuple[int, ...]]] = {}  # for arguments with arrays of the library

    @property
    def backend(self) -> EngineBackend:  # type: ignore[override]
        """The backend of the library."""
        return backend_of(self.library)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function: run a program that matches the arguments, on the library's device."""
        library, key = self.library, tuple[Any, ...]()
        if is_tracing():
            return record_call(self, args, kwargs)
        if not kwargs and args and self.static_parameters is None and all(map(library.is_array, args)):
            leaves, key = list(args), tuple([(x.dtype, x.shape) for x in args])
        else:
            leaves, structure = flatten_arguments(args, kwargs, self.static_parameters)
            shapes = [(k, leaf.dtype, tuple(leaf.shape)) for k, leaf in enumerate(leaves) if library.is_array(leaf)]
            if not shapes:
                return super().__call__(*args, **kwargs)
            static_leaves = list(leaves)
            for position, *_ in shapes:
                static_leaves[position] = None
            key = (*key_of(static_leaves, structure, (args, kwargs)), *shapes)
        cache, dynamic = self._caches_by_device_key.get(key, (None, ()))
        if cache is not None:
            match = cache.run_matching([leaves[position] for position in dynamic])
            if match is not None:
                return match[0].build(match[1])
        leaves, structure = flatten_arguments(args, kwargs, self.static_parameters)
        numpy_leaves = [library.as_argument(leaf) if library.is_array(leaf) else leaf for leaf in leaves]
        args, kwargs = unflatten(structure, [leaf.value if type(leaf) is StaticArgument else leaf for leaf in numpy_leaves])
        call = signature_of(args, kwargs, self.static_parameters)
        cache = self._cache_of(call)
        if cache is None:
            raise NotImplementedError(next(reversed(self._fallback_reasons)))
        self._caches_by_device_key[key] = cache, call.dynamic
        match = cache.run_matching(cache.values(call.leaves))
        result = cache.call_without_program(call, args, kwargs) if match is None else match[0].build(match[1])
        results, tree = flatten(result)
        with library.context():
            return unflatten(tree, [library.from_numpy(r) if isinstance(r, (np.ndarray, np.generic)) else r for r in results])

    def _record_fallback(self, message: str) -> None:
        raise NotImplementedError(f"{self.display_name()} does not run on backend={self.library.name!r}: {message}")


class ExportedFunction:
    """A NumPy function converted to another library, as returned by `to_jax` and `to_torch`."""

    def __init__(self, f: Callable[..., Any], library: Library, examples: tuple[Any, ...] | None) -> None:
        functools.update_wrapper(self, f)
        self._library, self._examples = library, examples
        self._programs: dict[Any, tuple[EngineProgram, tuple[int, ...], Callable[..., Any]]] = {}

    __wrapped__: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function with arrays of the library."""
        library = self._library
        leaves, structure = flatten_arguments(args, kwargs, None)
        array_positions = [
            position for position, leaf in enumerate(leaves) if library.is_array(leaf) or isinstance(leaf, np.ndarray)
        ]
        static_leaves = [None if position in array_positions else leaf for position, leaf in enumerate(leaves)]
        shapes = [(position, str(leaves[position].dtype), tuple(leaves[position].shape)) for position in array_positions]
        key = (*key_of(static_leaves, structure, (args, kwargs)), *shapes)
        if key not in self._programs:
            self._programs[key] = self._trace(leaves, structure)
        program, dynamic, build = self._programs[key]
        library.require_precision(program.has_double_precision)
        inputs = [
            leaves[position] if library.is_array(leaves[position]) else library.from_numpy(leaves[position])
            for position in dynamic
        ]
        outputs, _, conditions_hold, _ = program.run(*inputs)
        outputs = tuple(map(library.copy_result, outputs))
        if conditions_hold is not None:
            outputs = tuple(library.nan_unless(conditions_hold, output) for output in outputs)
        return build(outputs)

    def _trace(self, leaves: list[Any], structure: object) -> tuple[EngineProgram, tuple[int, ...], Callable[..., Any]]:
        """Return a program for such arguments, the positions of its inputs among the leaves, and a builder of the result."""
        library = self._library
        numpy_leaves = [library.example_values(leaf) if library.is_array(leaf) else leaf for leaf in leaves]
        if self._examples is not None:
            example_leaves, tree = flatten_arguments(self._examples, {}, None)
            if tree != structure:
                raise ValueError("the nesting of the examples differs from that of the arguments")
            numpy_leaves = [
                np.asarray(x, y.dtype).reshape(y.shape)[()] if _is_array(y) else y
                for x, y in zip(example_leaves, numpy_leaves, strict=True)
            ]
        args, kwargs = unflatten(structure, numpy_leaves)
        call = make_call(numpy_leaves, structure, key_of(numpy_leaves, structure, (args, kwargs)))
        name = library.name
        try:
            captured = CapturedState(iter([(self.__wrapped__, "the function"), *((s, "an argument") for s in call.statics())]))
            if captured.rejection is not None:
                raise NotCompilableError(captured.rejection)
            expected = snapshot_results(self.__wrapped__(*args, **kwargs))
            trace = trace_function(self.__wrapped__, call, captured, expected, nan_safe=True, is_differentiable=True)
            with Tracing(compiles=True):
                program = compile_schedule(trace.schedule, {"simplify": True, "has_index_guards": True}, backend_of(library))
        except NotCompilableError as error:
            raise NotImplementedError(f"to_{name}: {error}") from error
        assert isinstance(program, EngineProgram)
        if program.guards:
            raise NotImplementedError(
                f"to_{name}: Python branches on values, which are unknown here: {program.guards[0]}; use np.where, np.minimum, "
                "or x * (x > 0)"
            )
        if program.has_conditions and any(node.dtype.kind not in "fc" for node in trace.schedule.outputs):
            raise NotImplementedError(
                f"to_{name}: a result is an integer or boolean, but each run checks a condition on values, such as that a "
                "computed index is in range, and returns nan if it fails. Return floating-point numbers, as by .astype(float)"
            )
        return program, call.dynamic, trace.build


def _is_array(value: object) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def to_jax(f: Callable[..., Any], *, examples: tuple[Any, ...] | None = None) -> ExportedFunction:
    """Return a NumPy function as a function of JAX arrays, for ``jax.jit``, ``vmap``, ``grad``, sharding and export.

    Parameters
    ----------
    f : callable
        A function of arrays, or of nested containers of arrays, that returns the same; it may be an operator's result, such as
        ``autodiff.grad(g)``, and may use SciPy and write in place.
    examples : tuple, optional
        Arguments at which `f` is traced, of the shapes of the later ones. By default the arguments themselves if they
        are concrete, or numbers between 0.5 and 1.5 if they are tracers.

    Returns
    -------
    callable
        A function of JAX arrays and tracers. It is traced once for each nesting, shape and dtype.

    Raises
    ------
    ImportError
        If JAX is not installed.
    NotImplementedError
        When called: if `f` has no counterpart in JAX, or Python branches on values.
    TypeError
        When called: if `f` computes with 64-bit floating-point numbers while JAX has them disabled.

    Notes
    -----
    Where a computed index is out of range, all results are nan. State that `f` reads is captured at the first call.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> def energy(x):
    ...     y = np.zeros(3)
    ...     y[1:] = x**2
    ...     return np.sum(y)
    >>> import jax  # doctest: +SKIP
    >>> jax.grad(cg.to_jax(energy))(jax.numpy.ones(2))  # doctest: +SKIP
    Array([2., 2.], dtype=float32)
    """
    return ExportedFunction(f, load_library("jax"), examples)


def to_torch(f: Callable[..., Any], *, examples: tuple[Any, ...] | None = None) -> ExportedFunction:
    """Return a NumPy function as a function of tensors, which PyTorch's autograd differentiates.

    Parameters
    ----------
    f : callable
        As for `to_jax`.
    examples : tuple, optional
        As for `to_jax`.

    Returns
    -------
    callable
        A function of tensors. It is traced once for each nesting, shape and dtype.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    NotImplementedError
        When called: if `f` has no counterpart in PyTorch, or Python branches on values.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> import torch  # doctest: +SKIP
    >>> x = torch.ones(2, requires_grad=True)  # doctest: +SKIP
    >>> cg.to_torch(lambda x: np.sum(x**3))(x).backward()  # doctest: +SKIP
    """
    return ExportedFunction(f, load_library("torch"), examples)
