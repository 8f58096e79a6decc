"""`rule`: how users declare the derivative of an operation of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.protocols import Primitive

from ..numeric import finite_differences
from .broadcasting import conform
from .rule import Rule, declare, makers
from .variadic_formulas import Formula, unowned

KINDS = ("elementwise", "linear", "multilinear", "general")


def rule(
    function: Callable[..., Any],
    *formulas: Formula | None,
    kind: str | None = None,
    tangents: Sequence[Formula | None] = (),
    derivative: Any = None,
    jacobian: Any = None,
    numerically: bool = False,
    check: bool = False,
) -> Any:
    """Declare the derivative of a user's own operation.

    Parameters
    ----------
    function : callable
        A function made by ``cg.primitive``.
    *formulas : callable or None
        For each operand, ``(adjoint, out, *operands, **options) -> contribution`` to the adjoint of the operand; None
        where the derivative is zero. Without any, and without `derivative`, `jacobian` or `numerically`, `rule` is a
        decorator of the formula of the first operand.
    kind : {"general", "elementwise", "linear", "multilinear"}, optional
        What the operation is like: *elementwise* if each element of the result depends on the element of each operand
        at the same place (after broadcasting); *linear* in all operands together; *multilinear*, linear in each of
        them; else *general*.
    tangents : sequence of callable or None
        Of a general operation, for forward mode: ``(tangent, out, *operands, **options) -> tangent of the output`` for
        each operand.
    derivative : callable or sequence of callable or None, optional
        Instead of formulas, of an elementwise operation: ``(*operands, **options)`` -> its derivative; for several
        operands a sequence.
    jacobian : callable or sequence of callable or None, optional
        Instead of formulas: ``(*operands, **options)`` -> the Jacobian, an array of the shape of the output followed by
        that of the operand; for several operands a sequence.
    numerically : bool
        Instead of formulas: by central differences of the function itself, with some ten correct digits in double
        precision. They take two calls for each element of an operand, two in all for kind "elementwise". Only the first
        derivative can be had; all operands must be real.
    check : bool
        Whether to compare the rule with central differences when it is first used, for each operand and mode.

    Returns
    -------
    Rule or callable
        The rule; a decorator that returns it if no formula is given.

    Raises
    ------
    TypeError
        If `function` is not a primitive; when used, if a numerical derivative is differentiated again.
    ValueError
        If the kind is unknown, the ways to give the derivative are mixed, or tangents are given for a kind that needs
        none.
    ArithmeticError
        When first used, with `check`: if the rule disagrees with central differences.

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
        raise TypeError(f"rule: {function!r} is not an operation yet; decorate it with cg.primitive first")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"rule: kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if tangents and (kind or "general") != "general":
        raise ValueError(f"rule: the tangents of a rule of kind {kind!r} follow from its kind; leave them out")
    ways = [bool(formulas or tangents), derivative is not None, jacobian is not None, numerically]
    if sum(ways) > 1:
        raise ValueError("rule: give either formulas (and tangents), or derivative=, or jacobian=, or numerically=True")
    if not any(ways) or (tangents and not formulas):
        return lambda formula: rule(function, formula, kind=kind, tangents=tangents, check=check)
    new_rule = _made(function, formulas, kind, tangents, derivative, jacobian, numerically)
    return declare(_checked(new_rule, function) if check else new_rule, function.function)


def _made(function: Any, formulas: Any, kind: Any, tangents: Any, derivative: Any, jacobian: Any, numerically: bool) -> Rule:
    """The rule of a primitive, by whichever way it was given."""
    opname = function.opname
    count = _operand_count(function) if numerically or derivative or jacobian else 0
    if numerically:
        if kind in ("linear", "multilinear"):
            raise ValueError(
                f"rule: of a {kind} operation give the formulas; numerically=True is for kinds general and elementwise"
            )
        slopes = [numerical(function.function, k, kind == "elementwise") for k in range(count)]
        derivative, jacobian = (slopes, None) if kind == "elementwise" else (None, slopes)
    if derivative is not None:
        if kind not in (None, "elementwise"):
            raise ValueError(f"rule: derivative= is for elementwise operations, not for kind {kind!r}")
        formulas = [d and functools.partial(_scaled, opname, d) for d in _each("derivative", derivative, count, opname)]
        return Rule(opname, "elementwise", formulas, formulas)
    if jacobian is not None:
        if kind not in (None, "general"):
            raise ValueError(f"rule: jacobian= is for general operations; of a {kind} one give formulas or derivative=")
        operand_jacobians = list(enumerate(_each("jacobian", jacobian, count, opname)))
        back = [j and functools.partial(_pulled, opname, k, j) for k, j in operand_jacobians]
        return Rule(opname, "general", back, [j and functools.partial(_pushed, opname, k, j) for k, j in operand_jacobians])
    kind = kind or "general"
    back = [f and functools.partial(_unowned, f) for f in formulas]
    return Rule(opname, kind, back, formulas if kind == "elementwise" else tangents)


def _unowned(formula: Formula, *arguments: Any, **options: Any) -> Any:
    return unowned(formula(*arguments, **options))


def _operand_count(function: Any) -> int:
    """How many operands a primitive has."""
    kinds = [p.kind for p in inspect.signature(function.function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        raise ValueError(f"rule: {function.opname} takes any number of operands; give formulas")
    return sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds)


def _each(what: str, derivatives: Any, count: int, opname: str) -> list[Any]:
    """Return a sequence with an entry per operand."""
    each = [derivatives] if callable(derivatives) else list(derivatives)
    if len(each) != count:
        raise ValueError(f"rule: {opname} has {count} operands, but {what}= gives {len(each)}; None means zero")
    return each


def _require_one(opname: str, out: Any) -> None:
    if isinstance(out, tuple):
        raise TypeError(
            f"rule: derivative=, jacobian= and numerically=True are for operations of one result; {opname} gives {len(out)}, "
            "which need formulas"
        )


def _scaled(opname: str, slope: Any, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    _require_one(opname, out)
    return g * slope(*operands, **options)


def _jacobian_of(opname: str, k: int, jacobian: Any, out: Any, operands: Any, options: Any) -> Any:
    _require_one(opname, out)
    jacobian_value = jacobian(*operands, **options)
    wanted = (*np.shape(out), *np.shape(operands[k]))
    if np.shape(jacobian_value) != wanted:
        raise ValueError(f"the Jacobian of {opname} for operand {k} has shape {np.shape(jacobian_value)}; it must have {wanted}")
    return jacobian_value


def _pulled(opname: str, k: int, jacobian: Any, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    return np.tensordot(g, _jacobian_of(opname, k, jacobian, out, operands, options), np.ndim(out))


def _pushed(opname: str, k: int, jacobian: Any, t: Any, out: Any, *operands: Any, **options: Any) -> Any:
    return np.tensordot(_jacobian_of(opname, k, jacobian, out, operands, options), t, np.ndim(operands[k]))


# ---------------------------------------------------------------------------------------------- check


def _checked(unchecked_rule: Rule, function: Any) -> Rule:
    """The rule, that compares itself with central differences the first time each of its formulas is used."""
    count = len(unchecked_rule.formulas)
    tangents: Sequence[Any] = unchecked_rule.tangents
    if unchecked_rule.kind in ("linear", "multilinear"):  # explicit formulas, so that they can be checked
        tangents = [functools.partial(_by_kind, function.function, unchecked_rule.kind, k) for k in range(count)]
    back = [_Checked(function, k, f, "reverse") for k, f in enumerate(unchecked_rule.formulas)]
    along = [_Checked(function, k, t, "forward") for k, t in enumerate(tangents)]
    if unchecked_rule.kind == "elementwise":
        return Rule(unchecked_rule.opname, "elementwise", back, along)
    return Rule(unchecked_rule.opname, "general", back, along)


def _by_kind(function: Any, kind: str, k: int, t: Any, out: Any, *operands: Any, **options: Any) -> Any:
    if kind == "linear":
        operands = tuple(np.zeros_like(x) for x in operands)
    return bind(function, (*operands[:k], t, *operands[k + 1 :]), options)


class _Checked:
    """A formula that is compared with a central difference the first time it is used."""

    def __init__(self, function: Any, position: int, formula: Any, mode: str) -> None:
        self.function, self.position, self.formula, self.mode = function, position, formula, mode
        self.done = False

    def __call__(self, seed: Any, out: Any, *operands: Any, **options: Any) -> Any:
        """Return the result of the formula."""
        operand = operands[self.position]
        result = np.zeros_like(operand if self.mode == "reverse" else out) if self.formula is None else None
        if result is None:
            result = self.formula(seed, out, *operands, **options)
        if self.done:
            return result
        like = to_values(out if self.mode == "reverse" else operand)
        plain, alone = _one_direction(to_values(seed), to_values(result), like, np.ndim(out))
        if np.any(_flat(plain, like)) and np.shape(_flat(plain, like)) == np.shape(_flat(like)):
            self._check(plain, alone, to_values(out), [to_values(x) for x in operands], options)
            self.done = True
        return result

    def _check(self, seed: Any, result: Any, out: Any, operands: list[Any], options: Any) -> None:
        """Compare along the tangent, or in reverse along a random direction."""
        k = self.position
        operand = np.asarray(operands[k])
        direction = seed if self.mode == "forward" else finite_differences.random_direction(operand, np.random.default_rng(0))

        def moved(x: Any) -> Any:
            return self.function.function(*operands[:k], x, *operands[k + 1 :], **options)

        slope = _flat(_moved_along(moved, operand, direction))
        if self.mode == "forward":
            expected, actual = slope, _flat(result if isinstance(result, tuple) else conform(np.asarray(result), np.asarray(out)))
        else:
            expected = np.sum(slope * _flat(seed, out))
            actual = np.sum(conform(np.asarray(result), operand) * direction)
        size = np.max(np.abs(slope), initial=0) * (1 if self.mode == "forward" else np.sum(np.abs(_flat(seed, out))))
        close = 1e-4 if operand.dtype.itemsize > 4 else 2e-2
        if not np.all(np.abs(np.real(actual) - np.real(expected)) <= close * (size + 1e-2)):
            raise ArithmeticError(
                f"the rule of {self.function.opname} is wrong for operand {k}, {self.mode} mode: it gives {_short(actual)}, a "
                f"central difference {_short(expected)}"
            )


def _one_direction(seed: Any, result: Any, like: Any, ndim: int) -> tuple[Any, Any]:
    """Return the first nonzero direction of a batch, and its result of a formula."""
    if isinstance(seed, tuple) or np.ndim(seed) <= np.ndim(like) or not seed.size:
        return seed, result
    row = int(np.argmax(np.any(np.reshape(seed, (len(seed), -1)), axis=1)))
    return np.reshape(seed[row], np.shape(like)), result[row] if np.ndim(result) > ndim else result


def _moved_along(f: Any, x: Any, direction: Any) -> Any:
    """The derivative along a direction; of several results, of each."""
    return finite_differences.directional(lambda z: _flat(f(z)), [x], [direction])


def _flat(value: Any, like: Any = None) -> Any:
    """All results of an operation in one vector; zeros for an adjoint that did not arrive."""
    if isinstance(value, tuple):
        parts = like if isinstance(like, tuple) else value
        return np.concatenate([np.ravel(np.zeros_like(p) if v is None else v) for v, p in zip(value, parts, strict=True)])
    return np.ravel(value)


def _short(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=6, threshold=4)


class Slope:
    """The derivative of a function of plain arrays with respect to one operand, by central differences."""

    def __init__(self, function: Any, position: int, elementwise: bool) -> None:
        self.__name__ = f"{function.__name__}_slope"
        self.function, self.position, self.elementwise = function, position, elementwise

    def __call__(self, *operands: Any, **options: Any) -> Any:
        """The Jacobian, or of an elementwise function its diagonal."""
        values = [np.asarray(x) for x in operands]
        if any(x.dtype.kind == "c" for x in values):
            raise TypeError("rule: a derivative by central differences needs real operands; declare formulas for complex ones")
        k = self.position

        def moved(x: Any) -> Any:
            out = np.asarray(self.function(*values[:k], x, *values[k + 1 :], **options))
            if out.dtype.kind == "c":
                raise TypeError("rule: a derivative by central differences needs a real result; declare formulas")
            if self.elementwise and out.shape != np.broadcast_shapes(*(v.shape for v in values)):
                raise ValueError(
                    f"rule: {self.function.__name__} made shape {out.shape} of {', '.join(str(v.shape) for v in values)}; it is "
                    "not elementwise: leave out kind"
                )
            return out

        if self.elementwise:
            return finite_differences.elementwise(moved, values[k], np.ones(values[k].shape))
        return finite_differences.jacobian(moved, values[k])


def numerical(function: Any, position: int, elementwise: bool) -> Any:
    """The derivative as an operation of its own, which cannot be differentiated."""
    slope = Slope(function, position, elementwise)
    return lambda *operands, **options: bind(slope, operands, options)


def _slope_rule(slope: Slope) -> Rule:
    opname = ops.opname_of(slope.function)

    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(
            f"the derivative of {opname} is by central differences, which are not differentiated again; declare formulas "
            "with autodiff.rule for higher orders"
        )

    return Rule(slope.__name__, "general", _Always(refuse), _Always(refuse))


class _Always(Sequence[Any]):
    """The same formula for every operand."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:
        return self.formula


makers[Slope] = _slope_rule
