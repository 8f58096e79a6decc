"""LaTeX of graphs: each formula evaluates to the recorded values, and Matplotlib parses it."""

from __future__ import annotations

import pytest

pytest.importorskip("sympy", reason='pip install "compgraph[formulas]"')

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.special

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.printing.conversion import MAX_OPERATIONS, Converter
from compgraph.values import Node
from tests.support.arguments import Case
from tests.support.cases import OPERATIONS, cases_of
from tests.support.failures import Failures
from tests.support.formulas import as_matrix, computed, values_of

variable: Callable[..., Any] = cg.variable
mathtext = pytest.importorskip("matplotlib.mathtext", reason="matplotlib is optional")
PARSER = mathtext.MathTextParser("agg")
TOKENS = re.compile(r"\\text\{(?:if|else)\}|\\left.|\\right.|\\[A-Za-z]+|\\[,;]|\d+\.?\d*|[A-Za-z]|[^\s]")


def require_valid(formula: cg.Formula) -> None:
    """Matplotlib parses each line, and the environment around them is balanced."""
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
    """The expressions of nodes evaluate to their values."""
    converter = Converter({})
    expressions = converter.convert(nodes, "latex")
    values = values_of(converter, nodes)
    for expression, node in zip(expressions, nodes, strict=True):
        value = np.broadcast_to(computed(expression, values), np.shape(as_matrix(node.value)))
        close = 1e-5 if node.dtype.itemsize <= 4 else 1e-8
        np.testing.assert_allclose(value.reshape(node.shape), node.value, rtol=close, atol=close)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_sample", [True, pytest.param(False, marks=pytest.mark.exhaustive)], ids=["sample", "all"])
def test_latex_of_each_operation_and_its_derivative(is_sample: bool) -> None:
    """A part of the operations, or all; of lines that Matplotlib parses, which takes longest, a sample as well."""
    origins: dict[str, str] = {}
    with Failures("formulas") as failures:
        for operation in [*OPERATIONS][:: 4 if is_sample else 1]:
            if not operation.endswith("_cut"):  # complex numbers on a branch cut, where the sign of a zero decides
                with failures.case(operation):
                    origins |= dict.fromkeys(lines_of(checked_formula(cases_of(operation)[0])), operation)
        for line in samples(origins) if is_sample else origins:
            with failures.case(f"{origins[line]}: {line}"):
                PARSER.parse(f"${line}$")


def checked_formula(case: Case) -> cg.Formula:
    """Evaluate the formulas of an operation and of its derivatives, and return them."""
    variables = [variable(a, f"x_{i}") for i, a in enumerate(case.args)]
    out = case.function(*variables)
    nodes = list(out) if isinstance(out, (tuple, list)) else [out]
    smooth = [node for node in nodes if node.dtype.kind in "fc"][:1]
    for node in smooth:
        total = np.sum(np.real(node))
        gradients = gradient(total, variables, create_graph=True, unused="zero")
        nodes += [gradients[v] for v in variables if isinstance(gradients[v], Node)]
    require_same(nodes)
    formula = cg.latex(nodes)
    require_balanced(formula)
    return formula


def samples(lines: Iterable[str]) -> Iterator[str]:
    """Lines with something that no shorter one has: two tokens side by side, letters and numbers apart."""
    pair_set: set[tuple[str, str]] = set()
    for line in sorted(lines, key=len):
        tokens = ["a" if token.isalpha() else "1" if token[0].isdigit() else token for token in TOKENS.findall(line)]
        pairs = {*itertools.pairwise(tokens)} - pair_set
        if pairs:
            pair_set |= pairs
            yield line


def test_latex_textbook_forms() -> None:
    x, weights = variable(np.ones(3), "x"), variable(np.eye(3) + 1, "W_1")
    b, alpha = variable(np.ones(3), "b"), variable(0.1, "alpha")
    forms = {
        r"W_{1} x + b": weights @ x + b,
        r"\alpha x^{T} W_{1} x": alpha * (x @ (weights @ x)),
        r"\left\| W_{1} x - b \right\|^{2}": np.sum((weights @ x - b) ** 2),
        r"\left\| x \right\|": np.linalg.norm(x),
        r"\sum_{i=0}^{2} b_{i} x_{i}": np.sum(x * b),
        r"\frac{\sum_{i=0}^{2} \log{\left(e^{x_{i}} + 1 \right)}}{3}": np.mean(np.log(1 + np.exp(x))),
        r"W_{1}^{T} \mathbf{1}": np.sum(weights, axis=0),
        r"b \odot x": x * b,
        r"x b^{T}": np.outer(x, b),
        r"W_{1}^{-1} b": np.linalg.inv(weights) @ b,
        r"\alpha \max\left(x\right)": np.max(x) * alpha,
        r"W_{1}^{T} x": x @ weights,
        r"\sqrt{\alpha}": np.sqrt(alpha),
        r"x_{1}": x[1],
        r"x_{1:}": x[1:],
        r"\left(W_{1}\right)_{1:, 0}": weights[1:, 0],
        r"x^{\odot 2}": x**2,
        r"\left(x + 1\right)^{\odot 3}": (x + 1) ** 3,
        r"\frac{x}{b + 1}": x / (b + 1),
        r"2 \alpha b \odot x": 2 * alpha * x * b,
        r"b \odot \tanh^{2}{\left(x \right)}": np.tanh(x) ** 2 * b,
        r"\left(x b^{T}\right) \odot W_{1}": np.outer(x, b) * weights,
        r"\left(\mathbf{1} x^{T}\right) \odot W_{1}": weights * x,
        r"\operatorname{tr}\left(W_{1} \right)": np.trace(weights),
        r"\operatorname{roll}\left(x, \mathrm{shift=1}\right)": np.roll(x, 1),
        r"\operatorname{softmax}\left(W_{1} x\right)": cg.softmax(weights @ x),
        r"\left(x \;\text{if}\; x > 0 \;\text{else}\; b\right)": np.where(x > 0, x, b),
        r"\left[b < x\right]": x > b,
        r"\sum_{i=0}^{2} e^{x_{i} - \max\left(x\right)}": np.sum(np.exp(x - np.max(x))),
    }
    with Failures("forms") as failures:
        for text, node in forms.items():
            with failures.case(text):
                require_same([node])
                formula = cg.latex(node)
                assert formula.equations == [text]
                require_valid(formula)


def test_latex_broadcast_row_and_column_differ() -> None:
    x, weights = variable([1.0, 2.0, 4.0], "x"), variable(np.eye(3) + 1, "W")
    rows, columns = weights + x, weights + x[:, None]
    require_same([rows, columns, rows * x, columns * x[:, None]])
    assert cg.latex([rows, columns]).equations == [r"W + \mathbf{1} x^{T}", r"W + x \mathbf{1}^{T}"]


def test_latex_derivatives_of_elements_and_parts() -> None:
    """Elements pass back unit vectors, parts columns of the identity matrix."""
    x, weights = variable([1.0, 2.0, 4.0], "x"), variable(np.arange(12.0).reshape(3, 4) + 1, "W_1")
    matrix = variable(np.arange(12.0).reshape(3, 4) + 1, "M")
    forms = {
        r"x_{0} \mathbf{e}_{1} + x_{1} \mathbf{e}_{0}": (x[0] * x[1], x),
        r"- 3 x_{2}^{2} \mathbf{e}_{2}": (-(x[-1] ** 3), x),
        r"2 \mathbb{I}_{:, 1:} x_{1:}": (np.sum(x[1:] ** 2), x),
        r"3 \left(W_{1}\right)_{1, 2}^{2} \mathbf{e}_{1} \mathbf{e}_{2}^{T}": (weights[1, 2] ** 3, weights),
        r"2 \mathbf{e}_{1} \left(W_{1}\right)_{1, :}": (np.sum(weights[1] ** 2), weights),
        r"2 \left(W_{1}\right)_{:, 1} \mathbf{e}_{1}^{T}": (np.sum(weights[:, 1] ** 2), weights),
        r"2 \mathbb{I}_{:, 1:} M_{1:, :2} \left(\mathbb{I}_{:, :2}\right)^{T}": (np.sum(matrix[1:, :2] ** 2), matrix),
    }
    for node, wrt in forms.values():
        require_same([gradient(node, [wrt], create_graph=True)[wrt]])
        require_valid(ad.latex(node, wrt=wrt))
    assert [ad.latex(node, wrt=wrt).equations[1].split(" = ")[1] for node, wrt in forms.values()] == list(forms)


def test_latex_matrix_derivatives_are_those_of_textbooks() -> None:
    a, v = variable(np.arange(9.0).reshape(3, 3) ** 1.5 + np.eye(3), "A"), variable([1.0, 2.0, 4.0], "v")
    forms = {
        r"\mathbb{I}": (np.trace(a), a),
        r"2 A^{T}": (np.trace(a @ a), a),
        r"3 v_{1} \mathbb{I}": (3 * v[1] * np.trace(a), a),
        r"- \left(2 \mathbb{I} + A^{T}\right)^{-2}": (np.trace(np.linalg.inv(a + 2 * np.eye(3))), a),
        r"2 \left(\mathbb{I} + A A^{T}\right)^{-1} A": (np.log(np.linalg.det(a @ a.T + np.eye(3))), a),
        r"\left(v_{i} v_{j}\right)_{i j}": (np.einsum("ij,j,i", a, v, v), a),
    }
    for node, wrt in forms.values():
        require_same([gradient(node, [wrt], create_graph=True)[wrt]])
        require_valid(ad.latex(node, wrt=wrt))
    assert [ad.latex(node, wrt=wrt).equations[1].split(" = ")[1] for node, wrt in forms.values()] == list(forms)


def test_latex_computed_index_is_symbolic() -> None:
    x = variable([1.0, 3.0, 2.0], "x")
    largest = x[np.argmax(x)]
    assert cg.latex(largest).equations == [r"x_{\operatorname{argmax}\left(x\right)}"]
    assert "argmax" in str(cg.to_sympy(largest))


def test_latex_einsum_indices() -> None:
    a, v = variable(np.arange(9.0).reshape(3, 3), "A"), variable([1.0, 2.0, 4.0], "v")
    i = variable([1.0, 2.0, 4.0], "i")  # an array named as an index
    forms = {
        r"\sum_{i=0}^{2} \sum_{j=0}^{2} A_{i, j} v_{i} v_{j}": np.einsum("ij,j,i", a, v, v),
        r"\left(\sum_{b=0}^{2} A_{a, b} A_{b, c}\right)_{a c}": np.einsum("ab,bc->ac", a, a),
        r"\left(\sum_{j=0}^{2} A_{i, j} v_{j}\right)_{i}": np.einsum("ij,j", a, v),
        r"\left(A_{i, i}\right)_{i}": np.einsum("ii->i", a),
        r"\sum_{j=0}^{2} i_{j} v_{j}": np.einsum("i,i", i, v),
    }
    for text, node in forms.items():
        require_same([node])
        assert cg.latex(node).equations == [text]
    require_same([np.sum(np.log(1 + np.einsum("ij,j->i", a, v)) * i)])


def test_latex_omits_rule_guards_and_long_numbers() -> None:
    x, y = variable(0.5, "x"), variable(2.0, "y")
    forms = {
        r"x^{y - 1} y": ad.latex(x**y, wrt=x),
        r"x^{y} \log{\left(x \right)}": ad.latex(x**y, wrt=y),
        r"3^{y} \log{\left(3 \right)}": ad.latex(3**y, wrt=y),
        r"2 \pi": ad.latex(2 * np.pi * x, wrt=x),
        r"- \frac{3 \pi \cos{\left(\frac{3 \pi x}{4} \right)}}{4}": ad.latex(np.sin(-0.75 * np.pi * x), wrt=x),
        r"3.14159": ad.latex(3.14159 * x, wrt=x),
        r"\frac{1}{10}": ad.latex(0.1 * x, wrt=x),
        r"- \sin{\left(x \right)}": ad.latex(np.real(np.exp(1j * x)), wrt=x),
    }
    assert [formula.equations[1].split(" = ")[1] for formula in forms.values()] == list(forms)
    assert cg.latex(scipy.special.gamma(x)).equations == [r"\Gamma\left(x\right)"]
    assert cg.latex(scipy.special.jve(0, x)).equations == [r"\operatorname{jve}{\left(0,x \right)}"]


def test_latex_keeps_names_of_user() -> None:
    x, weights = variable(np.ones(2), "x"), variable(np.eye(2), "W_1")
    h = cg.tanh(weights @ x, name="h")
    formula = cg.latex(cg.sum(h * h, name="loss"))
    assert formula.equations == [r"\mathrm{loss} = \left\| h \right\|^{2}"]
    assert formula.where == [r"h = \tanh{\left(W_{1} x \right)}"]
    assert formula.shapes == [r"x \in \mathbb{R}^{2}", r"W_{1} \in \mathbb{R}^{2 \times 2}"]
    assert formula._repr_latex_().startswith("$$")
    require_valid(formula)
    product = cg.matmul(weights, x, name="p")  # a product alone has a name as well
    assert cg.latex(product * x).where == ["p = W_{1} x"]


def test_latex_equal_names_get_primes() -> None:
    one, other = variable(2.0, "x"), variable(3.0, "x")
    assert cg.latex(one - other).equations == ["x - x'"]
    h = cg.multiply(one, other, name="x")
    formula = cg.latex(np.sin(h))
    assert formula.equations == [r"\sin{\left(x'' \right)}"]
    assert formula.where == [r"x'' = x x'"]
    array, w = np.array([1.0, 2.0]), variable([3.0, 4.0], "w")
    assert cg.latex(w @ array, names={"w": array}).equations == [r"w'^{T} w"]
    require_valid(formula)


def test_latex_names_plain_arrays() -> None:
    data, target = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0])
    w = variable(np.ones(2), "w")
    loss = np.sum((data @ w - target) ** 2)
    assert cg.latex(loss).equations == [r"\left\| C_{1} w - c_{1} \right\|^{2}"]
    assert cg.latex(loss, names={"X": data, "y": target}).equations == [r"\left\| X w - y \right\|^{2}"]
    ones = np.ones(3)  # an array of equal numbers is written as the number, unless it has a name
    assert cg.latex(np.tanh(data @ w - ones)).equations == [r"\tanh{\left(C_{1} w - 1 \right)}"]
    assert cg.latex(data @ w - ones, names={"y": ones}).equations == [r"C_{1} w - y"]


def test_latex_cuts_long_formulas_into_lines() -> None:
    x = variable(0.5, "x")
    y = x
    for _ in range(60):
        y = np.sin(y) + x
    formula = cg.latex(y)
    assert len(formula.where) >= 2
    assert max(map(len, formula.where)) < 700
    require_same([y])


def test_latex_results_nest_and_writes_raise() -> None:
    x = variable([1.0, 2.0], "x")
    assert len(cg.latex({"a": x * 2, "b": [np.sin(x)]}).equations) == 2
    b = cg.zeros(2)
    b[0] = x[0]
    with pytest.raises(ValueError, match=r"written in place .*test_latex.py.*program\(node\) writes the steps"):
        cg.latex(np.sum(b))
    for wrong in (1.0, [], [np.ones(2)]):
        with pytest.raises(TypeError, match="latex takes"):
            cg.latex(wrong)


def test_latex_of_long_chain_needs_no_recursion() -> None:
    x = variable(1.0, "x")
    for _ in range(2000):
        x = np.sin(x)
    assert len(cg.latex(x).where) > 30
    weights, others, y = variable(np.eye(2), "W"), variable(np.eye(2), "V"), variable(np.ones(2), "y")
    for _ in range(250):
        y = others @ (weights @ y)
    formula = cg.latex(y)
    assert len(formula.where) > 5
    assert max(map(len, lines_of(formula))) < 300
    with pytest.raises(ValueError, match="too long"):
        cg.to_sympy(y)
    for _ in range(MAX_OPERATIONS - 2000):
        x = np.sin(x)
    with pytest.raises(ValueError, match=f"latex: the graph has {MAX_OPERATIONS + 1} operations and leaves.*program"):
        cg.latex(x)
