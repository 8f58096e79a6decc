"""`from_jax` and `from_torch`: convert functions of another library to operations, with that library's derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bind import bind
from ...context import NoGraph
from ...graph import as_operands
from ...tracing import without_tracing
from ...values import Value

if TYPE_CHECKING:
    from .libraries import Library


class ImportedFunction:
    """A function of another library, called with NumPy arrays and nodes; as returned by `from_jax` and `from_torch`.

    Parameters
    ----------
    library : Library
        The library.
    f : callable
        A function of the library's arrays that returns one, or a tuple.
    name : str
        The name of the operation.
    """

    def __init__(self, library: Library, f: Callable[..., Any], name: str) -> None:
        self.library, self.f, self.__name__ = library, f, name

    def __call__(self, *operands: Any) -> Any:
        """Compute the function; on nodes, record it."""
        if any(isinstance(x, Value) for x in operands):
            return bind(self, as_operands(operands))
        library = self.library
        with NoGraph(), without_tracing(), library.context():  # without patches of NumPy
            result = self.f(*[x if library.is_array(x) else library.from_numpy(np.asarray(x)) for x in operands])
            if isinstance(result, (tuple, list)):
                return tuple(map(library.to_numpy, result))
            return library.to_numpy(result)

    def pullback(self, outputs: int) -> ImportedFunction:
        """Return a function of the output cotangents and the operands that returns the operand cotangents.

        `outputs` is the number of outputs, or 0 for a single array that is not in a tuple. Cotangents of integer operands are
        zeros.
        """
        count = max(outputs, 1)

        def pull(*args: object) -> tuple[Any, ...]:
            cotangents, operands = args[:count], args[count:]
            return self.library.vjp(self.f, operands, cotangents if outputs else cotangents[0])

        return ImportedFunction(self.library, pull, f"{self.__name__}_vjp")

    def pushforward(self, position: int) -> ImportedFunction:
        """Return a function of the tangent of one operand and all operands that returns the tangent of the result."""

        def push(tangent: object, *operands: object) -> Any:
            def f_at_position(x: object) -> Any:
                return self.f(*operands[:position], x, *operands[position + 1 :])

            return self.library.jvp(f_at_position, operands[position], tangent)

        return ImportedFunction(self.library, push, f"{self.__name__}_jvp")

    def __repr__(self) -> str:
        return f"<{self.library.name} function {self.__name__}>"


def _import_function(library_name: str, g: Callable[..., Any]) -> ImportedFunction:
    if not callable(g):
        raise TypeError(f"from_{library_name}: expected a function, not a {type(g).__name__}")
    from .libraries import load_library  # imported on first use, to keep `import autodiff` fast

    return ImportedFunction(load_library(library_name), g, getattr(g, "__name__", library_name))


def from_jax(g: Callable[..., Any]) -> ImportedFunction:
    """Return a JAX function as an operation on NumPy arrays and nodes, with derivatives of any order by JAX.

    Parameters
    ----------
    g : callable
        A function of JAX arrays that returns an array, or a tuple of arrays. It must be pure; it may be ``jax.jit(g)``.

    Returns
    -------
    callable
        A function of arrays and nodes. On nodes, a call is one operation of the graph.

    Raises
    ------
    ImportError
        If JAX is not installed.
    TypeError
        If `g` is not callable.

    Examples
    --------
    >>> import compgraph as cg
    >>> import autodiff as ad
    >>> import jax.numpy as jnp  # doctest: +SKIP
    >>> f = cg.from_jax(lambda x: jnp.sum(jnp.sin(x)))  # doctest: +SKIP
    >>> ad.grad(lambda x: f(x) ** 2)([0.0, 1.0])  # doctest: +SKIP
    """
    return _import_function("jax", g)


def from_torch(g: Callable[..., Any]) -> ImportedFunction:
    """Return a function of PyTorch tensors as an operation on NumPy arrays and nodes, with derivatives of any order by PyTorch.

    Parameters
    ----------
    g : callable
        A function of tensors that returns a tensor, or a tuple of tensors. It must be pure; ``torch.func`` differentiates it.

    Returns
    -------
    callable
        A function of arrays and nodes. On nodes, a call is one operation of the graph.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    TypeError
        If `g` is not callable.

    Examples
    --------
    >>> import compgraph as cg
    >>> import autodiff as ad
    >>> import torch  # doctest: +SKIP
    >>> f = cg.from_torch(lambda x: torch.special.erfcx(x).sum())  # doctest: +SKIP
    >>> ad.grad(f)([0.0, 1.0])  # doctest: +SKIP
    """
    return _import_function("torch", g)
