"""Every operator with nested arguments and results, every form of argnums, auxiliary results, and operators inside operators."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.arguments import flatten, unflatten
from autodiff.reverse import gradient
from tests.support.for_each import for_each

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Model:
    w: Any
    layers: Any
    note: Any = None


W = np.array([0.3, -0.7, 1.1])
MODEL = Model(W, [Pair(0.5, np.array([[1.0, 2.0]])), {"k": -0.4}])
TIME = np.array([0.8, 1.7])


def field(m: Model, t: Any) -> Any:
    """A nested result of nested arguments."""
    (a, b), k = m.layers[0], m.layers[1]["k"]
    return {"y": np.sin(m.w * a)[:, None] * t, "z": (np.sum(b**3) * k * t[0], None), "v": Pair(m.w * k + t[1], np.exp(t * a))}


def energy(m: Model, t: Any) -> Any:
    outputs = field(m, t)
    return np.sum(outputs["y"] ** 2) * outputs["z"][0] + np.sum(outputs["v"].a ** 3) * np.sum(outputs["v"].b)


def flat(tree: Any) -> Array:
    leaves = flatten(tree)[0]
    return np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.zeros(0)


def filled(tree: Any, numbers: Array) -> Any:
    """Return a tree with the structure of another and these numbers."""
    leaves, structure = flatten(tree)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    parts = np.split(numbers, ends[:-1])
    return unflatten(structure, [p.reshape(np.shape(leaf))[()] for p, leaf in zip(parts, leaves, strict=True)])


def random(tree: Any, seed: int = 0) -> Any:
    return filled(tree, np.random.default_rng(seed).normal(size=flat(tree).size))


def differences(f: Function, tree: Any, step: float = 1e-6) -> Array:
    """The Jacobian of plain NumPy: all numbers of the result by all of the argument."""
    x = flat(tree)
    rows = [(flat(f(filled(tree, x + step * e))) - flat(f(filled(tree, x - step * e)))) / (2 * step) for e in np.eye(x.size)]
    return np.stack(rows, axis=-1)


def matrix(tables: Any, result: Any, argument: Any) -> Array:
    """A tree of the result with trees of the argument for leaves, as one matrix; shapes and nesting are checked."""
    outs, structure = flatten(result)
    trees = structure.flatten_up_to(tables)
    rows = []
    for out, tree in zip(outs, trees, strict=True):
        leaves, nesting = flatten(argument)
        blocks = flatten(tree)[0]
        assert flatten(tree)[1] == nesting
        for block, leaf in zip(blocks, leaves, strict=True):
            assert isinstance(block, (np.ndarray, np.generic))
            assert not isinstance(block, cg.Node)
            assert block.shape == (*np.shape(out), *np.shape(leaf))
        rows.append(np.concatenate([np.reshape(b, (np.size(out), -1)) for b in blocks], axis=1))
    return np.concatenate(rows)


JACOBIANS = for_each("operator", [ad.jacrev, ad.jacfwd, ad.jacobian], ids=lambda o: o.__name__)


class TestJacobians:
    @JACOBIANS
    def test_jacobian_of_pytree_is_tree_of_trees(self, operator: Function) -> None:
        result = matrix(operator(field)(MODEL, TIME), field(MODEL, TIME), MODEL)
        assert np.allclose(result, differences(lambda m: field(m, TIME), MODEL), rtol=1e-7, atol=1e-8)

    @JACOBIANS
    def test_jacobian_of_several_pytrees(self, operator: Function) -> None:
        both = (TIME, MODEL)
        result = matrix(operator(field, argnums=(1, 0))(MODEL, TIME), field(MODEL, TIME), both)
        assert np.allclose(result, differences(lambda b: field(b[1], b[0]), both), rtol=1e-7, atol=1e-8)

    @JACOBIANS
    def test_jacobian_argnums_by_name_and_keyword(self, operator: Function) -> None:
        expected = operator(field, 1)(MODEL, TIME)
        for result in (operator(field, "t")(MODEL, TIME), operator(field, "t")(MODEL, t=TIME), operator(field, -1)(MODEL, TIME)):
            assert np.array_equal(flat(result), flat(expected))
        (alone,) = flatten(operator(field, ("t",))(m=MODEL, t=TIME)["z"][0])[0]
        assert np.array_equal(alone, expected["z"][0])

    @JACOBIANS
    def test_jacobian_of_jacobian_of_pytree(self, operator: Function) -> None:
        def inner(m: Model) -> Any:
            return ad.jacrev(field)(m, TIME)["v"]

        result = matrix(operator(inner)(MODEL), inner(MODEL), MODEL)
        assert np.allclose(result, differences(inner, MODEL), rtol=1e-6, atol=1e-7)

    def test_jacobian_keeps_precision_of_every_leaf(self) -> None:
        p = {"a": np.ones(2, np.float32), "b": np.ones(3)}
        f = lambda p: np.sum(p["a"]) * np.sum(p["b"] ** 2)  # noqa: E731
        assert ad.jacrev(f)(p)["a"].dtype == np.float32
        product = ad.hvp(f)(p, p)
        assert (product["a"].dtype, product["b"].dtype) == (np.float32, np.float64)

    def test_jacobian_results_are_writable(self) -> None:
        jacobian = ad.jacrev(lambda p: {"y": p["a"], "z": p["a"]})({"a": np.ones(2)})
        jacobian["y"]["a"][...] = 5
        assert np.array_equal(jacobian["z"]["a"], np.eye(2))
        along = {"a": np.ones(2), "b": np.ones(2)}
        product = ad.hvp(lambda p: np.sum(p["a"] * p["b"]))(along, along)
        product["a"][...] = 5
        assert flat(along).tolist() == [1, 1, 1, 1]
        assert product["b"].tolist() == [1, 1]


class TestSecondDerivatives:
    @for_each("argnums", [0, "m", (0, 1), ("t", "m")])
    def test_hessian_and_hvp_of_pytree(self, argnums: Any) -> None:
        several = {0: MODEL, "m": MODEL, (0, 1): (MODEL, TIME), ("t", "m"): (TIME, MODEL)}[argnums]
        expected = differences(lambda s: ad.grad(energy, argnums)(*arrange_arguments(argnums, s)), several, 1e-5)
        result = matrix(ad.hessian(energy, argnums)(MODEL, TIME), several, several)
        assert np.allclose(result, expected, rtol=1e-6, atol=1e-6)
        along = random(several)
        product = ad.hvp(energy, argnums)(MODEL, along, TIME)
        assert flatten(product)[1] == flatten(several)[1]
        assert np.allclose(flat(product), result @ flat(along), rtol=1e-10)

    def test_hessian_of_pytree_third_derivative(self) -> None:
        along = random(MODEL)
        tangent = ad.jvp(ad.hessian(lambda m: energy(m, TIME)), (MODEL,), (along,))[1]
        step = filled(MODEL, 1e-5 * flat(along))
        ends = [flat(ad.hessian(energy)(filled(MODEL, flat(MODEL) + sign * flat(step)), TIME)) for sign in (1, -1)]
        assert np.allclose(flat(tangent), (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-5)
        by_reverse = ad.jacrev(lambda m: ad.hvp(energy)(m, along, TIME))(MODEL)
        assert np.allclose(matrix(by_reverse, MODEL, MODEL), matrix(tangent, MODEL, MODEL), rtol=1e-8, atol=1e-9)

    def test_hessian_of_pytree_connects_outer_variables(self) -> None:
        c = cg.variable(2.0, "c")
        f = lambda p: c * p["a"] ** 3  # noqa: E731
        one, p = {"a": 1.0}, {"a": 1.5}
        assert np.isclose(float(gradient(ad.hvp(f)(p, one)["a"])["c"]), 9)
        assert np.isclose(float(gradient(ad.hessian(f)(p)["a"]["a"])["c"]), 9)
        assert np.isclose(float(gradient(ad.linearize(f, p)[1](one))["c"]), 6.75)
        assert np.isclose(float(gradient(ad.taylor(f, p, 2)[2])["c"]), 4.5)
        assert np.isclose(float(gradient(ad.elementwise_grad(f)(p)["a"])["c"]), 6.75)
        assert np.isclose(float(gradient(ad.jacfwd(lambda p: [p["a"] ** 3])({"a": c})[0]["a"])["c"]), 12)


def arrange_arguments(argnums: Any, arguments: Any) -> tuple[Any, Any]:
    """Both arguments of `energy`, from the differentiated ones."""
    if argnums in (0, "m"):
        return arguments, TIME
    return arguments if argnums == (0, 1) else arguments[::-1]


class TestLinear:
    def test_linearize_of_pytree(self) -> None:
        value, push = ad.linearize(field, MODEL, TIME)
        assert np.array_equal(flat(value), flat(field(MODEL, TIME)))
        for seed in (1, 2):
            along = random((MODEL, TIME), seed)
            expected = ad.jvp(field, (MODEL, TIME), along)[1]
            assert flatten(push(*along))[1] == flatten(expected)[1]
            assert np.allclose(flat(push(*along)), flat(expected), rtol=1e-12)

    def test_linearize_of_pytree_with_writes(self) -> None:
        def f(p: Any) -> Any:
            y = np.zeros_like(p["x"])
            y[0] = p["x"][1] * p["k"]
            return {"y": y}, "aux"

        p, along = {"x": np.array([2.0, 3.0]), "k": 4.0}, {"x": np.array([0.0, 1.0]), "k": 1.0}
        value, push, aux = ad.linearize(f, p, has_aux=True)
        assert (value["y"].tolist(), push(along)["y"].tolist(), aux) == ([12, 0], [7, 0], "aux")

    def test_directional_derivative_of_pytree(self) -> None:
        along = random(MODEL)
        tangent = ad.directional_derivative(lambda m: field(m, TIME), MODEL, along)
        assert np.allclose(flat(tangent), differences(lambda m: field(m, TIME), MODEL) @ flat(along), rtol=1e-7, atol=1e-8)

    @for_each("written", [False, True])
    def test_taylor_of_pytree(self, written: bool) -> None:
        def f(m: Model) -> Any:
            outputs = field(m, TIME)
            if written:
                outputs["y"] = np.copy(outputs["y"])
                outputs["y"][0] *= 2
            return outputs

        along = random(MODEL)
        coefficients = ad.taylor(f, MODEL, 3, along)
        derivative: Function = f
        for k, factorial in enumerate((1, 1, 2, 6)):
            expected = derivative(MODEL)
            assert flatten(coefficients[k])[1] == flatten(expected)[1]
            assert np.allclose(flat(coefficients[k]) * factorial, flat(expected), rtol=1e-10, atol=1e-12)
            derivative = lambda m, d=derivative: ad.jvp(d, (m,), (along,))[1]  # noqa: E731
        ones = filled(MODEL, np.ones(flat(MODEL).size))
        assert np.allclose(flat(ad.taylor(f, MODEL, 1)[1]), flat(ad.jvp(f, (MODEL,), (ones,))[1]))

    def test_taylor_shares_no_memory(self) -> None:
        x, along = np.ones(2), np.ones(2)
        for coefficient in ad.taylor(lambda x: x, x, 1, along):
            coefficient[...] = 7
        assert (x.tolist(), along.tolist()) == ([1, 1], [1, 1])


class TestElementwise:
    def test_elementwise_grad_of_pytree(self) -> None:
        p = [W, Pair(W + 1, None)]
        derivative = ad.elementwise_grad(lambda p: {"s": np.sin(p[0]) * p[1].a, "c": p[1].a ** 2})(p)
        assert np.allclose(flat(derivative["s"]), np.concatenate([np.cos(W) * (W + 1), np.sin(W)]))
        assert np.allclose(flat(derivative["c"]), np.concatenate([0 * W, 2 * (W + 1)]))
        assert type(derivative["s"][1]) is Pair
        by_b, by_a = ad.elementwise_grad(lambda a, b: a * b**2, ("b", 0))(W, b=W + 1)
        assert np.allclose([by_b, by_a], [2 * W * (W + 1), (W + 1) ** 2])

    def test_elementwise_grad_of_complex_leaves(self) -> None:
        z = np.array([0.5 + 1j, -0.3j])
        assert np.allclose(ad.elementwise_grad(lambda x: np.exp(1j * x))(W), 1j * np.exp(1j * W))
        assert np.allclose(ad.elementwise_grad(np.exp)(z), np.exp(z))
        assert np.allclose(ad.elementwise_grad(lambda z: np.abs(z) ** 2)(z), 2 * np.conj(z))
        with pytest.raises(TypeError, match="elementwise_grad: the complex function is not analytic"):
            ad.elementwise_grad(lambda z: z * np.conj(z))(z)

    def test_elementwise_grad_of_dependent_leaf_raises(self) -> None:
        with pytest.raises(ValueError, match="depends on other elements"):
            ad.elementwise_grad(lambda p: p["a"] + np.sum(p["b"]))({"a": W, "b": W})


class TestFields:
    def test_vector_calculus_other_arguments(self) -> None:
        assert ad.divergence(lambda t, x: t * x**2, 1)(3.0, W) == pytest.approx(6 * np.sum(W))
        assert ad.divergence(lambda t, x: t * x**2, "x")(3.0, x=W) == pytest.approx(6 * np.sum(W))
        assert ad.laplacian(lambda x, *, k: k * np.sum(x**3), "x")(x=W, k=2.0) == pytest.approx(12 * np.sum(W))
        turn = ad.curl(lambda t, x: np.cross(np.array([0.0, 0.0, 1.0]) * t, x), "x")(2.0, W)
        assert np.allclose(turn, [0, 0, 4])


AUX: dict[str, Function] = {
    "grad": lambda f: ad.grad(f, has_aux=True)(1.5),
    "jacrev": lambda f: ad.jacrev(f, has_aux=True)(1.5),
    "jacfwd": lambda f: ad.jacfwd(f, has_aux=True)(1.5),
    "jacobian": lambda f: ad.jacobian(f, has_aux=True)(1.5),
    "hessian": lambda f: ad.hessian(f, has_aux=True)(1.5),
    "hvp": lambda f: ad.hvp(f, has_aux=True)(1.5, 1.0),
    "elementwise_grad": lambda f: ad.elementwise_grad(f, has_aux=True)(1.5),
    "vjp": lambda f: ad.vjp(f, 1.5, has_aux=True),
    "jvp": lambda f: ad.jvp(f, (1.5,), (1.0,), has_aux=True),
    "linearize": lambda f: ad.linearize(f, 1.5, has_aux=True),
}


class TestAux:
    @for_each("label", AUX)
    def test_has_aux_is_plain(self, label: str) -> None:
        *_, aux = AUX[label](lambda x: (x**3, {"square": x * x, "n": 3, "none": None}))
        assert aux == {"square": 2.25, "n": 3, "none": None}
        assert type(aux["square"]) is np.float64

    @for_each("label", AUX)
    def test_has_aux_stays_connected(self, label: str) -> None:
        for d in (ad.grad, lambda f: lambda x: ad.jvp(f, (x,), (1.0,))[1]):
            assert float(d(lambda x: AUX[label](lambda y: (y**3, x * x * y))[-1])(2.0)) == pytest.approx(6)

    @for_each("label", AUX)
    def test_has_aux_without_pair_raises(self, label: str) -> None:
        with pytest.raises(TypeError, match=f"{label}: has_aux=True, but the function returned a .*, not a pair"):
            AUX[label](lambda x: x**3)


class TestCustomGradient:
    @staticmethod
    def scaled(p: Any, k: Any) -> Any:
        @ad.custom_gradient
        def call(p: Any, k: Any) -> Any:
            def pull(g: Any) -> Any:
                return {"w": g["v"] * k + g["s"][0], "b": None}, np.sum(g["v"] * p["w"])

            return {"v": p["w"] * k, "s": (np.sum(p["w"]), None)}, pull

        return call(p, k)

    def test_custom_gradient_of_pytree(self) -> None:
        p = {"w": W, "b": 0.5}
        plain = self.scaled(p, 2.0)
        assert (type(plain["v"]), plain["s"][1]) == (np.ndarray, None)

        def f(p: Any, k: Any) -> Any:
            outputs = self.scaled(p, k)
            return np.sum(np.sin(outputs["v"])) * outputs["s"][0]

        expected = lambda p, k: np.sum(np.sin(p["w"] * k)) * np.sum(p["w"])  # noqa: E731
        for operator in (ad.grad, ad.jacfwd, ad.hessian):
            assert np.allclose(flat(operator(f, (0, 1))(p, 2.0)), flat(operator(expected, (0, 1))(p, 2.0)))
        ad.check_grads(f, [p, 2.0], order=2)

    def test_custom_gradient_one_nested_argument(self) -> None:
        product = ad.custom_gradient(lambda q: ([q[0] * q[1]], lambda g: [g[0] * q[1], None]))
        assert ad.grad(lambda q: product(q)[0])([2.0, 3.0]) == [3, 0]
        assert ad.jvp(lambda q: product(q)[0], ([2.0, 3.0],), ([1.0, 1.0],))[1] == 3

    def test_custom_gradient_none_is_zero_in_every_mode_and_order(self) -> None:
        f = ad.custom_gradient(lambda x, y: (x * y, lambda g: (g * y, None)))
        assert ad.hessian(f, (0, 1))(2.0, 3.0) == ((0, 1), (0, 0))
        assert ad.jvp(f, (2.0, 3.0), (1.0, 1.0)) == (6, 3)
        parts = ad.custom_gradient(lambda x: ((x**2, x**3), lambda g: g[0] * 2 * x))
        assert ad.hessian(lambda x: parts(x)[1])(2.0) == 0

    def test_custom_gradient_wrong_structure_raises(self) -> None:
        other = ad.custom_gradient(lambda q: (q["a"], lambda g: {"b": g}))
        with pytest.raises(ValueError, match="a different structure than its argument"):
            ad.grad(other)({"a": 1.0})
        lost = ad.custom_gradient(lambda x, y: (x * y, lambda g: (g * y, np.asarray(g) * 2)))
        with pytest.raises(TypeError, match=r"returned a plain .* for argument 1, .*return None"):
            ad.hessian(lost, (0, 1))(2.0, 3.0)
        with pytest.raises(TypeError, match="which contains no array"):
            ad.custom_gradient(lambda x: ([], lambda g: g))(1.0)


def test_checkpoint_of_dataclasses() -> None:
    plain = lambda m: Model(np.sin(m.w) * m.layers["k"], {"z": m.w * 2})  # noqa: E731
    f = ad.checkpoint(plain)
    m = Model(W, {"k": 2.0})
    output = f(Model(cg.variable(W), {"k": 2.0}))
    assert (type(output), output.w.opname, output.note) == (Model, "checkpoint", None)
    total = lambda f: lambda m: np.sum(f(m).w) * np.sum(f(m).layers["z"])  # noqa: E731
    for operator in (ad.grad, ad.hessian):
        assert np.allclose(flat(operator(total(f))(m)), flat(operator(total(plain))(m)))
    ad.check_grads(f, [m], order=2)


def values(x: Any) -> Any:
    """The numbers of a node."""
    return x.value if isinstance(x, cg.Node) else x


class TestCheckGrads:
    def test_check_grads_of_pytree(self) -> None:
        ad.check_grads(field, [MODEL, TIME])

    @for_each("mode", ["fwd", "rev"])
    def test_check_grads_detects_wrong_leaf(self, mode: str) -> None:
        wrong = ad.custom_gradient(lambda x: (x**2, lambda g: 2.01 * g * x))
        with pytest.raises(AssertionError, match=f"order 1: derivative in mode '{mode}'"):
            ad.check_grads(lambda m: {"y": np.sin(m.w), "z": wrong(m.layers)}, [Model(W, 3.0)], modes=(mode,))
        with pytest.raises(AssertionError, match="a central difference gives"):
            ad.check_grads(lambda p: [p["a"] ** 2, np.sum(values(p["a"]))], [{"a": W}], order=1, modes=(mode,))
        with pytest.raises(cg.LeakError, match=r"statistics\.harmonic_mean\(abs\(p\[.a.\]\)\)"):
            ad.check_grads(lambda p: [p["a"] ** 2, statistics.harmonic_mean(abs(p["a"]))], [{"a": W}], order=1, modes=(mode,))

    def test_check_grads_names_wrong_order(self) -> None:
        flat_slope = ad.custom_gradient(lambda x: (x**2, lambda g: 2 * g * cg.stop_gradient(x)))
        ad.check_grads(flat_slope, [W], order=1)
        with pytest.raises(AssertionError, match="order 2: derivative in mode 'rev'"):
            ad.check_grads(flat_slope, [W], order=2, modes=("rev",))

    def test_check_grads_bad_arguments_raise(self) -> None:
        with pytest.raises(TypeError, match="args must be a tuple or list of the arguments"):
            ad.check_grads(np.sin, 2.0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="modes among"):
            ad.check_grads(np.sin, [2.0], modes=())


P = {"a": W, "b": 2.0}
ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "integers": (
        lambda: ad.jacrev(np.sum)({"n": [1.0, np.arange(3)]}),
        TypeError,
        r"jacrev: argument 0\['n'\]\[1\] has dtype int64",
    ),
    "integers to jvp": (lambda: ad.jvp(np.sin, (np.arange(3),), (W,)), TypeError, "jvp: primal 0 has dtype int64"),
    "the same twice": (
        lambda: ad.grad(np.multiply, (0, 0))(2.0, 3.0),
        ValueError,
        "contains the same argument twice. Pass each once",
    ),
    "twice by name": (
        lambda: ad.jacfwd(lambda x: x, (0, "x"))(2.0),
        ValueError,
        "contains the same argument twice. Pass each once",
    ),
    "argnums": (lambda: ad.hessian(np.sum, 1.0)(W), TypeError, "argnums must be a position, a name, or a sequence"),  # type: ignore[arg-type]
    "argnums in a tuple": (lambda: ad.grad(np.sum, (0, None))(W), TypeError, "argnums must be a position, a name"),  # type: ignore[arg-type]
    "behind a star": (
        lambda: ad.grad(lambda *a, c=1.0: a[1] * c, "c")(2.0, 3.0),
        ValueError,
        "contains 'c', which is not an argument",
    ),
    "no parameter of a product": (
        lambda: ad.grad(ad.hvp(lambda x, y: x * y), "y")(1.0, 1.0, 2.0),
        ValueError,
        "contains 'y', which is not an argument",
    ),
    "a list": (lambda: ad.grad(lambda x: x.sum())([1.0, 2.0]), AttributeError, "'list' object has no attribute 'sum'"),
    "a list that became plain": (
        lambda: ad.grad(lambda x: np.array([v.value for v in x]).sum())([1.0, 2.0]),
        TypeError,
        r"for an array pass np\.array",
    ),
    "a pair": (lambda: ad.grad(lambda x: (x, x))(2.0), TypeError, r"returned a tuple, not a scalar\. .*has_aux=True"),
    "a dictionary": (
        lambda: ad.hessian(lambda x: {"y": x})(2.0),
        TypeError,
        "hessian: the function returned a dict, not a scalar",
    ),
    "no array": (lambda: ad.jacrev(lambda x: {"y": None})(2.0), TypeError, r"returned \{'y': None\}, which contains no array"),
    "a vector of other nesting": (lambda: ad.hvp(lambda p: np.sum(p["a"]))(P, W), ValueError, "hvp: the tangents nest as"),
    "too few vectors": (lambda: ad.hvp(np.vdot, (0, 1))(W, (W,), W), ValueError, "1 tangents were passed for 2 arguments"),
    "no tuple": (lambda: ad.hvp(np.vdot, (0, 1))(W, W, W), ValueError, "tangents of 2 arguments must be a tuple"),
    "a tangent's shape": (lambda: ad.linearize(np.sin, W)[1](TIME), ValueError, "linearize: tangent 0 has shape"),
    "a direction": (lambda: ad.taylor(lambda p: p["a"], P, 2, W), ValueError, "taylor: the direction nests as"),
    "sparse arguments": (lambda: ad.jacobian(lambda p: p["a"], sparse=True)(P), ValueError, r"not nested ones\. Join"),
    "sparse results": (lambda: ad.jacobian(lambda x: [x], sparse=True)(W), ValueError, r"not nested ones\. Join"),
    "sparse hessian": (lambda: ad.hessian(lambda p: p["b"] ** 2, sparse=True)(P), ValueError, "hessian: .*not nested ones"),
    "divergence": (lambda: ad.divergence(lambda p: p)(P), ValueError, "divergence: .*a single array.*split it in the function"),
    "of several": (lambda: ad.laplacian(np.vdot, (0, 1))(W, W), ValueError, "laplacian: .*a single array"),  # type: ignore[arg-type]
    "curl": (lambda: ad.curl(lambda x: x)([1.0, 2.0, 3.0]), ValueError, "curl: .*a single array"),
    "a field in parts": (lambda: ad.divergence(lambda x: [x[0], x[1]])(TIME), TypeError, r"not one array\. Stack its components"),
}


@for_each("label", ERRORS)
def test_operators_bad_pytree_calls_raise(label: str) -> None:
    call, error, message = ERRORS[label]
    with pytest.raises(error, match=message):
        call()


@for_each(
    "operator",
    [
        lambda f: ad.jacrev(f, (0, 1))(1.0, 2.0),
        lambda f: ad.jacfwd(f, (0, 1))(1.0, 2.0),
        lambda f: ad.hessian(f, (0, 1))(1.0, 2.0),
        lambda f: ad.hvp(f, (0, 1))(1.0, (1.0, 1.0), 2.0),
        lambda f: ad.linearize(f, 1.0, 2.0),
        lambda f: ad.elementwise_grad(f, (0, 1))(1.0, 2.0),
    ],
)
def test_operators_name_leaf_that_left_the_graph(operator: Function) -> None:
    with pytest.warns(RuntimeWarning, match="does not depend on argument 1 by its graph"):
        operator(lambda x, y: x**2 * y.value)


def test_list_of_numbers_acts_as_array() -> None:
    derivative = ad.grad(lambda x: np.sum(np.sin(x) ** 2))([1.0, 2.0])
    assert np.allclose(derivative, np.sin([2.0, 4.0]))


# -------------------------------------------------------------------------------------- in each other

FIRST: dict[str, Function] = {
    "grad": ad.grad,
    "jacrev": ad.jacrev,
    "jacfwd": ad.jacfwd,
    "jvp": lambda f: lambda x: ad.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: ad.vjp(f, x)[1](1.0)[0],
    "elementwise_grad": ad.elementwise_grad,
    "divergence": ad.divergence,
    "grad of checkpoint": lambda f: ad.grad(ad.checkpoint(f)),
    "nested jacrev": lambda f: lambda x: ad.jacrev(lambda p: {"y": f(p["a"])})({"a": x})["y"]["a"],
    "nested jacfwd": lambda f: lambda x: ad.jacfwd(lambda p: {"y": f(p["a"])})({"a": x})["y"]["a"],
    "nested linearize": lambda f: lambda x: ad.linearize(lambda p: [f(p["a"])], {"a": x})[1]({"a": 1.0})[0],
    "nested taylor": lambda f: lambda x: ad.taylor(lambda p: [f(p["a"])], {"a": x}, 1)[1][0],
}
SECOND: dict[str, Function] = {
    "hessian": ad.hessian,
    "hessian_diagonal": ad.hessian_diagonal,
    "laplacian": ad.laplacian,
    "nested hessian": lambda f: lambda x: ad.hessian(lambda p: f(p["a"]))({"a": x})["a"]["a"],
    "nested hvp": lambda f: lambda x: ad.hvp(lambda p: f(p["a"]) * p["b"])({"a": x, "b": 1.0}, {"a": 1.0, "b": 0.0})["a"],
    "hvp of two": lambda f: lambda x: ad.hvp(lambda p, q: f(p) * q, (0, 1))(x, (1.0, 0.0), 1.0)[0],
}


@for_each(("one", "other"), list(itertools.product(FIRST, repeat=2)))
def test_operators_distinguish_perturbations(one: str, other: str) -> None:
    d1, d2 = FIRST[one], FIRST[other]
    assert float(d1(lambda x: x * d2(lambda y: x + y)(1.0))(1.0)) == pytest.approx(1)
    assert float(d1(lambda x: d2(lambda y: x**2 * y**3)(x))(2.0)) == pytest.approx(96)
    second = d1(d2(np.sin))(1.0)
    assert type(second) is np.float64
    assert second == pytest.approx(-np.sin(1.0))


@for_each(("one", "other"), list(itertools.product(FIRST, SECOND)))
def test_second_derivatives_within_first(one: str, other: str) -> None:
    d1, d2 = FIRST[one], SECOND[other]
    for third in (d1(d2(np.sin))(0.7), d2(d1(np.sin))(0.7)):
        assert type(third) is np.float64
        assert third == pytest.approx(-np.cos(0.7))
    assert float(d1(lambda x: x * d2(lambda y: x * y**2)(x))(2.0)) == pytest.approx(8)


@for_each("inner", [ad.grad, ad.jacobian, ad.hessian, ad.value_and_grad])
def test_inner_derivative_of_outer_values_leaves_no_nodes(inner: Function) -> None:
    """An inner graph converts an outer value to a node, which does not leave that graph."""

    def f(x: Any) -> Any:
        return inner(lambda y: np.sum(x * y * y))(x), 2 * x, x

    for leaf in flatten(ad.jvp(f, (W,), (np.ones(3),)))[0]:
        assert not isinstance(leaf, cg.Node)
    w = cg.variable(3.0, "w")
    _, (_, tangent, _) = ad.jvp(lambda x: (inner(lambda y: np.sum(x * y * y))(x), w * x, x), (W,), (np.ones(3),))
    assert gradient(tangent)["w"] == 3


@for_each("outer", ["grad", "jacrev", "jacfwd", "elementwise_grad", "nested jacrev", "nested taylor"])
def test_inner_constant_leaves_no_graph(outer: str) -> None:
    for inner in ("grad", "jacrev", "nested jacfwd", "nested linearize"):
        derivative = FIRST[outer](lambda x, d=FIRST[inner]: x * d(lambda y: x + y)(1.0))(1.0)
        assert type(derivative) is np.float64


@for_each("name", sorted({*FIRST, *SECOND} - {"grad of checkpoint"}))  # which refuses to run with others
def test_outer_placeholder_stays_a_placeholder(name: str) -> None:
    """A result computed with the placeholder's example value would be frozen into the graph."""
    p = cg.placeholder((), name="p")
    second = name in SECOND
    derivative = (SECOND if second else FIRST)[name](lambda x: p * x**3)(2.0)
    assert isinstance(derivative, cg.Node)
    assert cg.Executor([derivative]).run({"p": 5.0}) == [pytest.approx(60.0)]
    n = cg.placeholder((), dtype=int, name="n")
    assert cg.Executor([ad.grad(lambda x: n * x**3)(2.0)]).run({"n": 5}) == [pytest.approx(60.0)]


C = np.array([1.0, 1j, 2.0])
COMPLEX: dict[str, Function] = {
    "jvp": lambda: ad.jvp(np.square, (W,), (C,)),
    "vjp": lambda: ad.vjp(np.square, W)[1](C),
    "linearize": lambda: ad.linearize(np.square, W)[1](C),
    "hvp": lambda: ad.hvp(lambda x: np.sum(x**3))(W, C),
    "taylor": lambda: ad.taylor(np.square, W, 2, C),
    "directional_derivative": lambda: ad.directional_derivative(np.square, W, C),
    "gradient": lambda: gradient(cg.variable(W) ** 2, adjoint=C),
    "create_graph": lambda: gradient(cg.variable(W) ** 2, adjoint=C, create_graph=True),
    "a node": lambda: gradient(cg.variable(W) ** 2, adjoint=cg.variable(C), create_graph=True),
}


@for_each("name", COMPLEX)
def test_complex_direction_of_real_value_raises(name: str) -> None:
    """Its imaginary part would be lost."""
    with pytest.raises(TypeError, match=r"is complex.* parts (separately|one by one)"):
        COMPLEX[name]()


def test_tangent_shares_no_memory_with_direction() -> None:
    direction = np.ones(3)
    _, tangent = ad.jvp(lambda x: x[::-1], (W,), (direction,))
    assert not np.shares_memory(tangent, direction)


# Functions of a and b that apply an operator to one argument and a direction, with the expected result.
PRODUCTS: dict[str, tuple[Function, Function]] = {
    "vjp": (lambda a, b: ad.vjp(lambda x: x**3 * b, a)[1](a * b**2)[0], lambda a, b: 3 * a**3 * b**3),
    "linearize": (lambda a, b: ad.linearize(lambda x: x**3 * b * a, a * b)[1](a + b), lambda a, b: 3 * a**3 * b**3 * (a + b)),
    "hvp": (lambda a, b: ad.hvp(lambda x: x**3 * b * a)(a, a * b), lambda a, b: 6 * a**3 * b**2),
}


@for_each("name", PRODUCTS)
@for_each("outer_is_first", [True, False])
def test_jvp_direction_of_inner_and_function_of_outer_argument(name: str, outer_is_first: bool) -> None:
    """Their tangents are of two levels: the inner one was lost where the result had the outer one alone."""

    def mixed(f: Function) -> Any:
        if outer_is_first:
            return ad.jvp(lambda a: ad.jvp(lambda b: f(a, b), (1.5,), (1.0,))[1], (2.0,), (1.0,))
        return ad.jvp(lambda b: ad.jvp(lambda a: f(a, b), (2.0,), (1.0,))[1], (1.5,), (1.0,))

    product, expected = PRODUCTS[name]
    np.testing.assert_allclose(mixed(product), mixed(expected), rtol=1e-12)


@for_each("operator", [ad.jacobian, ad.hessian, ad.grad])
def test_jvp_of_value_shifted_by_outer_argument_is_zero(operator: Function) -> None:
    def inner(y: Any) -> Any:
        return operator(lambda x: np.sum(x**3) + np.sum(y))(W)

    value, tangent = ad.jvp(inner, (W,), (np.ones(3),))
    np.testing.assert_array_equal(value, operator(lambda x: np.sum(x**3))(W))
    np.testing.assert_array_equal(tangent, np.zeros_like(value))


def test_jacobian_of_linearize_within_derivative() -> None:
    def inner(y: Any) -> Any:
        return ad.forward.jacobian(ad.linearize(lambda x: x**3, y)[1](ad.forward.variables(np.ones(2))))

    value, tangent = ad.jvp(inner, (W[:2],), (np.ones(2),))
    np.testing.assert_allclose(value, np.diag(3 * W[:2] ** 2), rtol=1e-12)
    np.testing.assert_allclose(tangent, np.diag(6 * W[:2]), rtol=1e-12)
