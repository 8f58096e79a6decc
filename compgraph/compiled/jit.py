"""`jit`: compiles functions of arrays."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from .. import ops
from ..interception import as_python_function

if TYPE_CHECKING:
    from .jitted import Jitted

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    f: Callable[P, R],
    *,
    threads: int | None = None,
    exact: bool = False,
    static_argnames: str | tuple[str, ...] = (),
    cache: bool = True,
    backend: Any = None,
) -> Jitted[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    threads: int | None = None,
    exact: bool = False,
    static_argnames: str | tuple[str, ...] = (),
    cache: bool = True,
    backend: Any = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@ops.reject_foreign_options(
    {
        "static_argnums": "use static_argnames= with parameter names",
        **dict.fromkeys(("donate_argnums", "donate_argnames"), "arguments are never modified"),
        "device": "backend='jax', 'torch' or 'cupy' runs on a GPU",
        **dict.fromkeys(("fullgraph", "dynamic", "mode"), "uncompiled code runs as NumPy; report() lists it"),
    }
)
def jit(
    f: Callable[..., Any] | None = None,
    *,
    threads: int | None = None,
    exact: bool = False,
    static_argnames: str | tuple[str, ...] = (),
    cache: bool = True,
    backend: Any = None,
) -> Any:
    """Compile a function of arrays.

    The first calls run as NumPy. Meanwhile a background thread traces the function and compiles a program, which runs later
    calls. Code that cannot be compiled runs as NumPy; `report` explains why.

    Parameters
    ----------
    f : callable
        A function of arrays, or of lists, tuples, dictionaries, named tuples and dataclasses of arrays, that returns the
        same. It may be an operator's result, as of `autodiff.grad`. If omitted, a decorator is returned.
    threads : int, optional
        The number of threads of a program; by default the number of processors available to the process. Work below a fifth
        of a millisecond, matrix products and NumPy calls use one thread. The results have the same bits with any number.
    exact : bool
        Whether results have NumPy's bits, which is slower.
    static_argnames : str or tuple of str
        Parameters that are compile-time constants: each value has its own program. All arguments except arrays and NumPy
        floating-point scalars are always static. Two values share a program only if they are indistinguishable; 0.0 and
        -0.0, 1 and True, and differently ordered dictionaries do not. Objects of classes with unknown state are compared by
        identity.
    cache : bool
        Whether compiled programs are cached on disk, in a folder that only the user can write to (``COMPGRAPH_CACHE``).
    backend : str or module, optional
        The array library that runs the programs, on its default device, as a GPU: "jax", "torch", "cupy", or a namespace of
        the array API standard. By default programs are machine code of this package for the processor. See Notes.

    Returns
    -------
    Jitted
        A function that is called like `f`. ``compile(*args)`` compiles immediately; ``report()``, ``source()`` and
        ``llvm()`` describe the programs.

    Raises
    ------
    TypeError
        If `f` is not callable, or an option has the wrong type.
    ValueError
        If `threads` is not positive, `static_argnames` names an unknown parameter, or an option is for another backend.
    ImportError
        If the library of `backend` is not installed.

    Notes
    -----
    With `backend`, arguments may be arrays of the library, and results are of the library if one argument is; they stay on the
    device. Otherwise arrays are transferred. The first call with a signature is computed by NumPy too, and compared. Nothing
    runs as NumPy later: what the library cannot compute raises a NotImplementedError with the operation and the line.

    A program is specialized on the nesting, shapes, dtypes and strides of the arguments. Branches of Python on values (``if x >
    0``) are guards, re-checked in each run; another branch is compiled as another program. Globals, closures and attributes
    that the function reads are also compared before each run: numbers, arrays, containers, functions and objects of Python
    classes.

    A function runs as NumPy if it reads other state (files, iterators, caches, objects of other libraries), calls a function
    that is not known to be pure (the list has the numerical functions of Python, NumPy and SciPy), draws random numbers, writes
    into its arguments, or modifies state that it reads.

    Results are plain arrays that share no memory. Calls on nodes (under `autodiff.grad`, or on a `variable`) record each
    operation at first. Once a program exists, a call is a single operation, whose derivative is compiled as well.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> @cg.jit
    ... def loss(w, x):
    ...     return np.sum(np.tanh(w * x) ** 2)
    >>> w, x = np.zeros(3), np.ones(3)
    >>> float(loss.compile(w, x)(w, x))
    0.0
    >>> print(loss.report())  # doctest: +ELLIPSIS
    loss: compiled...
      (float64[3], float64[3])
        program 1: ...
    """
    from .jitted import Bound, Jitted  # imported on first use, to keep `import compgraph` fast

    options = _check_options(threads, exact, cache)
    if backend is not None:
        if threads is not None or exact:
            raise ValueError("jit: threads= and exact= are options of machine code; with backend= the library decides")
        options["backend"] = backend
    jitted_class: Any = Jitted if backend is None else importlib.import_module(".engines", __package__).EngineJitted
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"jit: static_argnames must be a parameter name or a tuple of names, not {static_argnames!r}")
    if f is None:
        return functools.partial(jit, threads=threads, exact=exact, static_argnames=tuple(names), cache=cache, backend=backend)
    if not callable(f):
        raise TypeError(f"jit: expected a function, not a {type(f).__name__}; pass options by keyword: jit(f, exact=True)")
    if isinstance(f, (staticmethod, classmethod)):
        return type(f)(jitted_class(f.__func__, options, tuple(names)))
    if isinstance(f, Bound):
        f = functools.partial(f.__func__.__wrapped__, f.__self__)
    return jitted_class(f.__wrapped__ if isinstance(f, Jitted) else as_python_function(f), options, tuple(names))


def _check_options(threads: int | None, exact: bool, cache: bool) -> dict[str, Any]:
    """Return the checked options of the backend."""
    from ..executor import check_threads  # imported on first use, to keep `import compgraph` fast

    number = check_threads("jit", threads)
    for name, value in (("exact", exact), ("cache", cache)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"jit: {name} must be True or False, not {value!r}")
    return {"simplify": True, "fuse": False, "exact": bool(exact), "threads": number, "cache": bool(cache)}
