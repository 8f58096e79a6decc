"""`rule`: declaration of the derivative of a user-defined operation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.protocols import Primitive

from .. import numeric
from .broadcasting import conform
from .lazy_cotangents import as_view
from .rule import Formula, Rule, VariadicFormulas, declare, rule_factories

KINDS = ("elementwise", "linear", "multilinear", "general")


def rule(
    function: Callable[..., Any],
    *formulas: Formula | None,
    kind: str | None = None,
    tangents: Sequence[Formula | None] = (),
    derivative: Callable[..., Any] | Sequence[Callable[..., Any] | None] | None = None,
    jacobian: Callable[..., Any] | Sequence[Callable[..., Any] | None] | None = None,
    numerically: bool = False,
    check: bool = False,
) -> Any:
    """Declare the derivative of a user-defined operation.

    Parameters
    ----------
    function : callable
        A function decorated with ``cg.primitive``.
    *formulas : callable or None
        For each operand, ``(cotangent, out, *operands, **options) -> contribution`` to the cotangent of the operand; None
        where the derivative is zero. Without formulas, `derivative`, `jacobian` and `numerically`, `rule` is a
        decorator of the formula of the first operand.
    kind : {"general", "elementwise", "linear", "multilinear"}, optional
        The structure of the Jacobian: *elementwise* if it is diagonal with respect to each operand (after
        broadcasting); *linear* if the operation is linear in all operands together; *multilinear* if it is linear in
        each operand; otherwise *general*.
    tangents : sequence of callable or None
        For forward mode of a general operation: for each operand,
        ``(tangent, out, *operands, **options) -> tangent of the output``.
    derivative : callable or sequence of callable or None, optional
        Replaces formulas of an elementwise operation: ``(*operands, **options)`` returns its derivative; for several
        operands a sequence.
    jacobian : callable or sequence of callable or None, optional
        Replaces formulas: ``(*operands, **options)`` returns the Jacobian, an array of the shape of the output followed
        by that of the operand; for several operands a sequence.
    numerically : bool
        Replaces formulas by central differences of the function, with about ten correct digits in double precision.
        They take two calls for each element of an operand; two calls in total for kind "elementwise". Higher derivatives
        raise. All operands must be real.
    check : bool
        Whether to compare the rule with central differences at its first use, for each operand and mode.

    Returns
    -------
    Rule or callable
        The rule; without formulas, a decorator that returns it.

    Raises
    ------
    TypeError
        If `function` is not a primitive; when used, if a numerical derivative is differentiated again.
    ValueError
        If the kind is unknown, several forms of the derivative are passed, or tangents are passed for a kind that
        determines them.
    ArithmeticError
        At the first use, with `check`: if the rule disagrees with central differences.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> import autodiff
    >>> @cg.primitive
    ... def gauss(x):
    ...     return np.exp(-x * x)
    >>> bell = autodiff.rule(gauss, derivative=lambda x: -2 * x * gauss(x), check=True)
    >>> print(autodiff.grad(autodiff.grad(gauss))(0.0), autodiff.jvp(gauss, (0.0,), (1.0,))[1])
    -2.0 -0.0
    """
    if not isinstance(function, Primitive):
        raise TypeError(f"rule: {function!r} is not an operation. Decorate it with cg.primitive first")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"rule: kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if tangents and (kind or "general") != "general":
        raise ValueError(f"rule: the tangents of a rule of kind {kind!r} follow from its kind. Omit them")
    sources = [bool(formulas or tangents), derivative is not None, jacobian is not None, numerically]
    if sum(sources) > 1:
        raise ValueError(
            "rule: several forms of the derivative were passed. Pass formulas (and tangents), or derivative=, or jacobian=, or "
            "numerically=True"
        )
    if not any(sources) or (tangents and not formulas):
        return lambda formula: rule(function, formula, kind=kind, tangents=tangents, check=check)
    new_rule = _create_rule(function, formulas, kind, tangents, derivative, jacobian, numerically)
    return declare(_with_checks(new_rule, function) if check else new_rule, function.function)


def _create_rule(
    function: Any, formulas: Any, kind: Any, tangents: Any, derivative: object, jacobian: object, numerically: bool
) -> Rule:
    """Return the rule of a primitive."""
    opname = function.opname
    count = _operand_count(function) if numerically or derivative or jacobian else 0
    if numerically:
        if kind in ("linear", "multilinear"):
            raise ValueError(
                f"rule: numerically=True does not apply to a {kind} operation. Pass formulas, or the kind general or elementwise"
            )
        slopes = [numerical_derivative(function.function, k, kind == "elementwise") for k in range(count)]
        derivative, jacobian = (slopes, None) if kind == "elementwise" else (None, slopes)
    if derivative is not None:
        if kind not in (None, "elementwise"):
            raise ValueError(
                f"rule: derivative= applies to elementwise operations, not to kind {kind!r}. Pass jacobian= or formulas"
            )
        formulas = [
            slope and functools.partial(_pull_derivative, opname, slope)
            for slope in _list_per_operand("derivative", derivative, count, opname)
        ]
        return Rule(opname, "elementwise", formulas, formulas)
    if jacobian is not None:
        if kind not in (None, "general"):
            raise ValueError(f"rule: jacobian= applies to general operations, not to kind {kind!r}. Pass formulas or derivative=")
        operand_jacobians = list(enumerate(_list_per_operand("jacobian", jacobian, count, opname)))
        pullbacks = [j and functools.partial(_pull_jacobian, opname, k, j) for k, j in operand_jacobians]
        pushforwards = [j and functools.partial(_push_jacobian, opname, k, j) for k, j in operand_jacobians]
        return Rule(opname, "general", pullbacks, pushforwards)
    kind = kind or "general"
    pullbacks = [f and functools.partial(_as_view, f) for f in formulas]
    return Rule(opname, kind, pullbacks, formulas if kind == "elementwise" else tangents)


def _as_view(formula: Formula, *arguments: object, **options: object) -> Any:
    return as_view(formula(*arguments, **options))


def _operand_count(function: Any) -> int:
    """Return the number of operands of a primitive."""
    kinds = [p.kind for p in inspect.signature(function.function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        raise ValueError(f"rule: {function.opname} takes any number of operands. Pass formulas")
    return sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds)


def _list_per_operand(keyword: str, derivatives: Any, count: int, opname: str) -> list[Any]:
    """Return a sequence with an entry per operand."""
    entries = [derivatives] if callable(derivatives) else list(derivatives)
    if len(entries) != count:
        raise ValueError(f"rule: {opname} has {count} operands, but {keyword}= has {len(entries)} entries. Pass None for zero")
    return entries


def _require_single_output(opname: str, out: object) -> None:
    if isinstance(out, tuple):
        raise TypeError(
            f"rule: derivative=, jacobian= and numerically=True apply to operations with one result, but {opname} returns "
            f"{len(out)}. Pass formulas"
        )


def _pull_derivative(opname: str, slope: Callable[..., Any], g: object, out: object, *operands: object, **options: object) -> Any:
    _require_single_output(opname, out)
    return g * slope(*operands, **options)


def _evaluate_jacobian(opname: str, k: int, jacobian: Any, out: Array, operands: Any, options: Any) -> Any:
    _require_single_output(opname, out)
    jacobian_value = jacobian(*operands, **options)
    expected_shape = (*np.shape(out), *np.shape(operands[k]))
    if np.shape(jacobian_value) != expected_shape:
        raise ValueError(
            f"the Jacobian of {opname} for operand {k} has shape {np.shape(jacobian_value)}; it must have {expected_shape}"
        )
    return jacobian_value


def _pull_jacobian(opname: str, k: int, jacobian: object, g: Array, out: Array, *operands: Any, **options: object) -> Any:
    return np.tensordot(g, _evaluate_jacobian(opname, k, jacobian, out, operands, options), np.ndim(out))


def _push_jacobian(opname: str, k: int, jacobian: object, t: Array, out: Array, *operands: Any, **options: object) -> Any:
    return np.tensordot(_evaluate_jacobian(opname, k, jacobian, out, operands, options), t, np.ndim(operands[k]))


# ---------------------------------------------------------------------------------------------- check


def _with_checks(unchecked_rule: Rule, function: Any) -> Rule:
    """Return a rule that compares each formula with central differences at its first use."""
    count = len(unchecked_rule.formulas)
    tangents: Sequence[Any] = unchecked_rule.tangents
    if unchecked_rule.kind in ("linear", "multilinear"):  # explicit formulas, so that they can be checked
        tangents = [functools.partial(_tangent_by_kind, function.function, unchecked_rule.kind, k) for k in range(count)]
    formulas = [_CheckedFormula(function, k, f, "reverse") for k, f in enumerate(unchecked_rule.formulas)]
    checked_tangents = [_CheckedFormula(function, k, t, "forward") for k, t in enumerate(tangents)]
    if unchecked_rule.kind == "elementwise":
        return Rule(unchecked_rule.opname, "elementwise", formulas, checked_tangents)
    return Rule(unchecked_rule.opname, "general", formulas, checked_tangents)


def _tangent_by_kind(
    function: Callable[..., Any], kind: str, k: int, t: Array, out: Array, *operands: object, **options: object
) -> Any:
    if kind == "linear":
        operands = tuple(np.zeros_like(x) for x in operands)
    return bind(function, (*operands[:k], t, *operands[k + 1 :]), options)


class _CheckedFormula:
    """A formula that is compared with a central difference at its first use."""

    def __init__(self, function: Any, position: int, formula: Callable[..., Any] | None, mode: str) -> None:
        self.function, self.position, self.formula, self.mode = function, position, formula, mode
        self.is_checked = False

    def __call__(self, seed: Array, out: Array, *operands: Any, **options: object) -> Any:
        """Return the result of the formula."""
        operand = operands[self.position]
        if self.formula is None:
            result = np.zeros_like(operand if self.mode == "reverse" else out)
        else:
            result = self.formula(seed, out, *operands, **options)
        if self.is_checked:
            return result
        like = to_values(out if self.mode == "reverse" else operand)
        direction, direction_result = _select_direction(to_values(seed), to_values(result), like, np.ndim(out))
        direction_vector = _to_vector(direction, like)
        if np.any(direction_vector) and direction_vector.shape == _to_vector(like).shape:
            self._check(direction, direction_result, to_values(out), [to_values(x) for x in operands], options)
            self.is_checked = True
        return result

    def _check(self, seed: Any, result: Any, out: Any, operands: list[Any], options: Any) -> None:
        """Compare along the tangent; in reverse mode, along a random direction."""
        k = self.position
        operand = np.asarray(operands[k])
        direction = seed if self.mode == "forward" else numeric.random_direction(operand, np.random.default_rng(0))

        def apply_to_operand_k(x: Any) -> Any:
            return self.function.function(*operands[:k], x, *operands[k + 1 :], **options)

        slope = _to_vector(_directional_derivative(apply_to_operand_k, operand, direction))
        if self.mode == "forward":
            expected = slope
            actual = _to_vector(result if isinstance(result, tuple) else conform(np.asarray(result), np.asarray(out)))
        else:
            expected = np.sum(slope * _to_vector(seed, out))
            actual = np.sum(conform(np.asarray(result), operand) * direction)
        scale = np.max(np.abs(slope), initial=0) * (1 if self.mode == "forward" else np.sum(np.abs(_to_vector(seed, out))))
        tolerance = 1e-4 if operand.dtype.itemsize > 4 else 2e-2
        if not np.all(np.abs(np.real(actual) - np.real(expected)) <= tolerance * (scale + 1e-2)):
            raise ArithmeticError(
                f"the rule of {self.function.opname} is wrong for operand {k}, {self.mode} mode: it returns {_format(actual)}, a "
                f"central difference {_format(expected)}. Correct the formula"
            )


def _select_direction(seed: Any, result: Any, like: Any, ndim: int) -> tuple[Any, Any]:
    """Return the first nonzero direction of a batch, and the result of the formula for it."""
    if isinstance(seed, tuple) or np.ndim(seed) <= np.ndim(like) or not seed.size:
        return seed, result
    index = int(np.argmax(np.any(np.reshape(seed, (len(seed), -1)), axis=1)))
    return np.reshape(seed[index], np.shape(like)), result[index] if np.ndim(result) > ndim else result


def _directional_derivative(f: Callable[..., Any], x: Array, direction: object) -> Any:
    """Return the derivative of all results along a direction."""
    return numeric.directional(lambda z: _to_vector(f(z)), [x], [direction])


def _to_vector(value: Any, like: Any = None) -> Any:
    """Return all results of an operation as one vector, with zeros for None."""
    if isinstance(value, tuple):
        parts = like if isinstance(like, tuple) else value
        return np.concatenate([np.ravel(np.zeros_like(p) if v is None else v) for v, p in zip(value, parts, strict=True)])
    return np.ravel(value)


def _format(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=6, threshold=4)


class Slope:
    """The derivative of a function of plain arrays with respect to one operand, by central differences."""

    def __init__(self, function: Callable[..., Any], position: int, elementwise: bool) -> None:
        self.__name__ = f"{function.__name__}_slope"
        self.function, self.position, self.elementwise = function, position, elementwise

    def __call__(self, *operands: object, **options: object) -> Any:
        """Return the Jacobian; its diagonal for an elementwise function."""
        values = [np.asarray(x) for x in operands]
        if any(x.dtype.kind == "c" for x in values):
            raise TypeError("rule: a derivative by central differences needs real operands. Pass formulas for complex ones")
        k = self.position

        def apply_to_operand(x: Array) -> Any:
            out = np.asarray(self.function(*values[:k], x, *values[k + 1 :], **options))
            if out.dtype.kind == "c":
                raise TypeError("rule: a derivative by central differences needs a real result. Pass formulas")
            if self.elementwise and out.shape != np.broadcast_shapes(*(v.shape for v in values)):
                raise ValueError(
                    f"rule: {self.function.__name__} is not elementwise: it returned shape {out.shape} for operands of shapes "
                    f"{', '.join(str(v.shape) for v in values)}. Omit kind"
                )
            return out

        if self.elementwise:
            return numeric.elementwise_derivative(apply_to_operand, values[k])
        return numeric.jacobian(apply_to_operand, values[k])


def numerical_derivative(function: Callable[..., Any], position: int, elementwise: bool) -> Any:
    """Return the derivative as an operation, which cannot be differentiated."""
    slope = Slope(function, position, elementwise)
    return lambda *operands, **options: bind(slope, operands, options)


def _numerical_rule(slope: Slope) -> Rule:
    opname = ops.opname_of(slope.function)

    def raise_unsupported(*_: object, **__: object) -> Any:
        raise TypeError(
            f"the derivative of {opname} is by central differences, which cannot be differentiated again. Pass formulas to "
            "autodiff.rule for higher orders"
        )

    formulas = VariadicFormulas(raise_unsupported)
    return Rule(slope.__name__, "general", formulas, formulas)


rule_factories[Slope] = _numerical_rule
