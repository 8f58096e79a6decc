"""Graphs as mathematics: what is written is what was computed, and LaTeX takes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.printing import Reader
from compgraph.values import Node
from tests.support.arguments import Case
from tests.support.cases import OPERATIONS, cases_of
from tests.support.failures import Failures
from tests.support.formulas import TOKENS, Latex, computed, values_of

variable: Callable[..., Any] = cg.variable
mathtext = pytest.importorskip("matplotlib.mathtext", reason="matplotlib is optional")
PARSER = mathtext.MathTextParser("agg")


def require_valid(formula: cg.Formula) -> None:
    """All that Matplotlib can parse is parsed, and what stands around it is balanced."""
    require_balanced(formula)
    for line in lines_of(formula):
        PARSER.parse(f"${line}$")


def lines_of(formula: cg.Formula) -> list[str]:
    return [*formula.equations, *formula.where, *formula.shapes]


def require_balanced(formula: cg.Formula) -> None:
    text = str(formula)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count(r"\left") == text.count(r"\right")
    assert text.count(r"\begin{aligned}") == text.count(r"\end{aligned}") <= 1


def require_same(nodes: list[Any]) -> None:
    """The formulas of nodes, computed, are their values."""
    reader = Reader({})
    found = reader.read(nodes, frozenset(nodes))
    values = values_of(reader, nodes)
    for expression, node in zip(found, nodes, strict=True):
        value = computed(expression, values)
        assert np.shape(value) == node.shape
        close = 1e-5 if node.dtype.itemsize <= 4 else 1e-8
        np.testing.assert_allclose(value, node.value, rtol=close, atol=close)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_sample", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=["sample", "all"])
def test_formula_of_each_operation(is_sample: bool) -> None:
    """Formulas have the values of what was computed, and LaTeX takes them. Parsing takes longest: some lines, or all."""
    origins: dict[str, str] = {}
    with Failures("formulas") as failures:
        for operation in OPERATIONS:
            if not operation.endswith("_cut"):  # complex numbers on a branch cut, where the sign of a zero decides
                with failures.case(operation):
                    origins |= dict.fromkeys(lines_of(checked_formula(cases_of(operation)[0])), operation)
        for line in samples(origins) if is_sample else origins:
            with failures.case(f"{origins[line]}: {line}"):
                PARSER.parse(f"${line}$")


def checked_formula(case: Case) -> cg.Formula:
    """Compute the formulas of an operation and of its derivatives, and return them."""
    variables = [variable(a, f"x_{i}") for i, a in enumerate(case.args)]
    out = case.function(*variables)
    nodes = list(out) if isinstance(out, (tuple, list)) else [out]
    smooth = [node for node in nodes if node.dtype.kind in "fc"][:1]
    for node in smooth:
        total = np.sum(np.real(node))
        found = gradient(total, variables, create_graph=True, unused="zero")
        nodes += [found[v] for v in variables if isinstance(found[v], Node)]
    require_same(nodes)
    formula = cg.latex(nodes)
    require_balanced(formula)
    return formula


def samples(lines: Iterable[str]) -> Iterator[str]:
    """Lines with something that no shorter one has: two tokens side by side, letters and numbers apart."""
    seen: set[tuple[str, str]] = set()
    for line in sorted(lines, key=len):
        tokens = ["a" if token.isalpha() else "1" if token[0].isdigit() else token for token in TOKENS.findall(line)]
        pairs = {*itertools.pairwise(tokens)} - seen
        if pairs:
            seen |= pairs
            yield line


SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    "gauss": lambda x, y: np.exp(-((x - y) ** 2) / (2 * x**2)) / np.sqrt(2 * np.pi * x) + np.pi / 3 * y,
    "powers of powers": lambda x, y: np.sin(x ** (y - 0.3)) - 3 * np.log(x**2 * y**3) + 2 ** (x * y),
    "fraction": lambda x, y: (x + 1) * (y - x) / (x * y - 3) / y,
    "signs": lambda x, y: -(x - y) * -x - (-y) + (-(x + y)) ** 2 - (2 - (x - 3)),
    "powers": lambda x, y: (x**2) ** 3 * (x + y) ** -2 + 2**x + x**y + (-x) ** 2 + x**0.5 / y**1.5,
    "functions": lambda x, y: np.sin(x) ** 2 + np.cos(np.tanh(x)) * np.exp(-(x**2) / 2) + np.log(x + y) ** 3,
    "sigmoid": lambda x, y: cg.sigmoid(x * y) * np.arctan2(y, x) + np.exp(np.sin(x) + y) ** 2,
    "absolute": lambda x, y: np.abs(x - y) * np.maximum(x, y) + np.minimum(x, 2 * y) ** 3,
    "choice": lambda x, y: np.where(x > y, x - y, -x * y) * 3 + np.where(x < 5, 1.0, y) ** 2 + (x > y),
    "numbers": lambda x, y: x / 3 + 1e-7 * y - 1.5e10 + 0.1 * x - 1 / 7,
    "denominators": lambda x, y: 1 / (1 + 1 / (1 + 1 / x)) - x / y / (x / y + 1) + np.sqrt(x) / np.sqrt(y),
    "twice": lambda x, y: (lambda z: z * np.sin(z) + z / (1 + z))(np.exp(-x * y) + x / (y + np.tanh(x) ** 2)),
}


def number_of(formula: cg.Formula, values: dict[str, float]) -> list[float]:
    """The numbers of a formula of scalars, from its LaTeX."""
    known = dict(values)
    for line in formula.where:
        left, right = line.split(" = ", 1)
        known[left.replace("{", "").replace("}", "")] = Latex(right, known).value()
    rights = [equation.split(" = ", 1)[1] if each.left else equation
              for equation, each in zip(formula.equations, formula.parts[0], strict=True)]  # fmt: skip
    return [Latex(right, known).value() for right in rights]


def test_latex_of_scalars_has_the_values() -> None:
    with Failures("formulas") as failures:
        for name, (x, y) in itertools.product(SCALARS, [(0.7, 1.9), (2.3, 0.4)]):
            with failures.case(f"{name} at {x}, {y}"):
                nodes = variable(x, "x"), variable(y, "y_1")
                out = SCALARS[name](*nodes)
                values = {"x": x, "y_1": y}
                assert number_of(cg.latex(out), values) == pytest.approx([float(out.value)], rel=1e-12)
                formula = ad.latex(out)
                found = gradient(out, list(nodes))
                lefts = [equation.split(" = ")[0] for equation in formula.equations[1:]]
                slopes = [float(found[nodes[0] if r"\partial x}" in left else nodes[1]]) for left in lefts]
                assert number_of(formula, values) == pytest.approx([float(out.value), *slopes], rel=1e-9)
                require_valid(formula)


def test_the_evaluator_notices_what_is_wrong() -> None:
    assert Latex(r"\frac{1}{2} \, x^{2} - \left(1 + x\right)", {"x": 3.0}).value() == 0.5
    assert Latex(r"\sin^{2}\left(x\right)", {"x": 1.0}).value() == np.sin(1.0) ** 2
    assert Latex(r"-x^{2}", {"x": 3.0}).value() == -9
    with pytest.raises(AssertionError):
        Latex(r"\left(x", {"x": 1.0}).value()


def test_textbook_forms() -> None:
    x, weights = variable(np.ones(3), "x"), variable(np.ones((3, 3)), "W_1")
    b, alpha = variable(np.ones(3), "b"), variable(0.1, "alpha")
    forms = {
        r"W_{1} \, x + b": weights @ x + b,
        r"\alpha \, x^{\top} \, W_{1} \, x": alpha * (x @ (weights @ x)),
        r"\left\| W_{1} \, x - b \right\|^{2}": np.sum((weights @ x - b) ** 2),
        r"\left\| x \right\|": np.linalg.norm(x),
        r"\sum_{i} x_{i} \, b_{i}": np.sum(x * b),
        r"\frac{1}{3} \, \sum_{i} \log\left(1 + e^{x_{i}}\right)": np.mean(np.log(1 + np.exp(x))),
        r"\left(\sum_{i} (W_{1})_{ij}\right)_{j}": np.sum(weights, axis=0),
        r"x \odot b": x * b,
        r"x \, b^{\top}": np.outer(x, b),
        r"W_{1}^{-1} \, b": np.linalg.inv(variable(np.eye(3), "W_1")) @ b,
        # What stands right of a maximum would be taken into it.
        r"\alpha \, \max_{i} x_{i}": np.max(x) * alpha,
        r"\left(\max_{i} x_{i}\right) \, \sum_{i} b_{i}": np.max(x) * np.sum(b),
        r"W_{1}^{\top} \, x": x @ weights,
        r"\sqrt{\alpha}": np.sqrt(alpha),
        r"\max_{i} x_{i}": np.max(x),
        r"x_{1}": x[1],
        r"x^{\odot 2}": x**2,
        r"\operatorname{tr}\left(W_{1}\right)": np.trace(weights),
    }
    for text, node in forms.items():
        assert cg.latex(node).equations == [text]
    # What is within a sum has letters of its own.
    assert r"\max_{j} x_{j}" in str(cg.latex(np.sum(np.exp(x - np.max(x)))))


def test_derivatives_of_elements_and_parts() -> None:
    """Elements pass back unit vectors, parts columns of the identity matrix."""
    x, weights = variable([1.0, 2.0, 4.0], "x"), variable(np.arange(12.0).reshape(3, 4) + 1, "W_1")
    matrix = variable(np.arange(12.0).reshape(3, 4) + 1, "M")
    forms = {
        r"x_{0} \, \mathbf{e}_{1} + x_{1} \, \mathbf{e}_{0}": (x[0] * x[1], x),
        r"-3 \, x_{-1}^{2} \, \mathbf{e}_{2}": (-(x[-1] ** 3), x),
        r"2 \, \mathbf{I}_{:, 1:} \, x_{1:}": (np.sum(x[1:] ** 2), x),
        r"2 \, \mathbf{I}_{:, ::-2} \, x_{::-2}": (np.sum(x[::-2] ** 2), x),
        r"3 \, \left(W_{1}\right)_{1, 2}^{2} \, \mathbf{e}_{1} \, \mathbf{e}_{2}^{\top}": (weights[1, 2] ** 3, weights),
        r"2 \, \mathbf{e}_{1} \, \left(W_{1}\right)_{1}^{\top}": (np.sum(weights[1] ** 2), weights),
        r"2 \, \left(W_{1}\right)_{:, 1} \, \mathbf{e}_{1}^{\top}": (np.sum(weights[:, 1] ** 2), weights),
        r"2 \, \mathbf{I}_{:, 1:} \, M_{1:, :2} \, \mathbf{I}_{:, :2}^{\top}": (np.sum(matrix[1:, :2] ** 2), matrix),
    }
    for node, wrt in forms.values():
        require_same([gradient(node, [wrt], create_graph=True)[wrt]])
        require_valid(ad.latex(node, wrt=wrt))
    assert [ad.latex(node, wrt=wrt).equations[1].split(" = ")[1] for node, wrt in forms.values()] == list(forms)


def test_derivatives_of_matrices_are_those_of_textbooks() -> None:
    a, v = variable(np.arange(9.0).reshape(3, 3) ** 1.5 + np.eye(3), "A"), variable([1.0, 2.0, 4.0], "v")
    turned = r"\left(A^{\top} + 2 \, \mathbf{I}\right)^{-1}"
    forms = {
        r"\mathbf{I}": (np.trace(a), a),
        r"2 \, A^{\top}": (np.trace(a @ a), a),
        r"3 \, v_{1} \, \mathbf{I}": (3 * v[1] * np.trace(a), a),
        rf"-{turned} \, {turned}": (np.trace(np.linalg.inv(a + 2 * np.eye(3))), a),
        r"2 \, \left(A \, A^{\top} + \mathbf{I}\right)^{-1} \, A": (np.log(np.linalg.det(a @ a.T + np.eye(3))), a),
        r"\left(v_{j} \, v_{i}\right)_{ij}": (np.einsum("ij,j,i", a, v, v), a),
    }
    for node, wrt in forms.values():
        require_same([gradient(node, [wrt], create_graph=True)[wrt]])
        require_valid(ad.latex(node, wrt=wrt))
    assert [ad.latex(node, wrt=wrt).equations[1].split(" = ")[1] for node, wrt in forms.values()] == list(forms)


def test_sums_by_letters() -> None:
    a, v = variable(np.arange(9.0).reshape(3, 3), "A"), variable([1.0, 2.0, 4.0], "v")
    forms = {
        r"\sum_{i,j} A_{ij} \, v_{j} \, v_{i}": np.einsum("ij,j,i", a, v, v),
        r"\left(\sum_{b} A_{ab} \, A_{bc}\right)_{ac}": np.einsum("ab,bc->ac", a, a),
        r"\left(\sum_{j} A_{ij} \, v_{j}\right)_{i}": np.einsum("ij,j", a, v),
        r"\left(A_{ii}\right)_{i}": np.einsum("ii->i", a),
        r"\sum_{i} \log\left(\sum_{j} A_{ij} \, v_{j}\right)": np.sum(np.log(np.einsum("ij,j->i", a, v))),
        r"\sum_{i} \log\left(\sum_{k} A_{ik} \, v_{k}\right)": np.sum(np.log(np.einsum("jk,k->j", a, v))),
        r"\sum_{i} \log\left(\sum_{k} A_{ki} \, v_{k}\right)": np.sum(np.log(np.einsum("ij,i->j", a, v))),
    }
    for text, node in forms.items():
        require_same([node])
        assert cg.latex(node).equations == [text]


def test_guards_of_rules_and_long_numbers_are_left_out() -> None:
    x, y = variable(0.5, "x"), variable(2.0, "y")
    forms = {
        r"y \, x^{y - 1}": ad.latex(x**y, wrt=x),
        r"x^{y} \, \log\left(x\right)": ad.latex(x**y, wrt=y),
        r"3^{y} \, \log\left(3\right)": ad.latex(3**y, wrt=y),
        r"2 \, \pi": ad.latex(2 * np.pi * x, wrt=x),
        r"-\frac{3 \, \pi}{4} \, \cos\left(-\frac{3 \, \pi}{4} \, x\right)": ad.latex(np.sin(-0.75 * np.pi * x), wrt=x),
        r"3.14159": ad.latex(3.14159 * x, wrt=x),
        r"\operatorname{Re}\left(i \, e^{i \, x}\right)": ad.latex(np.real(np.exp(1j * x)), wrt=x),
    }
    assert [formula.equations[1].split(" = ")[1] for formula in forms.values()] == list(forms)
    z = variable(1 + 2j, "z")
    for c, text in {1 - 1j: r"\left(1 - i\right) \, z", -2j: r"\left(-2 i\right) \, z", 3 + 0j: r"3 \, z"}.items():
        assert cg.latex(z * c).equations == [text]
    v = variable([1.0, 3.0, 3.0], "v")
    assert r"\left[v \geq \max_{i} v_{i}\right]" in str(ad.latex(np.max(v), wrt=v))
    assert cg.latex(scipy.special.gamma(x)).equations == [r"\Gamma\left(x\right)"]
    assert cg.latex(scipy.special.jv(0, x)).equations == [r"\operatorname{jv}\left(0, x\right)"]


def test_names_of_users_stay() -> None:
    x, weights = variable(np.ones(2), "x"), variable(np.eye(2), "W_1")
    h = cg.tanh(weights @ x, name="h")
    formula = cg.latex(cg.sum(h * h, name="loss"))
    assert formula.equations == [r"\mathrm{loss} = \left\| h \right\|^{2}"]
    assert formula.where == [r"h = \tanh\left(W_{1} \, x\right)"]
    assert formula.shapes == [r"x \in \mathbb{R}^{2}", r"W_{1} \in \mathbb{R}^{2 \times 2}"]
    assert formula._repr_latex_().startswith("$$")


def test_equal_names_are_told_apart() -> None:
    one, other = variable(2.0, "x"), variable(3.0, "x")
    assert cg.latex(one - other).equations == ["x - x'"]
    h = cg.multiply(one, other, name="x")
    formula = cg.latex(np.sin(h))
    assert formula.equations == [r"\sin\left(x''\right)"]
    assert formula.where == [r"x'' = x \, x'"]
    array, w = np.array([1.0, 2.0]), variable([3.0, 4.0], "w")
    assert cg.latex(w @ array, names={"w": array}).equations == [r"w'^{\top} \, w"]
    require_valid(formula)


def test_plain_arrays_are_called_as_one_says() -> None:
    data, target = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0])
    w = variable(np.ones(2), "w")
    loss = np.sum((data @ w - target) ** 2)
    assert cg.latex(loss).equations == [r"\left\| C_{1} \, w - c_{1} \right\|^{2}"]
    assert cg.latex(loss, names={"X": data, "y": target}).equations == [r"\left\| X \, w - y \right\|^{2}"]
    ones = np.ones(3)  # an array of equal numbers is written as the number, unless it has a name
    assert cg.latex(np.sum(data @ w - ones)).equations == [r"\sum_{i} \left((C_{1} \, w)_{i} - 1\right)"]
    assert cg.latex(np.sum(data @ w - ones), names={"y": ones}).equations == [r"\sum_{i} \left((C_{1} \, w)_{i} - y_{i}\right)"]


def test_long_formulas_are_cut_into_lines() -> None:
    x = variable(0.5, "x")
    y = x
    for _ in range(60):
        y = np.sin(y) + x
    formula = cg.latex(y)
    assert len(formula.where) >= 2
    assert max(map(len, formula.where)) < 700
    assert number_of(formula, {"x": 0.5}) == pytest.approx([float(y.value)])


def test_results_nest_and_writes_are_refused() -> None:
    x = variable([1.0, 2.0], "x")
    assert len(cg.latex({"a": x * 2, "b": [np.sin(x)]}).equations) == 2
    b = cg.zeros(2)
    b[0] = x[0]
    with pytest.raises(ValueError, match=r"written in place .*test_latex.py.*program\(node\) writes the steps"):
        cg.latex(np.sum(b))
    for wrong in (1.0, [], [np.ones(2)]):
        with pytest.raises(TypeError, match="latex takes"):
            cg.latex(wrong)


def test_a_long_chain_is_no_recursion() -> None:
    x = variable(1.0, "x")
    for _ in range(3000):
        x = np.sin(x)
    assert len(cg.latex(x).where) > 50
