"""Formulas of derivatives, in LaTeX and SymPy: textbook form and right values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

variable: Callable[..., Any] = cg.variable
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=5)
NAMES = {"X": X, "y": Y}


def derivative(node: Any, wrt: Any = None) -> str:
    """The right side of the derivative's equation."""
    return ad.latex(node, wrt, names=NAMES).equations[1].split(" = ", 1)[1]


def test_latex_derivatives_of_scalars() -> None:
    x = variable(0.5, "x")
    forms = {
        r"x \cos{\left(x \right)} + \sin{\left(x \right)}": np.sin(x) * x,
        r"3 x^{2}": x**3,
        r"\frac{e^{- x}}{\left(1 + e^{- x}\right)^{2}}": 1 / (1 + np.exp(-x)),
        r"\frac{x}{\sqrt{x^{2} + 1}}": np.sqrt(1 + x**2),
        r"- x e^{- \frac{x^{2}}{2}}": np.exp(-(x**2) / 2),
        r"\frac{1}{x}": np.log(x),
        r"\left(2 \;\text{if}\; x > 0 \;\text{else}\; -1\right)": np.where(x > 0, x * 2, -x),
        "1": x + 3,
        "7": 7 * x,
    }
    assert [derivative(node) for node in forms.values()] == list(forms)


def test_latex_derivatives_of_losses() -> None:
    w, weights = variable(RNG.normal(size=3), "w"), variable(RNG.normal(size=(3, 4)), "W_1")
    forms = {
        r"2 X^{T} \left(X w - y\right)": np.sum((X @ w - Y) ** 2),
        r"X^{T} \left(\frac{X w - y}{\left\| X w - y \right\|}\right)": np.linalg.norm(X @ w - Y),
        r"X^{T} \left(-\frac{y}{5 \left(e^{\left(X w\right) \odot y} + 1\right)}\right)": np.mean(cg.softplus(-Y * (X @ w))),
        r"\frac{1}{5} X^{T} \left(\operatorname{softmax}\left(X W_{1}\right) - C_{1}\right)": cg.softmax_cross_entropy(
            X @ weights, np.array([0, 1, 2, 3, 0])
        ),
        r"X^{T} \left(1 - \tanh^{2}{\left(X W_{1} \right)}\right)": np.sum(np.tanh(X @ weights)),
        r"2 w": w @ w,
        r"w \odot \cos{\left(w \right)} + \sin{\left(w \right)}": np.sum(np.sin(w) * w),
    }
    assert [derivative(node) for node in forms.values()] == list(forms)


def test_latex_shapes_and_letters() -> None:
    x = variable(np.ones(3), "x")
    formula = ad.latex(x @ x)
    assert formula.equations == [r"f = x^{T} x", r"\nabla_{x} f = 2 x"]
    assert formula.shapes == [r"x \in \mathbb{R}^{3}"]
    f = variable(2.0, "f")
    assert ad.latex(f * f).equations[1] == r"\frac{d F}{d f} = 2 f"
    assert ad.latex(f * variable(5.0, "f")).equations[2].startswith(r"\frac{\partial F}{\partial f'} = ")
    y = variable(3.0, "y")
    assert ad.latex(cg.multiply(f, y, name="loss"), wrt=[y]).equations == [
        r"\mathrm{loss} = f y", r"\frac{\partial \mathrm{loss}}{\partial y} = f",
    ]  # fmt: skip


def test_latex_partial_derivatives() -> None:
    x, y, v = variable(2.0, "x"), variable(3.0, "y"), variable([1.0, 2.0], "v")
    z = np.multiply(x, y)
    z.name = "z"
    signs = {
        r"\frac{d f}{d x}": ad.latex(x * cg.constant(5.0, "k")),
        r"\frac{\partial f}{\partial x}": ad.latex(x * y, wrt=x),
        r"\frac{\partial f}{\partial y}": ad.latex(x * y, wrt=["y"]),
        r"\frac{\partial f}{\partial z}": ad.latex(z * x, wrt=z),
        r"\frac{d f}{d z}": ad.latex(z * z, wrt=z),
        r"\nabla_{v} f": ad.latex(np.sum(v * v) * x, wrt=v),
    }
    for sign, formula in signs.items():
        assert formula.equations[1].startswith(f"{sign} = "), formula.equations
    assert ad.latex(np.sum(v) * x, wrt=x).equations[1].startswith(r"\frac{\partial f}{\partial x} = ")


def test_latex_derivative_of_nonscalar_raises() -> None:
    x = variable(np.ones(3), "x")
    with pytest.raises(ValueError, match=r"must be a scalar, but has shape \(3,\); write its sum"):
        ad.latex(x * 2)
    with pytest.raises(TypeError, match="latex"):
        ad.latex(1.0)
    with pytest.raises(ValueError, match="does not depend"):
        ad.latex(np.sum(x), wrt=variable(1.0))
    b = cg.zeros(3)
    b[0] = x[0]
    with pytest.raises(ValueError, match="written in place"):
        ad.latex(np.sum(b))
