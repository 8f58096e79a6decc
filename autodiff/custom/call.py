"""Calls that are one node of the graph, with a Python function as derivative.

`custom_gradient`, `checkpoint`, `root` and `odeint` are such calls: their results are not formulas of NumPy functions. The
options of the node hold an object with two methods::

    compute(*operands) -> value                on plain arrays
    pull(cotangent, out, *operands) -> [...]   the operands' cotangents, on plain arrays or, for higher orders, on nodes

Tangents follow by transposition: `pull` is linear in the cotangent, so ``J @ t`` is the gradient of ``sum(pull(u) * t)`` with
respect to u. A third method, ``push(position, tangent, out, *operands)``, replaces the transposition by a faster formula.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from compgraph.graph import to_values
from compgraph.serialization import SELF_PICKLING
from compgraph.values import Value

from ..operators import vjp
from ..rules import Rule, SharedFormulas, VariadicFormulas, rule_factories


class CallFunction:
    """The function of nodes that represent calls; one instance per operation name.

    Parameters
    ----------
    opname : str
        The name of the operation.
    """

    _instances: ClassVar[dict[str, CallFunction]] = {}

    def __new__(cls, opname: str) -> CallFunction:
        """Return the instance with that name."""
        return cls._instances.setdefault(opname, object.__new__(cls))

    def __init__(self, opname: str) -> None:
        self.__name__ = opname

    def __reduce__(self) -> Any:
        return CallFunction, (self.__name__,)

    def __call__(self, *operands: Any, call: Any) -> Any:
        """Compute the value of the call."""
        return call.compute(*operands)


SELF_PICKLING.add(CallFunction)


def _pull_cotangents(positions: list[int], cotangent: Any, out: Any, *operands: Any, call: Any) -> list[Any]:
    """Return the cotangents of several operands by one call of `pull`."""
    cotangents = call.pull(cotangent, out, *operands)
    return [cotangents[position] for position in positions]


def _push_tangent(position: int, tangent: Any, out: Any, *operands: Any, call: Any) -> Any:
    if hasattr(call, "push"):
        return call.push(position, tangent, out, *operands)
    return transpose_pull(lambda u: call.pull(u, out, *operands)[position], out, tangent)


def transpose_pull(pull: Any, out: Any, tangent: Any) -> Any:
    """Return the tangent of a result by transposing the pullback of an operand.

    Parameters
    ----------
    pull : callable
        Maps the cotangent of the result, or the tuple of cotangents of several results, to that of the operand.
    out : array or tuple of arrays
        The result.
    tangent : array or Node
        The tangent of the operand.
    """
    if isinstance(out, tuple):
        ones = [np.ones(part.shape, part.dtype) for part in out]
        return vjp(lambda *us: pull(us), *ones)[1](tangent)
    return vjp(pull, np.ones(out.shape, out.dtype))[1](tangent)[0]


rule_factories[CallFunction] = lambda function: Rule(
    function.__name__, "general", SharedFormulas(_pull_cotangents), VariadicFormulas(_push_tangent)
)


def instantiate_zeros(cotangents: tuple[Any, ...], outs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace None among the cotangents of several results by zeros."""
    return tuple(np.zeros(o.shape, o.dtype)[()] if a is None else a for a, o in zip(cotangents, outs, strict=True))


def require_same(name: str, before: object, now: object, scale: float = 0.0) -> None:
    """Raise if a user's function returns different numbers when a derivative calls it again.

    Parameters
    ----------
    name : str
        The calling operation, for messages.
    before, now : array_like or Node
        The earlier and the current result.
    scale : float
        The magnitude that rounding errors are relative to, if the results are differences of larger numbers.

    Raises
    ------
    ValueError
        If they differ by more than rounding errors. These may depend on memory addresses.
    """
    earlier_values, current_values = np.asarray(to_values(before)), np.asarray(to_values(now))
    if current_values.shape == earlier_values.shape:
        if np.array_equal(current_values, earlier_values, equal_nan=current_values.dtype.kind in "fc"):
            return
        tolerance = float(np.sqrt(np.finfo(np.result_type(current_values, np.float16)).eps))
        scale = max(scale, float(np.max(np.abs(earlier_values), initial=0)))
        if np.allclose(current_values, earlier_values, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return
    raise ValueError(
        f"{name}: the function returned different numbers when it was called again. It draws random numbers, or an array that it "
        "uses was written into. Pass that as an argument, or use a copy (np.copy)"
    )


def has_node(*values: Any) -> bool:
    """Whether any value is a node, or a tuple that contains one."""
    return any(has_node(*v) if isinstance(v, tuple) else isinstance(v, Value) for v in values)
