"""Evaluation of formulas in tests: SymPy expressions of leaves, by `sympy.lambdify`, on the leaves' values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.special
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.numpy import SciPyPrinter

import compgraph as cg
from compgraph import ops
from compgraph.printing.conversion import Converter
from compgraph.printing.symbolic_arrays import ArrayResult, MatrixResult, Result
from compgraph.values import Node, Value

OTHERS = {"elliptic_k": scipy.special.ellipk, "elliptic_e": scipy.special.ellipe}  # which SymPy's printer does not know


class _Printer(SciPyPrinter):
    """Code for all that formulas have; operations without a counterpart in SymPy are called by names in `functions`."""

    def __init__(self, expression: Any) -> None:
        super().__init__({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True})
        atoms = expression.atoms(Result, MatrixResult, ArrayResult)
        self._names = {each: f"operation_{k}" for k, each in enumerate(atoms)}
        self.functions = {name: _caller(each.args[0], tuple(map(int, each.args[1]))) for each, name in self._names.items()}

    def _print_Result(self, expr: Any) -> str:
        return f"{self._names[expr]}({', '.join(map(self._print, expr.args[2:]))})"

    _print_MatrixResult = _print_ArrayResult = _print_Result

    def _print_ComplexInfinity(self, expr: Any) -> str:
        return "numpy.inf"

    def _print_Str(self, expr: Any) -> str:
        return repr(expr.name)

    def _print_ArrayElement(self, expr: Any) -> str:
        return f"{self._print(expr.args[0])}[{', '.join(map(self._print, expr.args[1]))}]"

    def _print_ArraySymbol(self, expr: Any) -> str:
        return str(self._print(sp.Symbol(str(expr.name))))


def _caller(operation: Any, shape: tuple[int, ...]) -> Callable[..., Any]:
    """A function that computes an operation without a counterpart in SymPy, of arrays that are matrices."""
    function, record, place = operation.compute

    def call(*operands: Any) -> Any:
        args = [a.raw_value if isinstance(a, Value) else a for a in record.args]
        if function is ops.getitem:  # the other operands belong to the index
            operands = operands[:1]
        for position, operand in enumerate(operands):
            if not isinstance(operand, str):
                like = np.asarray(args[position])
                args[position] = np.asarray(operand).astype(like.dtype).reshape(like.shape)
                np.testing.assert_allclose(args[position], np.reshape(operand, like.shape), rtol=1e-5, atol=1e-8)
        options = {name: value.raw_value if isinstance(value, Value) else value for name, value in record.options.items()}
        output = function(*args, **options)
        return np.reshape(output if place is None else output[place], shape)

    return call


def computed(expression: Any, values: Mapping[str, Any]) -> Any:
    """The value of an expression for values of its symbols by name."""
    symbols = sorted(expression.free_symbols, key=str)
    printer = _Printer(expression)
    undefined = {each.func.__name__: _public(each.func.__name__) for each in expression.atoms(AppliedUndef)}
    function = sp.lambdify(
        symbols, expression, modules=[OTHERS | undefined, printer.functions, "scipy", "numpy"], printer=printer, dummify=False
    )
    return function(*[np.nan if str(each) == "NaN" else values[str(each)] for each in symbols])


def _public(name: str) -> Callable[..., Any]:
    stem, _, place = name.rpartition("_")
    if stem and place.isdigit() and not hasattr(scipy.special, name):
        return lambda *args: _public(stem)(*args)[int(place)]
    return getattr(scipy.special, name, None) or getattr(np, name, None) or getattr(scipy.special._ufuncs, f"_{name}")


def as_matrix(value: Any) -> Any:
    """A vector as a matrix of one column, as in formulas."""
    return np.asarray(value)[:, None] if np.ndim(value) == 1 else value


def values_of(converter: Converter, nodes: list[Any]) -> dict[str, Any]:
    """The values of all symbols that a converter of some nodes uses, as matrices."""
    values = {n.name: as_matrix(n.value) for n in cg.topological_order(nodes) if isinstance(n, Node) and not n.args}
    values |= {name: as_matrix(array) for name, array in converter.constants.items()}
    for name, line in converter.abbreviations.items():
        values[name] = computed(line, values)
    return values
