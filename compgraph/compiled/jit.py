"""`jit`: functions of arrays that run as compiled programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops


@ops.saying(
    {
        "static_argnums": "it is static_argnames=, and their names",
        **dict.fromkeys(("donate_argnums", "donate_argnames"), "arguments stay as they are"),
        **dict.fromkeys(("fullgraph", "dynamic", "mode", "backend"), "what cannot be compiled runs as NumPy; report() says what"),
    }
)
def jit(
    f: Callable[..., Any] | None = None,
    *,
    threads: int | None = None,
    exact: bool = False,
    static_argnames: str | tuple[str, ...] = (),
    cache: bool = True,
) -> Any:
    """The same function of arrays, compiled.

    The first calls run as NumPy. Meanwhile a thread in the background records what the function does, and makes a program of it,
    by which later calls run. What cannot be compiled runs as NumPy, and `report` says why.

    Parameters
    ----------
    f : callable
        A function of arrays, and lists, tuples, dictionaries, named tuples and dataclasses of arrays, that returns such; also
        what `autodiff.grad` and other operators return. If it is left out, a decorator is returned.
    threads : int, optional
        How many threads a program may use; by default as many as the process has processors. What takes less than a fifth of a
        millisecond, products of matrices and NumPy's own code run in one. The results have the same bits with any number.
    exact : bool
        Whether results have the bits that NumPy gives, which takes longer.
    static_argnames : str or tuple of str
        Parameters whose values are part of a program: they are compared, not computed with. Arguments that are no arrays and no
        NumPy floats are so anyway. Values share a program only if they cannot be told apart: 0.0 and -0.0, 1 and True, and
        dictionaries in another order do not. Objects of classes whose state is not known are compared by identity.
    cache : bool
        Whether compiled programs are stored on disk, in a folder that only the user may write into (``COMPGRAPH_CACHE``).

    Returns
    -------
    Jitted
        A function that is called as `f` is. ``compile(*args)`` makes a program at once, and ``report()``, ``source()`` and
        ``llvm()`` tell of them.

    Raises
    ------
    TypeError
        If `f` cannot be called, or an option has another type.
    ValueError
        If `threads` is not positive, or `static_argnames` names no parameter.

    Notes
    -----
    A program holds for arrays of the same nesting, shapes, dtypes and strides. What Python decides by values (``if x > 0``) is
    asked again in each run; another answer calls for another program, and both are kept. So it is with globals, closures and
    attributes that the function reaches by name, which are compared before each run: numbers, arrays, containers, functions and
    objects of Python classes. A function that reaches other state (files, iterators, caches, objects of other libraries), calls
    functions not known to be pure (the list holds the numerical functions of Python, NumPy and SciPy), draws random numbers,
    writes into its arguments or changes the state that it reaches runs as NumPy.

    Results are plain arrays that share memory with nothing. Called on nodes (under `autodiff.grad`, say, or on a `variable`) each
    of its operations is recorded at first; once there is a program the call is one operation, whose derivative is compiled as
    well.

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
    loss, compiled by ...
      (float64[3], float64[3])
        program 1: ...
    """
    from .jitted import Bound, Jitted  # here, since `import compgraph` shall not wait for it

    options = _options(threads, exact, cache)
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"jit: static_argnames is the name of a parameter, or a tuple of names, not {static_argnames!r}")
    if f is None:
        return functools.partial(jit, threads=threads, exact=exact, static_argnames=tuple(names), cache=cache)
    if not callable(f):
        raise TypeError(f"jit: a {type(f).__name__} is not a function; options are given by keyword: jit(f, exact=True)")
    if isinstance(f, (staticmethod, classmethod)):
        return type(f)(Jitted(f.__func__, options, tuple(names)))
    if isinstance(f, Bound):
        f = functools.partial(f.__func__.__wrapped__, f.__self__)
    return Jitted(f.__wrapped__ if isinstance(f, Jitted) else f, options, tuple(names))


def _options(threads: Any, exact: Any, cache: Any) -> dict[str, Any]:
    """The options of the backend, checked."""
    from ..executor import checked_threads  # here, since `import compgraph` shall not wait for it

    number = checked_threads("jit", threads)
    for name, value in (("exact", exact), ("cache", cache)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"jit: {name} is True or False, not {value!r}")
    return {"simplify": True, "fuse": False, "exact": bool(exact), "threads": number, "cache": bool(cache)}
