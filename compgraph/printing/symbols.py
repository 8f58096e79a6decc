"""The signs of formulas in LaTeX: names, numbers, the letters of indices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi",
    "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
}  # fmt: skip
KNOWN = {
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "exp",
}  # fmt: skip
WORDS = {
    "log2": r"\log_{2}", "log10": r"\log_{10}", "sigmoid": r"\sigma", "special_expit": r"\sigma", "linalg_det": r"\det",
    "arcsinh": r"\operatorname{arsinh}", "arccosh": r"\operatorname{arcosh}", "arctanh": r"\operatorname{artanh}",
    "maximum": r"\max", "minimum": r"\min", "trace": r"\operatorname{tr}", "special_gamma": r"\Gamma", "special_psi": r"\psi",
    "special_gammaln": r"\log \Gamma", "real": r"\operatorname{Re}", "imag": r"\operatorname{Im}",
    "special_digamma": r"\psi",
}  # fmt: skip
RELATIONS = {"greater": ">", "greater_equal": r"\geq", "less": "<", "less_equal": r"\leq", "equal": "=", "not_equal": r"\neq"}
AROUND = {
    "abs": r"\left|{}\right|", "fabs": r"\left|{}\right|", "norm": r"\left\| {} \right\|", "cbrt": r"\sqrt[3]{{{}}}",
    "floor": r"\left\lfloor {} \right\rfloor", "ceil": r"\left\lceil {} \right\rceil", "conj": r"\overline{{{}}}",
    "logical_not": r"\neg \left({}\right)",
}  # fmt: skip
EXTREMA = {"max": r"\max", "min": r"\min", "prod": r"\prod"}
ROOMS = re.compile(r"^(special|linalg|fft|ndimage|signal|stats)_(?=.)")
# How tightly an expression holds together: one of a lower level needs parentheses within one of a higher.
CONDITION, SUM, SERIES, PRODUCT, POWER, ATOM = range(6)
Written = tuple[str, int]  # LaTeX, and its level


class Letters(tuple[str, ...]):
    """Letters or numbers for the axes of the elements that are written; `used` are those that mean something around."""

    used: frozenset[str]

    def __new__(cls, letters: Iterable[str], used: Iterable[str] = ()) -> Letters:
        """The letters, which are used from here on as well."""
        made = super().__new__(cls, letters)
        made.used = frozenset(used) | set(made)
        return made


def name(text: str) -> str:
    r"""A name as one writes it on paper: ``W_1`` with a subscript, ``alpha`` as a Greek letter, words upright.

    Examples
    --------
    >>> [name(text) for text in ("x", "W_1", "theta_ij", "loss", "learning_rate")]
    ['x', 'W_{1}', '\\theta_{ij}', '\\mathrm{loss}', '\\mathrm{learning\\_rate}']
    """
    if text.endswith("'") and len(text) > 1:
        return f"{name(text[:-1])}'"
    found = re.fullmatch(
        r"([A-Za-z]|" + "|".join(sorted(GREEK, key=len, reverse=True)) + r")_?([0-9]+|(?<=_)[A-Za-z0-9]{1,3})", text
    )
    if found:
        return f"{_letter(found[1])}_{{{found[2]}}}"
    return _letter(text)


def _letter(text: str) -> str:
    if text in GREEK or (len(text) == 1 and text.isalpha()):
        return f"\\{text}" if text in GREEK else text
    escaped = re.sub(r"([_#%&$])", r"\\\1", re.sub(r"[\\^~{}]", " ", text))
    return f"\\mathrm{{{escaped}}}"


def figures_of(value: Any) -> Written:
    """A number: fractions as such, also those that a float is a rounded one of."""
    value = int(value) if isinstance(value, bool) else value
    if isinstance(value, complex):
        return _complex(value)
    if value != value or value in (float("inf"), float("-inf")):
        return (r"\mathrm{NaN}", ATOM) if value != value else (r"\infty", ATOM) if value > 0 else (r"-\infty", SUM)
    if isinstance(value, float) and len(repr(value)) > 8 and (parts := _of_pi(value)) is not None:
        return parts
    if isinstance(value, float) and len(repr(value)) > 8:
        found = Fraction(value).limit_denominator(10_000)
        value = found if float(found) == value else value
    if (
        isinstance(value, Fraction)
        and len(repr(float(value))) <= 5
        and value.denominator != 2
        and Fraction(repr(float(value))) == value
    ):
        value = float(value)
    if isinstance(value, Fraction):
        sign = "-" if value < 0 else ""
        return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}", SUM if sign else PRODUCT
    text = repr(value)
    mantissa, _, power = text.partition("e")
    text = f"{mantissa} \\cdot 10^{{{int(power)}}}" if power else text
    return text, SUM if text[0] == "-" else PRODUCT if power else ATOM


def _complex(value: complex) -> Written:
    """A complex number; parts that are zero are left out."""
    real, imag = [figures_of(int(part) if part.is_integer() else part)[0] for part in (value.real, value.imag)]
    imag = {"1": "i", "-1": "-i"}.get(imag, f"{imag} i")
    if not value.real:
        return imag, SUM if imag[0] == "-" else PRODUCT
    if not value.imag:
        return real, SUM if real[0] == "-" else ATOM
    return f"{real} - {imag[1:]}" if imag[0] == "-" else f"{real} + {imag}", SUM


def _of_pi(value: float) -> Written | None:
    """A short multiple of pi as such, and a short fraction of it."""
    found = Fraction(value / math.pi).limit_denominator(12) if math.isfinite(value) else Fraction(0)
    above, below = found.numerator, found.denominator
    if not above or abs(above) > 12 or value not in (above * math.pi / below, above / below * math.pi):
        return None
    text = r"\pi" if abs(above) == 1 else f"{abs(above)} \\, \\pi"
    text = text if below == 1 else f"\\frac{{{text}}}{{{below}}}"
    return (f"-{text}", SUM) if above < 0 else (text, PRODUCT)


def without_room(opname: str) -> str:
    """The name of an operation, without that of the module it is from."""
    return ROOMS.sub("", opname)


def escaped(word: str) -> str:
    """A word as LaTeX takes it."""
    return word.replace("_", r"\_")


def index_of(part: Any) -> str:
    """A part of an index."""
    if isinstance(part, slice):
        ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
        return ":".join([*ends, str(part.step)] if part.step is not None else ends)
    if part is Ellipsis:
        return r"\ldots"
    if part is None:
        return r"\cdot"
    return str(int(part)) if getattr(part, "ndim", 0) == 0 and hasattr(part, "__index__") else r"\mathrm{index}"


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A value alone as a tuple of one."""
    return value if isinstance(value, tuple) else (value,)


def told(value: Any) -> str:
    """An option, upright."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(told, value)) + ")"
    text = str(value)
    return (
        text
        if re.fullmatch(r"-?[\d.]+", text)
        else f"\\mathrm{{{escaped(re.sub(r'[^A-Za-z0-9_.=,:> -]', '', text)) or 'option'}}}"
    )
