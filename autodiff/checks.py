"""`check_graph` and `check_grads` compare derivatives with central differences, and name the operation whose rule is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.graph import to_values
from compgraph.storage import Write
from compgraph.values import MultiOutput, Node, Value, describe

from . import numeric
from .arguments import Arguments, flatten
from .forward import jvp
from .numeric import require_arguments
from .operators import vjp
from .reverse import collect
from .rules import LAZY_COTANGENTS, by_function, conform, plain_operands, plain_result, push


@dataclass(frozen=True)
class Finding:
    """One operand of one operation whose rule disagrees with a central difference.

    Attributes
    ----------
    opname : str
        The operation.
    position : int
        The position of the operand, from 0.
    mode : {"reverse", "forward"}
        Whether the rule received a cotangent or a tangent.
    expected, found : float
        The directional derivative by a central difference, and by the rule.
    node : str
        The node, as messages describe it.
    """

    opname: str
    position: int
    mode: str
    expected: float
    found: float
    node: str

    def __str__(self) -> str:
        return (
            f"operand {self.position} of {self.opname}, {self.mode} mode: the rule gives {self.found:.8g}, a central "
            f"difference {self.expected:.8g} ({self.node})"
        )


def check_graph(node: Node, rtol: float = 1e-4, atol: float = 1e-6, seed: int = 0) -> list[Finding]:
    """Check the rule of each operation in the graph of `node` separately, for each operand, in both modes.

    Parameters
    ----------
    node : Node
        The output of a graph.
    rtol, atol : float
        The relative and the absolute tolerance between a rule and a central difference.
    seed : int
        The seed of the random directions.

    Returns
    -------
    list of Finding
        The operands whose rule disagrees; empty if all agree. At a kink (abs at 0) or a discontinuity central differences are
        wrong, so a finding there is no error of the rule.

    Raises
    ------
    TypeError
        If `node` is not a node, or an operation has no rule.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> check_graph(np.sin(cg.variable(0.5)) ** 2)
    []
    """
    if not isinstance(node, Value):
        raise TypeError(
            f"check_graph takes the output node of a graph, not a {type(node).__name__}. For a function use check_grads"
        )
    rng = np.random.default_rng(seed)
    findings = []
    for operation in collect(node):
        if type(operation) is Write:
            continue
        function = operation.function
        if function is None or function in ops.PIECEWISE or isinstance(function, ops.Output):
            continue
        for position in operation.parent_argnums:
            if operation.args[position].raw_value.dtype.kind in "fc":
                findings += _check_operand(operation, position, rng, rtol, atol)
    return findings


def _check_operand(operation: Any, position: int, rng: object, rtol: float, atol: float) -> list[Finding]:
    """Return the findings for one operand, in both modes, by a central difference along a random direction."""
    values = plain_operands(operation)
    rule = by_function[operation.function]
    out = plain_result(operation)
    direction = _random_like(values[position], rng)

    def apply_to_operand(operand: Operand) -> Any:
        changed = operation.function(*values[:position], operand, *values[position + 1 :], **operation.options)
        return _flatten_numbers(changed)

    slope = numeric.directional(apply_to_operand, [values[position]], [direction])
    weights = _random_like(out, rng)
    expected = _inner_product(_flatten_numbers(weights), slope)
    formula = rule.formulas[position]
    contribution: Any = None if formula is None else formula(weights, out, *values, **operation.options)
    if type(contribution) in LAZY_COTANGENTS:
        contribution = contribution.materialize(operation.args[position])
    reverse = 0.0 if contribution is None else _inner_product(conform(contribution, np.asarray(values[position])), direction)
    tangents = [direction if i == position else None for i in range(len(values))]
    tangent = push(rule, tangents, out, operation.function, tuple(values), operation.options)
    forward = 0.0 if tangent is None else _inner_product(_flatten_numbers(weights), _flatten_numbers(_fill_zeros(tangent, out)))
    description = rule.opname if isinstance(operation, MultiOutput) else describe(operation)
    return [
        Finding(rule.opname, position, mode, expected, actual, description)
        for mode, actual in (("reverse", reverse), ("forward", forward))
        if not abs(actual - expected) <= atol + rtol * max(abs(expected), float(np.sum(np.abs(slope))))
    ]


def _random_like(out: Array, rng: object) -> Any:
    """Return a random array of the shape and dtype of a value; for several outputs a tuple, with None for integers."""
    if isinstance(out, tuple):
        return tuple(_random_like(o, rng) if np.asarray(to_values(o)).dtype.kind in "fc" else None for o in out)
    return numeric.random_direction(np.asarray(to_values(out)), rng)


def _fill_zeros(tangent: Array, out: Array) -> Any:
    """Convert a tangent to the shape of the output; for several outputs, replace None by zeros."""
    if isinstance(out, tuple):
        return tuple(np.zeros(np.shape(o)) if t is None else conform(t, o) for t, o in zip(tangent, out, strict=True))
    return conform(tangent, out)


def _flatten_numbers(value: Array) -> Any:
    """Return all floating and complex numbers of a result, or of several outputs, as one vector."""
    parts = value if isinstance(value, (tuple, list)) else [value]
    rows = [np.ravel(p) for p in map(to_values, parts) if p is not None and np.asarray(p).dtype.kind in "fc"]
    return np.concatenate(rows) if rows else np.zeros(0)


def _inner_product(cotangent: Array, tangent: object) -> float:
    """Return the directional derivative ``real(sum(cotangent * tangent))``, without conjugation."""
    return float(np.real(np.sum(np.asarray(to_values(cotangent)) * np.asarray(to_values(tangent)))))


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    rtol: float = 1e-4,
    atol: float = 1e-6,
    seed: int = 0,
) -> None:
    """Check the value of a function against plain NumPy, and its derivatives against central differences.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way.
    args : sequence of array_like
        The point: the arguments, which may nest. Numbers and arrays of integers become floats.
    order : int
        The highest order of derivatives to check.
    modes : sequence of {"fwd", "rev"}
        The modes to check. Derivatives of second and higher order use one mode for all orders.
    rtol, atol : float
        The relative and the absolute tolerance between a derivative and a central difference.
    seed : int
        The seed of the random directions.

    Raises
    ------
    AssertionError
        If the recorded value differs from NumPy's, or a derivative from the central difference; the message names the
        mode, the order, and the operations with wrong rules.
    TypeError
        If `args` is not a sequence, or contains no array.
    ValueError
        If a mode is unknown, or the order is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> check_grads(lambda x, y: np.sin(x) * y, [0.5, np.array([1.0, 2.0])], order=3)
    >>> check_grads(lambda p: {"a": p["w"] ** 2, "b": np.sum(p["w"])}, [{"w": np.ones(3)}], modes=("rev",))
    """
    if order < 1 or not modes or not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"check_grads: order must be at least 1 and modes among 'fwd' and 'rev', not {order}, {modes}")
    require_arguments("check_grads", args)
    arguments = Arguments("check_grads", f, args, {}, range(len(args)))
    leaves = [numeric.plain(leaf) for leaf in arguments.leaves]
    _check_derivatives(lambda *leaves: _as_one_array(arguments(*leaves)), leaves, order, tuple(modes), (rtol, atol), seed)


def _as_one_array(result: object) -> Any:
    """Return a result as one array; for a nested result, all leaves as one vector."""
    leaves, structure = flatten(result)
    return result if structure.is_leaf() or not leaves else np.concatenate([np.ravel(leaf) for leaf in leaves])


def _check_derivatives(
    f: Callable[..., Any], args: list[Any], order: int, modes: Sequence[str], tolerances: tuple[float, float], seed: int,
    level: int = 1,
) -> None:  # fmt: skip
    """Check the derivatives, up to `order`, of a function that is itself a derivative of order ``level - 1``."""
    rtol, atol = tolerances
    rng = np.random.default_rng(seed)
    directions = [_random_like(a, rng) for a in args]
    expected = np.asarray(to_values(f(*args)))
    value, tangent = jvp(f, args, directions) if "fwd" in modes else (vjp(f, *args)[0], None)
    if not np.array_equal(np.asarray(to_values(value)), expected, equal_nan=expected.dtype.kind in "fc"):
        raise AssertionError(f"the recorded value {value} is not NumPy's {expected}")
    slope = numeric.directional(f, args, directions)
    weights = _random_like(expected, rng)
    expected_slope = _inner_product(weights, slope)
    for mode in modes:
        if mode == "fwd":
            actual = _inner_product(weights, tangent)
        else:
            cotangents = vjp(f, *args)[1](weights)
            actual = sum(_inner_product(c, d) for c, d in zip(cotangents, directions, strict=True))
        if not abs(actual - expected_slope) <= atol + rtol * max(abs(expected_slope), float(np.sum(np.abs(slope)))):
            raise AssertionError(f"order {level}: {_explain_wrong_derivative(f, args, mode, actual, expected_slope)}")
        if level < order:
            _check_derivatives(_derivative(f, mode, directions, weights), args, order, (mode,), tolerances, seed + 1, level + 1)


def _derivative(f: Callable[..., Any], mode: str, directions: Sequence[Any], weights: NDArray[Any]) -> Callable[..., Any]:
    """Return the derivative along fixed directions, as a function of the point."""
    if mode == "fwd":
        return lambda *args: jvp(f, args, directions)[1]

    def reverse(*args: object) -> Any:
        cotangents = vjp(f, *args)[1](weights)
        return sum(np.sum(np.real(c * d)) for c, d in zip(cotangents, directions, strict=True))

    return reverse


def _explain_wrong_derivative(f: Callable[..., Any], args: Sequence[Any], mode: str, actual: float, expected_slope: float) -> str:
    """Return the message for a wrong derivative, with the operations whose rules disagree."""
    findings: list[Finding] = []

    def check_recorded_graph(*nodes: object) -> Any:
        out = f(*nodes)
        findings.extend(check_graph(out))
        return out

    vjp(check_recorded_graph, *args)
    rule_errors = "; ".join(map(str, findings)) or "no single rule is wrong: look for values that left the graph"
    return f"derivative in mode {mode!r} is {actual:.8g}, a central difference gives {expected_slope:.8g}; {rule_errors}"
