r"""SymPy expressions in LaTeX, with arrays as on paper: ``W x`` is a matrix product, ``x \odot y`` one element by element."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.tensor.array.expressions import ArraySymbol

from .names import escape_latex, latex_name
from .symbolic_arrays import Entry, Unit, broadcast

WORDS = {"det": r"\det", "max": r"\max", "min": r"\min", "inverse": r"\operatorname{inv}"}


def to_latex(expression: object) -> str:
    """Return an expression in LaTeX."""
    text: str = Printer().doprint(expression)
    return text


class Printer(LatexPrinter):
    """SymPy's printer, extended for arrays. MathJax and Matplotlib understand its output."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        return latex_name(expr.name)

    _print_MatrixSymbol = _print_Symbol
    _print_Dummy = _print_Symbol

    def _print_ArraySymbol(self, expr: Any) -> str:
        return latex_name(str(expr.name))

    # ----------------------------------------------------------------------------- functions of entries

    def _print_Entry(self, expr: Entry) -> str:
        return str(self._print(expr.array))

    def _print_Elementwise(self, expr: Any) -> str:
        entries = expr.body.atoms(Entry)
        broadcasts = {entry: Entry(broadcast(entry.array, expr.shape), bool(entry.is_real)) for entry in entries}
        return str(self._print(expr.body.xreplace(broadcasts)))

    def _print_ArrayElementwise(self, expr: Any) -> str:
        return str(self._print(expr.body))

    def _print_Mul(self, expr: Any) -> str:
        arrays = [factor for factor in expr.args if factor.has(Entry)]
        numerator, denominator = sp.fraction(expr, exact=True)
        if not arrays or (len(arrays) < 2 and denominator == 1):
            return str(super()._print_Mul(expr))
        if denominator != 1:
            sign, numerator = ("-", -numerator) if numerator.could_extract_minus_sign() else ("", numerator)
            return f"{sign}\\frac{{{self._print(numerator)}}}{{{self._print(denominator)}}}"
        scalar = sp.Mul(*[factor for factor in expr.args if not factor.has(Entry)])
        joined = r" \odot ".join(self._factor(factor) for factor in sorted(arrays, key=_factor_order))
        if scalar in (1, -1):
            return joined if scalar == 1 else f"- {joined}"
        return f"{self._parentheses(scalar) if scalar.is_Add else self._print(scalar)} {joined}"

    def _factor(self, expr: Any) -> str:
        inner = expr.array if isinstance(expr, Entry) else expr
        return (
            self._parentheses(inner) if inner.is_Add or inner.is_MatAdd or inner.is_Mul or inner.is_MatMul else self._print(inner)
        )

    def _print_Pow(self, expr: Any) -> str:
        base, power = expr.args
        is_array = isinstance(base, Entry) or (base.has(Entry) and (base.is_Add or base.is_Mul))
        if not is_array or power == sp.Rational(1, 2) or (power.is_Rational and power < 0):
            return str(super()._print_Pow(expr))
        return f"{self._base(base.array if isinstance(base, Entry) else base)}^{{\\odot {self._print(power)}}}"

    def parenthesize(self, item: Any, level: int, is_neg: bool = False, strict: bool = False) -> str:
        """Print a part of an expression; a fraction or a product of numbers before matrices has no parentheses."""
        is_factor = (
            isinstance(item, sp.Expr) and not item.is_Matrix and (item.is_Rational or (item.is_Mul and not item.has(sp.Sum)))
        )
        if is_factor and level == PRECEDENCE["Mul"] and not item.could_extract_minus_sign():
            return str(self._print(item))
        return str(super().parenthesize(item, level, is_neg=is_neg, strict=strict))

    def _print_Transpose(self, expr: Any) -> str:
        return f"{self._base(expr.arg)}^{{T}}"

    def _base(self, expr: Any) -> str:
        return (
            str(self._print(expr))
            if expr.is_symbol or isinstance(expr, (Unit, sp.Identity, ArraySymbol))
            else self._parentheses(expr)
        )

    def _parentheses(self, expr: object) -> str:
        return f"\\left({self._print(expr)}\\right)"

    def _print_Mod(self, expr: Any, exp: str | None = None) -> str:
        text = f"\\left({self._factor(expr.args[0])} \\;\\mathrm{{mod}}\\; {self._factor(expr.args[1])}\\right)"
        return text if exp is None else f"{text}^{{{exp}}}"

    # ---------------------------------------------------------------------------------------- elements

    def _print_MatrixElement(self, expr: Any) -> str:
        matrix, i, j = expr.args
        text = self._base(matrix)
        if matrix.shape == (1, 1):
            return self._print(matrix) if not matrix.is_MatAdd else text
        index = [i] if matrix.shape[1] == 1 else [i, j]
        return self._indexed(text, index)

    def _print_ArrayElement(self, expr: Any) -> str:
        return self._indexed(self._print(expr.args[0]), expr.args[1])

    def _indexed(self, text: str, index: Any) -> str:
        text = f"\\left({text}\\right)" if "_" in text and not text.endswith(")") else text
        return f"{text}_{{{', '.join(each if isinstance(each, str) else self._print(each) for each in index)}}}"

    def _print_MatrixSlice(self, expr: Any) -> str:
        """Print a slice with indices from 0, as in NumPy: ``x_{1:}``, ``W_{1:, 0}``."""
        lengths = expr.parent.shape
        texts = [_slice(part, int(length)) for part, length in zip(expr.args[1:], lengths, strict=True)]
        return self._indexed(self._base(expr.parent), texts[: 1 if lengths[1] == 1 else 2])

    def _print_Sum(self, expr: Any) -> str:
        sums = [f"\\sum_{{{self._print(letter)}={first}}}^{{{last}}}" for letter, first, last in expr.limits]
        inner = expr.function
        return f"{' '.join(sums)} {self._parentheses(inner) if inner.is_Add else self._print(inner)}"

    def _print_Entries(self, expr: Any) -> str:
        variables = expr.args[2].variables[: 1 if expr.shape[1] == 1 else 2]
        return f"\\left({self._print(expr.args[2].expr)}\\right)_{{{' '.join(map(self._print, variables))}}}"

    def _print_Unit(self, expr: Unit) -> str:
        return f"\\mathbf{{e}}_{{{expr.args[1]}}}"

    def _print_OneMatrix(self, expr: Any) -> str:
        return r"\mathbf{1}" if expr.shape[1] == 1 else r"\mathbf{1}^{T}" if expr.shape[0] == 1 else r"\mathbf{1} \mathbf{1}^{T}"

    def _print_ZeroMatrix(self, expr: object) -> str:
        return r"\mathbf{0}"

    def _print_Norm(self, expr: Any, exp: str | None = None) -> str:
        text = f"\\left\\| {self._print(expr.args[0])} \\right\\|"
        return text if exp is None else f"{text}^{{{exp}}}"

    # ------------------------------------------------------------------------------------------- others

    def _print_Result(self, expr: Any) -> str:
        operation, _, *operands = expr.args
        if operation.name == "getitem":
            constants = [escape_latex(part) for part in operation.options[:1] if part]
            return self._indexed(self._base(operands[0]), [*operands[1:], *constants])
        options = [part for part in operation.options if not part.startswith("#") and "=" in part]
        arguments = [*map(self._print, operands), *[f"\\mathrm{{{escape_latex(part)}}}" for part in options]]
        subscript = next((f"_{{{part[1:]}}}" for part in operation.options if part.startswith("#")), "")
        word = WORDS.get(operation.name, f"\\operatorname{{{escape_latex(operation.name)}}}")
        return f"{word}{subscript}\\left({', '.join(arguments)}\\right)"

    _print_MatrixResult = _print_ArrayResult = _print_Result

    def _print_Str(self, expr: Any) -> str:
        return f"\\mathrm{{{escape_latex(expr.name)}}}"

    def _print_Piecewise(self, expr: Any) -> str:
        parts = [(self._print(x), holds) for x, holds in expr.args]
        if len(parts) == 2 and (expr.args[0].expr, expr.args[1].expr) == (1, 0):
            return f"\\left[{self._print(parts[0][1])}\\right]"
        texts = [f"{x} \\;\\text{{if}}\\; {self._print(holds)}" if holds != True else x for x, holds in parts]  # noqa: E712
        return "\\left(" + r" \;\text{else}\; ".join(texts) + "\\right)"

    _print_ProtectedPiecewise = _print_Piecewise


def _factor_order(factor: object) -> tuple[bool, Any]:
    """Return the position of a factor in a product: arrays before functions of them."""
    return not isinstance(factor, Entry), sp.default_sort_key(factor)


def _slice(part: Any, length: int) -> str:
    start, stop, step = map(int, part)
    if stop - start == 1 < length:
        return str(start)
    text = f"{start or ''}:{'' if stop >= length else stop}"
    return text if step == 1 else f"{text}:{step}"
