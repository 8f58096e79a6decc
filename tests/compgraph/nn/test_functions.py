"""Functions that NumPy lacks, primitives, named functions, and user-defined rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import compgraph as cg
from autodiff import check_grads, grad, jvp, rule
from autodiff.reverse import check_gradient, gradient

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 3))
CLASSES = np.array([0, 2, 1, 1, 0])
ONE_HOT = np.eye(3)[CLASSES]
SOFT = special.softmax(RNG.normal(size=(5, 3)), axis=1)


class TestActivations:
    @pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
    def test_activations_match_scipy(self, axis: Any) -> None:
        assert np.allclose(cg.softmax(LOGITS, axis=axis), special.softmax(LOGITS, axis=axis), rtol=1e-14)
        assert np.allclose(cg.log_softmax(LOGITS, axis=axis), special.log_softmax(LOGITS, axis=axis), rtol=1e-14)
        for keepdims in (False, True):
            expected = special.logsumexp(LOGITS, axis=axis, keepdims=keepdims)
            assert np.allclose(cg.logsumexp(LOGITS, axis=axis, keepdims=keepdims), expected, rtol=1e-14)

    def test_activations_of_extreme_arguments(self) -> None:
        x = np.array([-1e4, -1.0, 0.0, 1.0, 1e4])
        assert np.allclose(cg.sigmoid(x), special.expit(x), rtol=1e-14)
        assert np.allclose(cg.softplus(x), [0, np.log1p(np.exp(-1)), np.log(2), np.log1p(np.exp(1)), 1e4], rtol=1e-14)
        assert np.array_equal(gradient(cg.softplus(cg.variable(x, "x")))["x"], cg.sigmoid(x))
        assert np.array_equal(gradient(cg.sigmoid(cg.variable(x, "x")))["x"][[0, -1]], [0.0, 0.0])
        assert np.array_equal(gradient(cg.relu(cg.variable(x, "x")))["x"], [0, 0, 0, 1, 1])
        assert float(cg.logsumexp([-np.inf, -np.inf, 3.0])) == 3.0

    @pytest.mark.parametrize("f", [cg.relu, cg.sigmoid, cg.softplus, cg.softmax, cg.log_softmax, cg.logsumexp])
    def test_activations_keep_dtype_and_plain_results(self, f: Any) -> None:
        x = np.ones((2, 3), np.float32)
        assert f(x).dtype == np.float32
        assert not isinstance(f(x), cg.Node)
        node = f(cg.variable(x), name="out")
        assert node.dtype == np.float32
        assert node.name == "out"
        assert node.opname == f.opname
        assert np.array_equal(node.value, f(x))


class TestLosses:
    @pytest.mark.parametrize("labels", [CLASSES, ONE_HOT, SOFT, CLASSES.astype(np.uint8), 3 * SOFT], ids=str)
    def test_softmax_cross_entropy_matches_scipy(self, labels: Any) -> None:
        weights = np.eye(3)[labels] if labels.ndim == 1 else labels
        expected = -np.mean(np.sum(weights * special.log_softmax(LOGITS, axis=1), axis=1))
        assert np.isclose(float(cg.softmax_cross_entropy(LOGITS, labels)), expected, rtol=1e-14)
        check_grads(lambda x: cg.softmax_cross_entropy(x, labels), [LOGITS], order=3)

    def test_cross_entropy_has_derivative_of_labels(self) -> None:
        check_grads(cg.softmax_cross_entropy, [LOGITS, SOFT], order=2)
        check_grads(cg.sigmoid_cross_entropy, [LOGITS, SOFT], order=2)

    def test_cross_entropy_shapes(self) -> None:
        x = RNG.normal(size=(2, 4, 3))
        labels = RNG.integers(0, 3, size=(2, 4))
        assert np.isclose(cg.softmax_cross_entropy(x, labels), cg.softmax_cross_entropy(x.reshape(8, 3), labels.ravel()))
        assert np.isclose(cg.softmax_cross_entropy(x[0, 0], labels[0, 0]), -special.log_softmax(x[0, 0])[labels[0, 0]])
        assert check_gradient(lambda v: cg.softmax_cross_entropy(v, labels), [x])

    def test_cross_entropy_of_large_logits(self) -> None:
        x = cg.variable([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]], "x")
        for labels in ([1, 0], np.eye(3)[[1, 0]]):
            loss = cg.softmax_cross_entropy(x, labels)
            assert np.isclose(float(loss), (2e4 + 2e4 + np.log(2)) / 2, rtol=1e-12)
            assert np.allclose(gradient(loss)["x"], [[0.5, -0.5, 0], [-0.5, 0.25, 0.25]])
        y = cg.variable([1e4, -1e4], "y")
        loss = cg.sigmoid_cross_entropy(y, [0.0, 1.0])
        assert float(loss) == 1e4
        assert np.array_equal(gradient(loss)["y"], [0.5, -0.5])

    def test_cross_entropy_bad_labels_raise(self) -> None:
        with pytest.raises(ValueError, match="from 0 to 2"):
            cg.softmax_cross_entropy(LOGITS, CLASSES + 1)
        with pytest.raises(ValueError, match="from 0 to 2"):
            cg.softmax_cross_entropy(LOGITS, CLASSES - 1)
        with pytest.raises(TypeError, match="must be integers"):
            cg.softmax_cross_entropy(LOGITS, CLASSES * 1.0)
        with pytest.raises(ValueError, match=r"logits of shape \(5, 3\) need labels"):
            cg.softmax_cross_entropy(LOGITS, CLASSES[:4])
        with pytest.raises(ValueError, match="labels"):
            cg.sigmoid_cross_entropy(LOGITS, CLASSES)


class TestPrimitive:
    def test_primitive_with_decorator_and_rule(self) -> None:
        @cg.primitive
        def cubed(x: Any) -> Any:
            return x**3

        @rule(cubed, kind="elementwise")
        def cube_grad(cotangent: Any, out: Any, x: Any) -> Any:
            return 3 * x**2 * cotangent

        check_grads(lambda x: cubed(np.sin(x)), [np.array([0.5, 1.0])], order=3)
        node = cubed(cg.variable([1.0, 2.0], "x"))
        assert node.opname == "cubed"
        assert cube_grad(np.ones(2), node)[1] is None
        assert np.array_equal(cube_grad(np.ones(2), node)[0], [3.0, 12.0])
        assert cubed(2.0) == 8.0

    def test_primitive_options_and_several_operands(self) -> None:
        @cg.primitive(opname="scaled_difference")
        def scaled(a: Any, b: Any, *, scale: float = 1.0) -> Any:
            return (a - b) * scale

        rule(scaled, lambda g, out, a, b, scale=1.0: g * scale, lambda g, out, a, b, scale=1.0: -g * scale, kind="elementwise")
        check_grads(lambda a, b: scaled(a, b, scale=3.0), [np.ones((2, 1)), np.ones(3)])
        node = scaled(cg.variable(1.0), b=2.0)
        assert node.opname == "scaled_difference"
        with pytest.raises(TypeError, match="scale= is keyword-only and cannot be a node"):
            scaled(1.0, 2.0, scale=cg.variable(1.0))

    def test_primitive_several_outputs(self) -> None:
        @cg.primitive
        def both(x: Any) -> Any:
            return np.sin(x), np.cos(x)

        rule(
            both,
            lambda g, out, x: (0 if g[0] is None else g[0] * out[1]) - (0 if g[1] is None else g[1] * out[0]),
            tangents=[lambda t, out, x: (t * out[1], -t * out[0])],
        )
        check_grads(lambda x: both(x)[0] * both(x)[1] ** 2, [np.array([0.3, 0.4])], order=2)
        check_grads(lambda x: both(x)[1], [np.array([0.3, 0.4])], order=2)
        s, c = both(cg.variable([0.3], "x"), name="circle")
        assert (s.name, c.name) == ("circle_0", "circle_1")
        assert s.opname == "both"
        assert s.operands[0].name == "x"

    def test_primitive_with_existing_name_raises(self) -> None:
        with pytest.raises(ValueError, match="'sin' exists"):

            @cg.primitive
            def sin(x: Any) -> Any:
                return x

    def test_primitive_bad_declarations_raise(self) -> None:
        with pytest.raises(TypeError, match=r"Decorate it with cg\.primitive first"):
            rule(lambda x: x, lambda g, out, x: g)

        @cg.primitive
        def plain_one(x: Any) -> Any:
            return x

        with pytest.raises(ValueError, match="kind must be one of elementwise, linear"):
            rule(plain_one, lambda g, out, x: g, kind="diagonal")
        with pytest.raises(ValueError, match="follow from its kind"):
            rule(plain_one, lambda g, out, x: g, kind="linear", tangents=[lambda t, out, x: t])

    def test_primitive_wrong_call_names_function(self) -> None:
        with pytest.raises(TypeError):
            cg.relu()
        with pytest.raises(TypeError):
            cg.relu(1.0, axis=3)

    def test_primitive_within_no_graph_is_plain(self) -> None:
        with cg.no_graph():
            assert not isinstance(cg.relu(cg.variable([1.0])), cg.Node)


class TestNamed:
    def test_name_option_and_plain_results(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        assert cg.sin(x, name="s").name == "s"
        assert type(cg.sin(1.0)) is np.float64
        assert cg.add(1, 2) == 3
        assert np.array_equal(cg.concatenate([x, [3.0]], name="joined").value, [1, 2, 3])
        assert cg.where(x > 1, x, 0.0, name="chosen").name == "chosen"
        assert [n.name for n in cg.split(x, 2, name="half")] == ["half_0", "half_1"]

    def test_name_option_alone_makes_node(self) -> None:
        node = cg.add(1.0, 2.0, name="three")
        assert isinstance(node, cg.OperationalNode)
        assert (node.name, float(node)) == ("three", 3.0)
        assert cg.concatenate([np.ones(2), np.zeros(1)], name="j").name == "j"
        assert cg.einsum("ij->ji", np.ones((2, 3)), name="t").shape == (3, 2)

    def test_name_option_on_returned_argument_keeps_its_name(self) -> None:
        x = cg.variable([1.0], "x")
        renamed = cg.atleast_1d(x, name="y")
        assert (x.name, renamed.name) == ("x", "y")
        assert np.array_equal(gradient(renamed)["x"], [1.0])


def test_stop_gradient_is_recorded() -> None:
    x = cg.variable([1.0, 2.0], "x")
    stopped = cg.stop_gradient(x)
    assert stopped.opname == "stop_gradient"
    assert np.array_equal(stopped.value, x.value)
    assert np.array_equal(gradient(stopped * x)["x"], [1.0, 2.0])
    assert float(grad(lambda v: cg.stop_gradient(v) ** 2)(3.0)) == 0.0
    assert float(jvp(lambda v: cg.stop_gradient(v) ** 2, (3.0,), (1.0,))[1]) == 0.0


class TestModules:
    """``cg.linalg``, ``cg.fft`` and ``cg.emath``: NumPy's functions under their own names, with ``name=``."""

    @pytest.mark.parametrize("place", ["linalg", "fft", "emath"])
    def test_submodule_has_every_function(self, place: str) -> None:
        ours, numpys = getattr(cg, place), getattr(np, place)
        functions = {name for name in numpys.__all__ if callable(f := getattr(numpys, name)) and not isinstance(f, type)}
        assert set(dir(ours)) == functions
        assert all(callable(getattr(ours, name)) for name in functions)
        with pytest.raises(AttributeError, match=f"compgraph.{place} has no 'more'"):
            _ = ours.more

    def test_submodule_function_names_and_values(self) -> None:
        a = np.array([[2.0, 1.0], [0.5, 3.0]])
        x = cg.variable(a, "x")
        node = cg.linalg.inv(x, name="i")
        assert (node.name, node.opname) == ("i", "linalg_inv")
        assert np.array_equal(node.value, np.linalg.inv(a))
        assert [part.name for part in cg.linalg.eigh(x, name="e")] == ["e_0", "e_1"]
        assert cg.fft.rfft(x, name="f").name == "f"
        assert cg.emath.sqrt(-x, name="s").dtype == complex
        assert type(cg.linalg.inv(a)) is np.ndarray
        assert cg.linalg.inv(a, name="constant").name == "constant"
        assert cg.linalg.inv is cg.linalg.inv
        assert cg.linalg.multi_dot([a, x, a], name="m").name == "m"

    @pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
    def test_fftfreq_of_nodes(self, name: str) -> None:
        for function in (getattr(np.fft, name), getattr(cg.fft, name)):
            node = function(5, d=cg.variable(0.3))
            assert np.array_equal(node.value, getattr(np.fft, name)(5, d=0.3))
            check_grads(lambda d, f=function: f(5, d), [0.3], order=2)
            with pytest.raises(ValueError, match="n should be an integer"):
                function(cg.variable(5.0))
        assert getattr(cg.fft, name)(4, name="f").name == "f"


def test_name_option_of_composed_functions() -> None:
    x = np.array([0.5, -1.0, 2.0])
    for operand in (x, cg.variable(x)):
        node = cg.piecewise(operand, [x > 0], [np.exp], name="p")
        assert (node.name, list(node.value)) == ("p", list(np.piecewise(x, [x > 0], [np.exp])))
        bins, edges = cg.histogramdd([operand, x], 2, name="h")
        assert bins.name == "h_0"
        assert all(isinstance(part, cg.Node) for part in (bins, *edges))
    assert cg.block([[np.ones((1, 2))], [np.zeros((1, 2))]], name="b").name == "b"
    assert cg.choose([0, 1, 0], [x, cg.variable(x)], name="c").name == "c"
    assert type(cg.meshgrid(x, x)[0]) is np.ndarray


def test_cg_functions_accept_nodes_in_lists_and_callbacks() -> None:
    """NumPy does not dispatch on nodes in lists or results of callbacks; functions under ``cg.`` do."""
    table = np.array([[1.0, 2.0], [3.0, -4.0]])
    for call in (
        lambda w: cg.piecewise(table, [table > 0], [lambda v: v * w, 1.0]),
        lambda w: cg.apply_along_axis(lambda row: row * w, 1, table),
        lambda w: cg.piecewise(table, [table > 0], [lambda v: [w, w * w, 2.0], [w]]),
        lambda w: cg.histogramdd(table, 2, weights=[w, w * w])[0],
        lambda w: cg.histogramdd([[w, 1.0, 3.0], [2.0, 3.0, 4.0]], 2, density=True)[0],
        lambda w: cg.apply_over_axes(lambda a, axis: np.sum(a * w, axis), table, [0, 1]),
    ):
        assert isinstance(call(cg.variable(2.0)), cg.Node)
        check_grads(call, [1.5], order=2)


@pytest.mark.parametrize(
    ("x", "functions"),
    [
        (np.array([1.5, -2.0]), [lambda v: v, 1j]),
        (np.array([1, -2]), [lambda v: v, np.nan]),
        (np.array([1.5, -2.0]), [lambda v: [1.0, 2.0, 3.0]]),
        (np.array([1.5, -2.0]), [np.exp, np.exp, np.exp]),
    ],
)
def test_piecewise_bad_pieces_raise_as_numpy(x: Any, functions: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        np.piecewise(x, [x > 0], functions)
    with pytest.raises(expected.type):
        np.piecewise(cg.constant(x), [x > 0], functions)


def test_primitive_of_equal_name_keeps_own_rule() -> None:
    def times(factor: float, with_rule: bool = True) -> Any:
        @cg.primitive(opname="times_some_factor")
        def times(x: Any) -> Any:
            return factor * x

        if with_rule:
            rule(times, derivative=lambda x: factor + 0 * x)
        return times

    twice, thrice, four = times(2.0), times(3.0), times(4.0, with_rule=False)
    x = cg.variable(1.5)
    assert grad(twice)(1.0) == 2
    assert grad(thrice)(1.0) == 3
    assert gradient(twice(thrice(x)))[x] == 6
    with pytest.raises(TypeError, match="times_some_factor has no derivative rule"):
        grad(four)(1.0)
