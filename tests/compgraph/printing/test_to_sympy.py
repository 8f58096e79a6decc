"""`to_sympy`: expressions evaluate to the recorded values, anywhere in the domain."""

from __future__ import annotations

import pytest

pytest.importorskip("sympy", reason='pip install "compgraph[formulas]"')

import importlib
import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import sympy as sp

import compgraph as cg
from autodiff.reverse import gradient
from compgraph import ops
from tests.support.failures import Failures
from tests.support.formulas import as_matrix, computed

variable: Callable[..., Any] = cg.variable
RNG = np.random.default_rng(5)

ANY, POSITIVE, UNIT, ABOVE = (-3.0, 3.0), (0.2, 3.0), (-0.9, 0.9), (1.1, 3.0)
# The domains of operands, if not between -3 and 3; and the functions of operations, if not the ufunc of the same name.
DOMAINS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("sqrt", "log", "log2", "log10", "special_beta", "special_ndtri"), POSITIVE),
    **dict.fromkeys(
        ("pow", "float_power", "special_yv", "special_kv", "special_y0", "special_y1", "special_k0", "special_k1"), POSITIVE
    ),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "special_erfinv", "log1p", "special_log1p"), UNIT),
    **dict.fromkeys(("special_logit", "special_erfcinv", "special_ellipk", "special_ellipe"), (0.1, 0.9)),
    "arccosh": ABOVE,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "pow": np.power, "abs": np.abs,
    "conj": np.conj, "real": np.real, "imag": np.imag, "where": lambda x, y, z: np.where(x > 0, y, z), "clip": np.clip,
    "relu": cg.relu, "sigmoid": cg.sigmoid, "softplus": cg.softplus,
    "divmod": lambda x, y: np.add(*np.divmod(x, y)),
}  # fmt: skip
COUNTS = {"where": 3, "clip": 3}
ONLY_IN_RULES = {"over", "without_slope"}
OF_BOOLEANS = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert"}
OF_AN_ORDER = {"special_jv", "special_yv", "special_iv", "special_kv"}  # which have no derivative by it


def opnames_with_formulas() -> list[str]:
    importlib.import_module("scipy.special")
    cg.relu(variable(1.0))
    return sorted({spec.opname for spec in ops.SPECS.values() if spec.formula or spec.real_formula} - ONLY_IN_RULES - OF_BOOLEANS)


def function_of(opname: str) -> Callable[..., Any]:
    name = opname.removeprefix("special_")
    return FUNCTIONS.get(opname) or getattr(scipy.special if name != opname else np, name)


def require_same(node: Any, values: dict[str, Any], rtol: float = 1e-9) -> None:
    result = computed(cg.to_sympy(node), values)
    np.testing.assert_allclose(np.asarray(result, node.dtype).reshape(node.shape), node.value, rtol=rtol, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_to_sympy_elementwise_operations_keep_values() -> None:
    """As numbers, as elements of arrays that broadcast, and differentiated."""
    with Failures("operations") as failures:
        for opname in opnames_with_formulas():
            function = function_of(opname)
            count = COUNTS.get(opname, getattr(function, "nin", 2 if opname == "divmod" else 1))
            low, high = DOMAINS.get(opname, ANY)
            for _ in range(4):
                numbers = [round(float(RNG.uniform(low, high)), 3) for _ in range(count)]
                with failures.case(f"{opname} of {numbers}"):
                    require_scalar(function, numbers, wrt=slice(1, None) if opname in OF_AN_ORDER else slice(None))
            with failures.case(f"{opname} of arrays"):
                values = {f"x_{k}": RNG.uniform(low, high, shape) for k, shape in enumerate([(2, 3), (3,), ()][:count])}
                node = function(*[variable(value, name) for name, value in values.items()])
                require_same(node, {name: as_matrix(value) for name, value in values.items()})


def require_scalar(function: Callable[..., Any], numbers: list[float], wrt: slice = slice(None)) -> None:
    variables = [variable(number, f"x_{k}") for k, number in enumerate(numbers)]
    values = {f"x_{k}": number for k, number in enumerate(numbers)}
    node = function(*variables)
    require_same(node, values)
    if node.dtype.kind == "f" and isinstance(node, cg.OperationalNode):
        gradients = gradient(node, variables[wrt], create_graph=True, unused="zero")
        for each in variables[wrt]:
            if isinstance(gradients[each], cg.Node):
                require_same(gradients[each], values)


COMPOSED: dict[str, Callable[[Any, Any], Any]] = {
    "gauss": lambda x, y: np.exp(-((x - y) ** 2) / (2 * x**2)) / np.sqrt(2 * np.pi * x) + np.pi / 3 * y,
    "powers of powers": lambda x, y: np.sin(x ** (y - 0.3)) - 3 * np.log(x**2 * y**3) + 2 ** (x * y),
    "fraction": lambda x, y: (x + 1) * (y - x) / (x * y - 3) / y,
    "signs": lambda x, y: -(x - y) * -x - (-y) + (-(x + y)) ** 2 - (2 - (x - 3)),
    "powers": lambda x, y: (x**2) ** 3 * (x + y) ** -2 + 2**x + x**y + (-x) ** 2 + x**0.5 / y**1.5,
    "functions": lambda x, y: np.sin(x) ** 2 + np.cos(np.tanh(x)) * np.exp(-(x**2) / 2) + np.log(x + y) ** 3,
    "sigmoid": lambda x, y: cg.sigmoid(x * y) * np.arctan2(y, x) + np.exp(np.sin(x) + y) ** 2,
    "absolute": lambda x, y: np.abs(x - y) * np.maximum(x, y) + np.minimum(x, 2 * y) ** 3,
    "choice": lambda x, y: np.where(x > y, x - y, -x * y) * 3 + np.where(x < 5, 1.0, y) ** 2 + (x > y),
    "nested choice": lambda x, y: np.where(np.where(x > y, x, -1.0) > 0, np.where(y > 1, x, y), 3.0) * ((x > 1) & (y < 2)),
    "numbers": lambda x, y: x / 3 + 1e-7 * y - 1.5e10 + 0.1 * x - 1 / 7,
    "denominators": lambda x, y: 1 / (1 + 1 / (1 + 1 / x)) - x / y / (x / y + 1) + np.sqrt(x) / np.sqrt(y),
    "twice": lambda x, y: (lambda z: z * np.sin(z) + z / (1 + z))(np.exp(-x * y) + x / (y + np.tanh(x) ** 2)),
    "trigonometric": lambda x, y: np.sin(x) ** 2 + np.cos(x) ** 2 + np.tan(y) * np.cos(y) - np.cosh(x) ** 2 + np.sinh(x) ** 2,
}


def test_to_sympy_composed_functions_and_derivatives() -> None:
    with Failures("formulas") as failures:
        for name, (x, y) in itertools.product(COMPOSED, [(0.7, 1.9), (2.3, 0.4)]):
            with failures.case(f"{name} at {x}, {y}"):
                require_scalar(COMPOSED[name], [x, y])


def test_to_sympy_keeps_values_at_branch_cuts() -> None:
    """Roots of squares, logarithms of exponentials, angles, powers: at negative numbers and beyond branch cuts."""
    forms: dict[str, Callable[[Any], Any]] = {
        "sqrt(x**2)": lambda x: np.sqrt(x**2),
        "(x**2)**0.5": lambda x: (x**2) ** 0.5,
        "(x**6)**(1/6)": lambda x: (x**6) ** (1 / 6),
        "log(x**2)": lambda x: np.log(x**2),
        "log(exp(x))": lambda x: np.log(np.exp(x)),
        "arcsin(sin(x))": lambda x: np.arcsin(np.sin(x)),
        "arctan(tan(x))": lambda x: np.arctan(np.tan(x)),
        "arccosh(cosh(x))": lambda x: np.arccosh(np.cosh(x)),
        "cbrt(x)**3": lambda x: np.cbrt(x) ** 3 + np.cbrt(x**3),
        "x % 2": lambda x: x % 2 - x // 2 + np.fmod(x, 2),
        "abs": lambda x: np.abs(x) ** 2 / x + np.sign(x) * np.abs(-x),
    }
    for function in forms.values():
        for x in (-4.3, -0.7, 0.6, 5.1):
            node = function(variable(x, "x"))
            require_same(node, {"x": x})
            require_same(np.sum(function(variable([x, 1.5], "x"))), {"x": np.array([[x], [1.5]])})
    complex_forms: list[Callable[[Any], Any]] = [
        lambda z: np.sqrt(z**2),
        lambda z: np.log(np.exp(z)),
        lambda z: np.abs(z) ** 2 - z * np.conj(z) + np.real(z) * np.imag(np.exp(z)),
        lambda z: np.sqrt(z) * np.sqrt(-z),
        lambda z: (z**3) ** (1 / 3),
    ]
    for complex_form, z in itertools.product(complex_forms, (-2.5 + 4j, -1 - 0.1j, 0.3 - 3.5j, 2 + 7j)):
        require_same(complex_form(variable(z, "z")), {"z": z})
    x = variable([1.5, -2.0, 3.0], "x")
    turned = (1 + 1j) * x  # its parts are not real arrays, although the leaf is real
    for part in (turned[1:], turned[None, :], (2 * np.eye(3)) @ turned, turned * x + 2j):
        require_same(np.sqrt(part**2), {"x": x.value[:, None]})
    derivative = gradient(np.sum(np.abs(turned[1:] + 1)), [x], create_graph=True)[x]
    require_same(np.sqrt(derivative**2), {"x": x.value[:, None]})


def test_to_sympy_declares_symbols_by_dtype() -> None:
    assert cg.to_sympy(np.sqrt(variable(2.0, "x") ** 2)) == sp.Abs(sp.Symbol("x", real=True))
    assert cg.to_sympy(np.sqrt(variable(2j, "z") ** 2)) == sp.sqrt(sp.Symbol("z", complex=True) ** 2)
    assert cg.to_sympy(cg.constant(2, "n") + np.int64(1)) == sp.Symbol("n", integer=True) + 1


def test_to_sympy_of_conditions_within_sums() -> None:
    """SymPy extracts a `Piecewise` in a condition from a sum, although the condition depends on the index."""
    x, y = variable([0.5, -1.0, 2.0], "x"), variable(0.3, "y")
    values = {"x": x.value[:, None], "y": 0.3}
    count = np.sum(np.where(x > 0, x, y))
    for node in (np.where(count > 2, count, 1.0), np.where(np.where(x > 0, x, y) > count, x, -x), (count > 2) * y):
        require_same(node, values)


def test_to_sympy_matrices() -> None:
    a, x = variable(RNG.normal(size=(3, 3)), "A"), variable(RNG.normal(size=3), "x")
    symbols = sp.MatrixSymbol("A", 3, 3), sp.MatrixSymbol("x", 3, 1)
    assert cg.to_sympy(a @ x) == symbols[0] * symbols[1]
    assert cg.to_sympy(np.linalg.inv(a) @ x) == symbols[0].inverse() * symbols[1]
    values = {"A": a.value, "x": x.value[:, None]}
    for node in (
        a.T @ a @ x + 2 * x,
        np.sum(np.tanh(a @ x) ** 2),
        np.linalg.solve(a, x) * x,
        np.sum(a * x, axis=0) + np.sum(a, axis=1),
        np.mean(a[1:, 0]) + np.trace(a) + np.linalg.det(a),
        np.linalg.norm(a) + np.linalg.norm(x),
        np.maximum(a, x[:, None]) - np.minimum(x, 0.5),
        np.sqrt(a**2) + np.where(a > x, a, x),
    ):
        require_same(node, values)
        gradients = gradient(np.sum(np.sin(node)), [a, x], create_graph=True, unused="zero")
        for each in (a, x):
            if isinstance(gradients[each], cg.Node):
                require_same(gradients[each], values)


def test_to_sympy_explicit_matrices_have_elements() -> None:
    x = variable([1.0, 4.0], "x")
    explicit = cg.to_sympy(np.sqrt(x) * x + x[::1]).as_explicit()
    first = sp.MatrixSymbol("x", 2, 1)[0, 0]
    assert explicit[0, 0] == sp.sqrt(first) * first + first
    assert cg.to_sympy(np.linalg.norm(x)).doit().subs(sp.MatrixSymbol("x", 2, 1), sp.Matrix([3, 4])).doit() == 5


def test_to_sympy_plain_names_do_not_collide() -> None:
    data = np.arange(4.0).reshape(2, 2)
    w, a = variable([1.0, 2.0], "w"), variable(3.0, "a_0")
    expression = cg.to_sympy(np.tanh(data @ w * a), names={"X": data})
    assert {str(each) for each in expression.free_symbols} == {"X", "w", "a_0"}
    result = computed(expression, {"X": data, "w": np.array([[1.0], [2.0]]), "a_0": 3.0})
    np.testing.assert_allclose(result.ravel(), np.tanh(data @ [1.0, 2.0] * 3))


def test_to_sympy_long_graph_raises_quickly() -> None:
    x = z = variable(1.0, "x")
    for _ in range(100_000):
        z = np.sin(z)
    doubled = x
    for _ in range(100):
        doubled = np.sin(doubled) * np.cos(doubled)  # a tree of 2**100 leaves
    for node in (z, doubled):
        start = time.perf_counter()
        with pytest.raises(ValueError, match=r"to_sympy: the (expression is too long|graph has).*compgraph.program"):
            cg.to_sympy(node)
        assert time.perf_counter() - start < 20
    deep = x
    for _ in range(55):
        deep = np.sin(deep)
    require_same(deep, {"x": 1.0})


def test_to_sympy_takes_one_node() -> None:
    x = variable(1.0, "x")
    for wrong in (1.0, [x, x], [x], np.ones(2), None):
        with pytest.raises(TypeError, match="to_sympy takes"):
            cg.to_sympy(wrong)
    b = cg.zeros(2)
    b[0] = x
    with pytest.raises(ValueError, match="to_sympy: an array was written in place"):
        cg.to_sympy(np.sum(b))


@pytest.mark.parametrize("opname", ["names", "leaf", "constant", "body", "solution"])
def test_to_sympy_primitive_named_as_method_of_converter(opname: str) -> None:
    """A primitive is a function of its operands, whatever its name is."""
    double = cg.primitive(lambda x: 2 * x, opname=opname)
    expression = cg.to_sympy(double(variable(2.0, "x")))
    assert (expression.args[0].name, expression.free_symbols) == (opname, {sp.Symbol("x", real=True)})


def test_to_sympy_without_sympy_raises() -> None:
    program = """
import sys
sys.modules["sympy"] = None
import compgraph as cg, autodiff as ad
x = cg.variable(1.0)
cg.program(x * 2)
for function in (cg.latex, cg.to_sympy, ad.latex):
    try:
        function(x * 2)
    except ImportError as error:
        print(error)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = process.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["latex", "to_sympy", "latex"]
    assert all('pip install "compgraph[formulas]"' in line for line in lines)
