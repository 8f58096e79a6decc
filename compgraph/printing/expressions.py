"""Formulas as data, and the algebra by which they are made shorter.

An `Expression` has a head, which says what it is, and arguments:

==============  ==================================================================================================
`symbol`        a name; `data` is the name
`number`        a number, at each place of its shape; `data` is the number
`add`, `mul`    sums and products, element by element, of any number of terms
`pow`           ``base ** exponent``, element by element
`matmul`        a product of matrices and vectors
`transpose`     of a matrix; a vector stays as it is
`column`, `row` a vector as a matrix of one column, or one row
`sum`           over axes; `data` is ``(axes, keepdims)``
`call`          any other operation; `data` is a `Call`
==============  ==================================================================================================

The functions with the names of heads make expressions, and simplify as textbooks do: ``1 x`` is x, ``x x`` is a square, numbers
are multiplied, factors that are numbers leave matrix products and sums. All that holds for real numbers where both sides are
defined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """Which operation a `call` is.

    Attributes
    ----------
    opname : str
        Its name.
    function, options : callable, dict
        What computes it.
    is_elementwise : bool
        Whether each element of the result follows from the like elements of the arguments.
    said : tuple
        The options, to compare calls by.
    """

    opname: str
    function: Any = field(compare=False, default=None)
    options: dict[str, Any] = field(compare=False, default_factory=dict)
    is_elementwise: bool = False
    said: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Expression:
    """A formula; see the module."""

    head: str
    args: tuple[Expression, ...] = ()
    shape: Shape = ()
    data: Any = None

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many symbols and operations it has."""
        return 1 + sum(arg.size for arg in self.args)

    def is_number(self, value: Any = None) -> bool:
        """Whether it is a number; or that number."""
        return self.head == "number" and (value is None or bool(self.data == value))


def symbol(name: str, shape: Shape = ()) -> Expression:
    """A name."""
    return Expression("symbol", (), shape, name)


def number(value: Any, shape: Shape = ()) -> Expression:
    """A number, at each place of a shape; whole ones and fractions are exact."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    return Expression("number", (), shape, value)


def reshaped(x: Expression, shape: Shape) -> Expression:
    """An expression of elementwise arguments with another shape that these broadcast to."""
    if x.shape == shape:
        return x
    if x.head in ("number", "add", "mul", "pow") or (x.head == "call" and x.data.is_elementwise):
        return Expression(x.head, x.args, shape, x.data)
    return Expression("mul", (x,), shape)


def add(terms: Sequence[Expression], shape: Shape) -> Expression:
    """A sum, element by element, with numbers and like terms put together."""
    one = number(1)
    found: dict[Expression, Any] = {}
    for term in _together(_flat("add", terms)):
        factor, rest = (term.data, one) if term.is_number() else _split(term)
        found[rest] = found.get(rest, 0) + factor
    parts = [mul([number(factor), rest], rest.shape) for rest, factor in found.items() if factor != 0] or [number(0)]
    return reshaped(parts[0], shape) if len(parts) == 1 else Expression("add", tuple(parts), shape)


def mul(factors: Sequence[Expression], shape: Shape) -> Expression:
    """A product, element by element, with numbers multiplied, and powers of the same put together."""
    total: Any = 1
    powers: dict[Expression, Any] = {}
    for factor in _flat("mul", factors):
        if factor.is_number():
            total *= factor.data
            continue
        base, exponent = factor.args if factor.head == "pow" else (factor, number(1))
        if exponent.is_number():
            powers[base] = powers.get(base, 0) + exponent.data
        else:
            powers[factor] = powers.get(factor, 0) + 1
    if total == 0:
        return number(0, shape)
    parts = [power(base, number(exponent), base.shape) for base, exponent in powers.items() if exponent != 0]
    if len(parts) == 1 and _chooses_numbers(parts[0]):
        condition, *choices = parts[0].args
        return Expression("call", (condition, *[number(total * choice.data) for choice in choices]), shape, parts[0].data)
    if total == -1 and len(parts) == 1 and parts[0].head == "add":  # -(a - b) is b - a
        return reshaped(add([mul([number(-1), term], term.shape) for term in parts[0].args], parts[0].shape), shape)
    parts = [number(total), *parts] if total != 1 or not parts else parts
    return reshaped(parts[0], shape) if len(parts) == 1 else Expression("mul", tuple(parts), shape)


def power(base: Expression, exponent: Expression, shape: Shape) -> Expression:
    """A power, element by element."""
    if exponent.is_number(1):
        return reshaped(base, shape)
    if exponent.is_number(0):
        return number(1, shape)
    whole = exponent.is_number() and isinstance(exponent.data, int)
    if whole and base.is_number() and isinstance(base.data, (int, Fraction)) and (base.data or exponent.data > 0):
        return number(Fraction(base.data) ** exponent.data, shape)
    if whole and base.head == "pow" and base.args[1].is_number():
        return power(base.args[0], number(_exact(base.args[1].data) * exponent.data), shape)
    if whole and base.head == "mul":
        return mul([power(factor, exponent, factor.shape) for factor in base.args], shape)
    if exponent.is_number():
        exponent = number(_exact(exponent.data))
    return Expression("pow", (base, exponent), shape)


def matmul(factors: Sequence[Expression], shape: Shape) -> Expression:
    """A product of matrices and vectors; what is a scalar leaves it."""
    scalars: list[Expression] = []
    arrays: list[Expression] = []
    for factor in factors:
        taken, rest = scalars_of(factor)
        scalars += taken
        arrays.append(rest)
    others = [array for array in arrays if not (array.head == "call" and array.data.opname == "identity")]
    if others and len(others) < len(arrays):
        arrays = others
        if len(arrays) == 1:
            return mul([*scalars, *arrays], shape)
    product = Expression("matmul", tuple(_chained(_turned(arrays))), shape)
    return mul([*scalars, product], shape) if scalars else product


def scalars_of(factor: Expression) -> tuple[list[Expression], Expression]:
    """The scalars that multiply a factor of a matrix product, and the rest."""
    if factor.is_number() and factor.ndim:
        return [number(factor.data)] if factor.data != 1 else [], number(1, factor.shape)
    inner = factor.args if factor.head == "mul" else ()
    taken, rest = [arg for arg in inner if not arg.ndim], [arg for arg in inner if arg.ndim]
    if taken and not rest:
        return taken, number(1, factor.shape)
    if taken and np.broadcast_shapes(*[arg.shape for arg in rest]) == factor.shape:
        return taken, mul(rest, factor.shape)
    return [], factor


def transpose(x: Expression) -> Expression:
    """The transpose of a matrix."""
    if x.ndim < 2:
        return x
    if x.head == "transpose":
        return x.args[0]
    if x.head in ("column", "row"):
        return (row if x.head == "column" else column)(x.args[0])
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    if x.head == "number":
        return number(x.data, shape)
    if x.head == "call" and x.data.opname == "identity":
        return x
    if x.head == "call" and x.data.opname == "inverse":
        return Expression("call", (transpose(x.args[0]),), shape, x.data)
    if x.head == "matmul" and all(arg.ndim == 2 for arg in x.args):
        return Expression("matmul", tuple([transpose(arg) for arg in x.args[::-1]]), shape)
    if x.head in ("mul", "add") and all(arg.ndim in (0, 2) and (not arg.ndim or arg.shape == x.shape) for arg in x.args):
        return Expression(x.head, tuple([transpose(arg) for arg in x.args]), shape)
    return Expression("transpose", (x,), shape)


def column(x: Expression) -> Expression:
    """A vector as a matrix of one column."""
    return Expression("column", (x,), (*x.shape, 1))


def row(x: Expression) -> Expression:
    """A vector as a matrix of one row."""
    return Expression("row", (x,), (1, *x.shape))


def as_vector(x: Expression) -> Expression | None:
    """A matrix of one column or row as a vector, where that makes it simpler; None where it does not."""
    if x.head in ("column", "row"):
        return x.args[0]
    if 1 not in x.shape:
        return None
    if x.head == "matmul" and x.args[-1].head == "column":
        return matmul([*x.args[:-1], x.args[-1].args[0]], x.shape[:-1])
    if x.head == "matmul" and x.args[0].head == "row" and all(arg.ndim == 2 for arg in x.args):
        factors = [transpose(arg) for arg in x.args[:0:-1]]
        return matmul([*factors, x.args[0].args[0]], x.shape[1:])
    if x.head == "mul" and all(arg.shape in ((), x.shape) for arg in x.args):
        vectors = [as_vector(arg) if arg.ndim else arg for arg in x.args]
        if all(part is not None for part in vectors):
            shape = tuple([n for n in x.shape if n != 1]) or (1,)
            return mul([part for part in vectors if part is not None], shape)
    return None


def sum_over(x: Expression, axes: tuple[int, ...], keepdims: bool, shape: Shape) -> Expression:
    """A sum over axes; factors that are scalars leave it."""
    if not axes:
        return x
    count = math.prod(x.shape[axis] for axis in axes)
    if x.is_number():
        return number(x.data * count, shape)
    if count == 1 and (keepdims or not x.ndim):
        return x
    if x.head == "mul":
        scalars, rest = [arg for arg in x.args if not arg.ndim], [arg for arg in x.args if arg.ndim]
        if scalars and rest and np.broadcast_shapes(*[arg.shape for arg in rest]) == x.shape:
            return mul([*scalars, sum_over(mul(rest, x.shape), axes, keepdims, shape)], shape)
    if x.head == "mul" and x.ndim == 1:
        chosen = next((arg for arg in x.args if arg.head == "call" and arg.data.opname == "unit"), None)
        if chosen is not None:  # an element of the other factors
            place = chosen.data.said[0]
            others = mul([arg for arg in x.args if arg is not chosen], x.shape)
            what = Call("getitem", None, {"index": place}, False, (repr(place),))
            return reshaped(call(what, [others], ()), shape)
    return Expression("sum", (x,), shape, (axes, keepdims))


def _chooses_numbers(x: Expression) -> bool:
    """Whether an expression is one number or another, by a condition."""
    return x.head == "call" and x.data.opname == "where" and len(x.args) == 3 and all(arg.is_number() for arg in x.args[1:])


def _together(terms: list[Expression]) -> list[Expression]:
    """Terms of a sum, with those that choose numbers by the same condition as one."""
    found: dict[Any, Expression] = {}
    for place, term in enumerate(terms):
        key: Any = (term.args[0], term.shape) if _chooses_numbers(term) else place
        if key in found:
            choices = [number(a.data + b.data) for a, b in zip(found[key].args[1:], term.args[1:], strict=True)]
            term = Expression("call", (term.args[0], *choices), term.shape, term.data)
        found[key] = term
    return list(found.values())


def call(what: Call, args: Sequence[Expression], shape: Shape) -> Expression:
    """Any other operation."""
    return Expression("call", tuple(args), shape, what)


def identity(length: int) -> Expression:
    """The matrix that changes no vector."""
    return call(Call("identity"), (), (length, length))


def _flat(head: str, args: Sequence[Expression]) -> list[Expression]:
    """Arguments, with those of equal heads in place of these."""
    return [part for arg in args for part in (arg.args if arg.head == head else (arg,))]


def _turned(factors: Sequence[Expression]) -> Sequence[Expression]:
    """The factors of a product; where the first is a vector ``A v``, its transpose: ``v' A'``."""
    first = factors[0]
    if first.head == "matmul" and first.ndim == 1 and len(factors) > 1 and all(arg.ndim == 2 for arg in first.args[:-1]):
        return [first.args[-1], *[transpose(arg) for arg in first.args[-2::-1]], *factors[1:]]
    return factors


def _chained(factors: Sequence[Expression]) -> list[Expression]:
    """The factors of a matrix product, with those of products among them where no parentheses are needed."""
    chain: list[Expression] = []
    for place, factor in enumerate(factors):
        last = place == len(factors) - 1
        inner = factor.args if factor.head == "matmul" else ()
        plain = all(arg.ndim == 2 for arg in inner[:-1]) and (factor.ndim == 2 or (factor.ndim == 1 and last))
        chain += inner if inner and plain else [factor]
    return chain


def _split(term: Expression) -> tuple[Any, Expression]:
    """A term as a number times the rest."""
    if term.head == "mul" and term.args[0].is_number() and len(term.args) > 1:
        return term.args[0].data, mul(term.args[1:], term.shape)
    return 1, term


def _exact(value: Any) -> Any:
    """A short fraction as such, so that exponents add up."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    found = Fraction(value).limit_denominator(12)
    return found if float(found) == value else value
