r"""A formula in LaTeX.

An expression is written in one of two ways. As an array: products of matrices stand side by side, those element by element with a
``\odot``. Or by its elements, within a sum over these: each symbol has indices, and all products are those of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from . import expressions as ex
from .expressions import Expression
from .symbols import (
    AROUND,
    ATOM,
    CONDITION,
    EXTREMA,
    KNOWN,
    POWER,
    PRODUCT,
    RELATIONS,
    SERIES,
    SUM,
    WORDS,
    Letters,
    Written,
    as_tuple,
    escaped,
    figures_of,
    index_of,
    name,
    told,
    without_room,
)

LETTERS = "ijklmnpqrst"
SPACE = r" \, "


Index = Letters | None  # None of an array


def written(x: Expression, index: Index = None) -> str:
    """An expression in LaTeX."""
    return _write(x, index)[0]


def _write(x: Expression, index: Index) -> Written:
    writers: dict[str, Callable[[Expression, Index], Written]] = {
        "symbol": _symbol, "number": _number, "add": _add, "mul": _mul, "pow": _pow, "matmul": _matmul, "transpose": _transpose,
        "column": _column, "row": _row, "sum": _sum, "call": _call,
    }  # fmt: skip
    return writers[x.head](x, index)


def _within(x: Expression, index: Index, level: int) -> str:
    """An expression as part of another, in parentheses if it holds together less than that asks for."""
    text, own = _write(x, index)
    return f"\\left({text}\\right)" if own < level else text


def _part(x: Expression, whole: Expression, index: Index) -> Index:
    """The letters that an argument of an elementwise operation gets, where the whole gets those of `index`."""
    if index is None:
        return None
    own = index[len(index) - x.ndim :] if x.ndim else ()
    lengths = zip(x.shape, whole.shape[whole.ndim - x.ndim :], own, strict=True)
    return Letters([letter if n == full else "0" for n, full, letter in lengths], index.used)


def _indexed(text: str, level: int, index: Index) -> Written:
    """An array with letters for its elements."""
    if not index:
        return text, level
    plain = level == ATOM and "_" not in text and "^" not in text
    return f"{text if plain else f'({text})'}_{{{''.join(index)}}}", ATOM


def _symbol(x: Expression, index: Index) -> Written:
    return _indexed(name(x.data), ATOM, index)


def _number(x: Expression, index: Index) -> Written:
    text, level = figures_of(x.data)
    return (text, level) if index is not None or not x.ndim else _times([(text, level), (r"\mathbf{1}", ATOM)], x.data == 1)


def _times(parts: list[Written], first_is_one: bool) -> Written:
    return parts[1] if first_is_one else (SPACE.join(text for text, _ in parts), PRODUCT)


def _add(x: Expression, index: Index) -> Written:
    terms = sorted(x.args, key=_is_negative) if _is_negative(x.args[0]) else list(x.args)  # b - a, not -a + b
    text = ""
    for term in terms:
        part = _within(term, _part(term, x, index), SUM)
        if index is None and term.is_number() and not term.ndim and x.ndim:
            part = figures_of(term.data)[0]
        text += f" - {part[1:]}" if text and part[0] == "-" else f" + {part}" if text else part
    return text, SUM


def _is_negative(x: Expression) -> bool:
    first = x.args[0] if x.head == "mul" and x.args else x
    return bool(first.is_number() and not isinstance(first.data, complex) and first.data < 0)


def _mul(x: Expression, index: Index) -> Written:
    """A product: a sign, a number, and a fraction if there are denominators."""
    above, below = [], []
    value: Any = 1
    for factor in x.args:
        if factor.is_number() and not isinstance(factor.data, complex):
            value *= factor.data
        elif factor.head == "pow" and factor.args[1].is_number() and _is_negative(factor.args[1]):
            base, exponent = factor.args
            below.append(ex.power(base, ex.number(-exponent.data), factor.shape))
        else:
            above.append(factor)
    sign = "-" if value < 0 else ""
    value = abs(value)
    if below and isinstance(value, Fraction):
        below, value = [ex.number(value.denominator), *below], value.numerator
    figures = [] if value == 1 else [figures_of(value)]
    if index is None and x.ndim and len(above) == 1 and not below and above[0].ndim and above[0].shape != x.shape:
        return _repeated(above[0], x, [text for text, _ in figures], sign)
    above.sort(key=_place)
    top, bottom = _product(above, x, index), _product(below, x, index)
    if below:
        if len(below) == 1:
            bottom = written(below[0], _part(below[0], x, index))
        if len(above) == 1 and not figures:
            top = written(above[0], _part(above[0], x, index))
        inner = SPACE.join([text for text, _ in figures] + ([top] if above else [])) or "1"
        ones = index is None and x.ndim and not any(arg.ndim for arg in x.args)
        return f"{sign}\\frac{{{inner}}}{{{bottom}}}" + (SPACE + r"\mathbf{1}" if ones else ""), SUM if sign else PRODUCT
    parts = [text for text, _ in figures] + ([top] if above else [])
    if index is None and x.ndim and not any(arg.ndim for arg in above):
        parts.append(r"\mathbf{1}")
    if len(above) == 1 and not figures and not sign and len(parts) == 1:
        return _write(above[0], _part(above[0], x, index))
    level = SERIES if above and _is_series(above[-1]) else PRODUCT
    return sign + (SPACE.join(parts) or "1"), SUM if sign else level


def _repeated(part: Expression, whole: Expression, figures: list[str], sign: str) -> Written:
    """A vector that is repeated as the rows or the columns of a matrix: a product with a vector of ones."""
    ones = r"\mathbf{1}"
    if whole.ndim == 2 and part.shape in ((whole.shape[1],), (1, whole.shape[1])):
        parts = [ones, _transposed(part) if part.ndim == 1 else _within(part, None, PRODUCT)]
    elif whole.ndim == 2 and part.shape == (whole.shape[0], 1):
        parts = [_within(part, None, PRODUCT), ones + r"^{\top}"]
    else:
        lengths = ", ".join(map(str, whole.shape))
        parts = [f"\\operatorname{{broadcast}}\\left({written(part)}, ({lengths})\\right)"]
    return sign + SPACE.join([*figures, *parts]), SUM if sign else PRODUCT


def _place(factor: Expression) -> int:
    """Where a factor stands in a product: symbols first, as in ``x sin(x)``, sums over elements last."""
    is_short = factor.head in ("symbol", "number") or (factor.head == "pow" and factor.args[0].head == "symbol")
    return 2 if _is_series(factor) else 0 if is_short else 1


def _is_series(x: Expression) -> bool:
    """Whether an expression is written as a sum, a product or an extremum over elements, which reaches to the right."""
    return (x.head == "sum" and not _is_square(x)) or (x.head == "call" and x.data.opname in EXTREMA)


def _is_square(x: Expression) -> bool:
    """Whether a sum over all elements is that of squares: the square of a norm."""
    (inner,) = x.args
    return (
        len(x.data[0]) == inner.ndim and inner.head == "pow" and inner.args[1].is_number(2) and inner.args[0].shape == inner.shape
    )


def _product(factors: list[Expression], whole: Expression, index: Index) -> str:
    """Factors side by side; arrays, unless their elements are written, with a sign that says that elements are multiplied."""
    scalars = [f for f in factors if index is not None or not f.ndim]
    arrays = [f for f in factors if index is None and f.ndim]
    last = [PRODUCT] * (len(scalars) - 1) + [PRODUCT if arrays else SERIES]
    texts = [_within(f, _part(f, whole, index), level) for f, level in zip(scalars, last, strict=False)]
    joined = r" \odot ".join(
        [_within(f, None, POWER if f.head in ("add", "mul") and len(arrays) > 1 else PRODUCT) for f in arrays]
    )
    return SPACE.join([*texts, joined] if arrays else texts)


def _pow(x: Expression, index: Index) -> Written:
    base, exponent = x.args
    inner = _part(base, x, index)
    if exponent.is_number() and exponent.data == Fraction(1, 2):
        return f"\\sqrt{{{written(base, inner)}}}", ATOM
    if exponent.is_number() and not isinstance(exponent.data, complex) and exponent.data < 0:
        below = ex.power(base, ex.number(-exponent.data), x.shape)
        return f"\\frac{{1}}{{{written(below, index)}}}", PRODUCT
    power = written(exponent, _part(exponent, x, index))
    sign = r"\odot " if index is None and base.ndim else ""
    text, level = _write(base, inner)
    if base.head == "call" and base.data.opname in KNOWN - {"exp"} and not sign and exponent.is_number():
        function, _, rest = text.partition("\\left(")
        return f"{function}^{{{power}}}\\left({rest}", POWER
    return f"{_base(text, level)}^{{{sign}{power}}}", POWER


def _base(text: str, level: int) -> str:
    """What a power is of: in parentheses, unless it is one sign."""
    return text if level == ATOM and "^" not in text else f"\\left({text}\\right)"


def _matmul(x: Expression, index: Index) -> Written:
    factors = list(x.args)
    texts = [_within(factor, None, PRODUCT if factor.head not in ("mul", "call") else POWER) for factor in factors]
    if factors[0].ndim == 1:
        texts[0] = _transposed(factors[0])
    return _indexed(SPACE.join(texts), PRODUCT, index)


def _transposed(x: Expression) -> str:
    text, level = _write(x, None)
    return f"{_base(text, level)}^{{\\top}}"


def _transpose(x: Expression, index: Index) -> Written:
    return (_transposed(x.args[0]), POWER) if index is None else _write(x.args[0], Letters(index[::-1], index.used))


def _column(x: Expression, index: Index) -> Written:
    return _write(x.args[0], None if index is None else Letters(index[:1], index.used))


def _row(x: Expression, index: Index) -> Written:
    return (_transposed(x.args[0]), POWER) if index is None else _write(x.args[0], Letters(index[1:], index.used))


def _sum(x: Expression, index: Index) -> Written:
    """A sum over elements; of squares, the square of a norm."""
    (inner,), (axes, keepdims) = x.args, x.data
    if _is_square(x):
        return f"\\left\\| {written(inner.args[0])} \\right\\|^{{2}}", POWER
    return _over(r"\sum", inner, axes, keepdims, index)


def _over(sign: str, inner: Expression, axes: tuple[int, ...], keepdims: bool, index: Index) -> Written:
    """A sum, a product or an extremum over axes of an array, of which the other axes have the letters of `index`."""
    others = [axis for axis in range(inner.ndim) if axis not in axes]
    used = frozenset() if index is None else index.used
    free = [letter for letter in LETTERS if letter not in used]
    if index is None:
        given = free[len(axes) : inner.ndim]
    else:
        given = [letter for axis, letter in enumerate(index) if axis not in axes] if keepdims else list(index)
    letters = dict(zip(axes, free, strict=False)) | dict(zip(others, given, strict=True))
    every = Letters([letters[axis] for axis in range(inner.ndim)], used)
    text = f"{sign}_{{{','.join(letters[axis] for axis in axes)}}} {_within(inner, every, SERIES)}"
    return (f"\\left({text}\\right)_{{{''.join(given)}}}", ATOM) if index is None and others else (text, SERIES)


def _call(x: Expression, index: Index) -> Written:
    what, args = x.data, x.args
    opname = what.opname
    inner = [_part(arg, x, index) if what.is_elementwise else None for arg in args]
    outer = None if what.is_elementwise else index
    if opname == "exp":
        return f"e^{{{written(args[0], inner[0])}}}", POWER
    if opname in RELATIONS and len(args) == 2:
        one, other = [_within(arg, i, SUM) for arg, i in zip(args, inner, strict=True)]
        return f"\\left[{one} {RELATIONS[opname]} {other}\\right]", ATOM
    if opname == "where" and len(args) == 3:
        chosen, one, other = [_bare(arg, i) for arg, i in zip(args, inner, strict=True)]
        return f"\\left({one} \\;\\text{{if}}\\; {chosen} \\;\\text{{else}}\\; {other}\\right)", ATOM
    if opname in AROUND and len(args) == 1:
        return _indexed(AROUND[opname].format(written(args[0], inner[0])), ATOM, outer)
    if opname == "unit":
        return (f"\\mathbf{{e}}_{{{what.said[0]}}}", ATOM) if index is None else (f"[{index[0]} = {what.said[0]}]", ATOM)
    if opname in ("bitwise_and", "logical_and", "bitwise_or", "logical_or"):
        return r" \wedge ".join(_bare(a, i) for a, i in zip(args, inner, strict=True)).replace(
            r"\wedge", r"\wedge" if "and" in opname else r"\vee"), CONDITION  # fmt: skip
    if opname == "inverse" and args[0].head == "transpose":
        return _indexed(f"{_within(args[0].args[0], None, ATOM)}^{{-\\top}}", POWER, index)
    if opname == "inverse":
        return _indexed(f"{_within(args[0], None, ATOM)}^{{-1}}", POWER, index)
    if opname == "option":
        return r"\mathrm{none}" if what.options["value"] is None else told(what.said[0]), ATOM
    if opname in EXTREMA and len(args) == 1 and not args[0].ndim:
        return _write(args[0], index)
    if opname in EXTREMA and not set(what.options) - {"axis"} and len(args) == 1:
        axis = what.options.get("axis")
        axes = tuple(range(args[0].ndim)) if axis is None else tuple([int(a) % args[0].ndim for a in as_tuple(axis)])
        return _over(EXTREMA[opname], args[0], axes, False, index)
    if opname == "einsum" and "." not in what.options["subscripts"]:
        return _einsum(x, index)
    if opname == "identity":
        return (r"\mathbf{I}", ATOM) if index is None else (f"[{index[0]} = {index[1]}]", ATOM)
    if opname in ("getitem", "component"):
        return _element(x, index)
    word = f"\\{opname}" if opname in KNOWN else WORDS.get(opname, f"\\operatorname{{{escaped(without_room(opname))}}}")
    given = [written(arg, i) for arg, i in zip(args, inner, strict=True)]
    given += [f"\\mathrm{{{escaped(key)}}}={told(value)}" for key, value in what.said]
    text = f"{word}\\left({', '.join(given)}\\right)"
    return _indexed(text, POWER, outer)


def _bare(x: Expression, index: Index) -> str:
    """A condition without brackets."""
    text = written(x, index)
    is_relation = x.head == "call" and x.data.opname in RELATIONS
    return text.removeprefix("\\left[").removesuffix("\\right]") if is_relation else text


def _element(x: Expression, index: Index) -> Written:
    """Elements and parts of an array, numbered from 0, as NumPy does: ``x_{1}``, ``x_{1:, 0}``."""
    what = x.data
    text = written(x.args[0])
    parts = what.options["index"] if what.opname == "getitem" else what.said
    below = ", ".join(map(index_of, as_tuple(parts)))
    first, level = _write(x.args[0], None)
    is_plain = level == ATOM and (not first.endswith("}") or first == r"\mathbf{I}")
    text = first if is_plain else f"\\left({first}\\right)"
    return _indexed(f"{text}_{{{below}}}", ATOM, index)


def _einsum(x: Expression, index: Index) -> Written:
    """A sum of products of elements, by the letters it was given."""
    inputs, arrow, output = x.data.options["subscripts"].replace(" ", "").partition("->")
    output = output if arrow else "".join(sorted(c for c in inputs if c != "," and inputs.count(c) == 1))
    used = frozenset() if index is None else index.used
    summed = sorted({*inputs} - {*output, ","})
    free = [letter for letter in [*summed, *LETTERS] if letter not in used and letter not in output]
    letters = dict(zip(output, output if index is None else index, strict=True))
    letters |= dict(zip(summed, dict.fromkeys(free), strict=False))
    every = used | set(letters.values())
    factors = [(arg, Letters([letters[c] for c in given], every)) for arg, given in zip(x.args, inputs.split(","), strict=True)]
    text = SPACE.join([_within(arg, own, PRODUCT) for arg, own in factors if not arg.is_number(1)]) or "1"
    text = f"\\sum_{{{','.join([letters[c] for c in summed])}}} {text}" if summed else text
    if index is None and output:
        return f"\\left({text}\\right)_{{{output}}}", ATOM
    return text, SERIES if summed else PRODUCT
