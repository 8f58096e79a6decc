"""`custom_gradient`: a function with a derivative of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.modes import NoGraph, recording_on
from compgraph.nodes import INERT, Node, record
from compgraph.operands import as_operands, to_plain

from .opaque import Opaque, is_recorded, transposed, zeros_for

Function = Callable[..., Any]


def custom_gradient(f: Function) -> Function:
    """Give a function a derivative of its own.

    Parameters
    ----------
    f : callable
        A function of arrays that returns ``(value, pull)``. The value is an array or a tuple of arrays; ``pull(adjoint)``
        returns the adjoints of the arguments, given that of the value (a tuple, if the value is one): for one argument an
        array, for several a sequence, with None where the derivative is zero. Keyword arguments are handed on; they have
        no derivative.

    Returns
    -------
    callable
        The function that returns the value alone. On nodes it is one node of the graph.

    Raises
    ------
    TypeError
        When called: if `f` returns no such pair, or uses an outer node; when differentiated: in forward mode, if `pull`
        is not made of recorded operations.
    ValueError
        When differentiated: if `pull` returns another number of adjoints than there are arguments, or one of another
        shape; in forward mode, if it is not linear.

    Notes
    -----
    In reverse mode `pull` runs on plain arrays; for higher orders `f` runs again on nodes, and what `pull` computes from
    them is recorded. Forward mode transposes `pull`, which is linear in the adjoint (R. Frostig et al., "Decomposing
    reverse-mode automatic differentiation", arXiv:2105.09469); a `pull` that is not, which clips or replaces the
    adjoint, has no forward mode.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad, jvp
    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     return np.log(1 + e), lambda g: g * (1 - 1 / (1 + e))
    >>> print(grad(log1pexp)(0.0), grad(grad(log1pexp))(0.0), jvp(log1pexp, (0.0,), (1.0,))[1])
    0.5 0.25 0.5
    """

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        return record(_custom, as_operands(args), {"call": Custom(f, options)})

    return call


class Custom:
    """One call of a function with a derivative of its own."""

    def __init__(self, f: Function, options: dict[str, Any]) -> None:
        self.f = f
        self.options = options
        self.name = getattr(f, "__name__", "the function")
        self.operands: tuple[Any, ...] = ()
        self.pulled: Any = None

    def compute(self, *operands: Any) -> Any:
        """The value; what pulls adjoints through it is kept."""
        with recording_on():
            value, pulled = self._pair(operands)
        parts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(p, Node) and p.__class__ not in INERT for p in parts):
            raise TypeError(
                f"custom_gradient: {self.name} uses an outer node, whose adjoint its pull cannot return; pass it as an argument"
            )
        self.operands, self.pulled = operands, pulled
        parts = tuple(np.asarray(to_plain(p))[()] for p in parts)
        return parts if isinstance(value, tuple) else parts[0]

    def _pair(self, operands: tuple[Any, ...]) -> tuple[Any, Any]:
        found = self.f(*operands, **self.options)
        if not (isinstance(found, tuple) and len(found) == 2 and callable(found[1])):
            raise TypeError(
                f"custom_gradient: {self.name} must return a pair (value, pull), where pull is a function of the adjoint"
            )
        return found

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of the operands."""
        if isinstance(out, tuple):
            adjoint = zeros_for(adjoint, out)
        if is_recorded(adjoint, *operands):
            return self._checked(self._pair(operands)[1](adjoint), operands)
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # an operand was written into since; these are the values it had
        with NoGraph():
            return [to_plain(a) for a in self._checked(self.pulled(adjoint), operands)]

    def _checked(self, found: Any, operands: tuple[Any, ...]) -> list[Any]:
        adjoints = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(adjoints) != len(operands):
            raise ValueError(
                f"custom_gradient: the pull of {self.name} returned {len(adjoints)} adjoints for {len(operands)} arguments"
            )
        for position, (adjoint, operand) in enumerate(zip(adjoints, operands, strict=True)):
            shape = np.shape(operand)
            if adjoint is None:
                adjoints[position] = np.zeros(shape, np.result_type(operand, np.float16))[()]
            elif np.shape(adjoint) != shape:
                raise ValueError(
                    f"custom_gradient: the pull of {self.name} returned shape {np.shape(adjoint)} for argument {position}, "
                    f"which has shape {shape}"
                )
            elif not isinstance(adjoint, np.ndarray):
                adjoints[position] = np.asarray(adjoint)[()]
        return adjoints

    def push(self, position: int, tangent: Any, out: Any, *operands: Any) -> Any:
        """The tangent of the value from that of one operand."""
        pulled = self._pair(operands)[1]

        def pull(adjoint: Any) -> Any:
            return self._checked(pulled(adjoint), operands)[position]

        self._require_linear(pull, out)
        try:
            return transposed(pull, out, tangent)
        except TypeError as error:
            raise TypeError(
                f"custom_gradient: forward mode transposes the pull of {self.name}, which must be made of operations on the "
                f"adjoint that are recorded and differentiable; use reverse mode ({error})"
            ) from error

    def _require_linear(self, pull: Any, out: Any) -> None:
        rng = np.random.default_rng(0)
        several = isinstance(out, tuple)
        parts = [rng.normal(size=np.shape(o)).astype(o.dtype)[()] for o in (out if several else (out,))]
        once, scaled = (pull(tuple(s * p for p in parts) if several else s * parts[0]) for s in (1, -1e6))
        once, scaled = np.asarray(to_plain(once)), np.asarray(to_plain(scaled))
        close = np.sqrt(np.finfo(np.result_type(once, np.float32)).eps)
        if not np.allclose(scaled / -1e6, once, rtol=close, atol=close * np.max(np.abs(once), initial=0), equal_nan=True):
            raise ValueError(
                f"custom_gradient: the pull of {self.name} is not linear in the adjoint, so it has no forward mode; use "
                "reverse mode"
            )


_custom = Opaque("custom_gradient")
