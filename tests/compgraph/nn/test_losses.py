"""Losses that record operations of NumPy, one-hot vectors, and dropout."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

Function = Callable[..., Any]
RNG = np.random.default_rng(0)


def reference_huber(predictions: Any, targets: Any, delta: float = 1.0) -> Any:
    d = np.abs(np.asarray(predictions) - targets)
    return np.mean(np.where(d <= delta, d**2 / 2, delta * (d - delta / 2)))


LOSSES: dict[str, tuple[Function, Function]] = {
    "mse": (cg.mse, lambda a, b: np.mean((np.asarray(a) - b) ** 2)),
    "huber": (cg.huber, reference_huber),
    "huber, delta": (lambda a, b: cg.huber(a, b, 0.3), lambda a, b: reference_huber(a, b, 0.3)),
}
PAIRS: dict[str, tuple[Any, Any]] = {
    "equal shapes": (RNG.normal(size=(2, 3)), 2 * RNG.normal(size=(2, 3))),
    "broadcast targets": (RNG.normal(size=(2, 3)), RNG.normal(size=3)),
    "broadcast predictions": (RNG.normal(size=(1, 3)), RNG.normal(size=(2, 3))),
    "number": (RNG.normal(size=4), 0.5),
    "numbers": (np.float64(0.25), np.float64(2.0)),
    "Fortran order": (np.asfortranarray(RNG.normal(size=(3, 2))), RNG.normal(size=(3, 2))),
}


@for_each(("loss", "pair"), [(loss, pair) for loss in LOSSES for pair in PAIRS])
def test_losses_and_derivatives(loss: str, pair: str) -> None:
    function, reference = LOSSES[loss]
    a, b = PAIRS[pair]
    expected = reference(a, b)
    np.testing.assert_allclose(function(a, b), expected, rtol=1e-13)
    assert isinstance(function(a, b), np.floating)
    ad.check_grads(function, [a, b], order=2)
    ad.check_grads(lambda a: function(a, b), [a], order=2)
    ad.check_grads(lambda b: function(a, b), [b], order=2)


@for_each("loss", LOSSES)
def test_losses_keep_single_precision(loss: str) -> None:
    function, _ = LOSSES[loss]
    x = np.array([0.5, -2.0], np.float32)
    for targets in (x + 1, 0.0, 1, np.ones(2, np.int8)):
        assert function(x, targets).dtype == np.float32
        assert function(cg.variable(x), targets).dtype == np.float32
        assert ad.grad(lambda x, t=targets: function(x, t))(x).dtype == np.float32


@for_each("loss", LOSSES)
def test_losses_of_integers_do_not_wrap_around(loss: str) -> None:
    function, reference = LOSSES[loss]
    for dtype in (np.uint8, np.int8, np.int64, bool):
        a, b = np.array([0, 1]).astype(dtype), np.array([1, 0]).astype(dtype)
        result = function(a, b)
        assert result == reference(a.astype(float), b.astype(float))
        assert result.dtype == np.float64
        assert function(cg.constant(a), b) == result
    assert function(1, 3) == reference(1, 3)


@for_each("loss", LOSSES)
def test_losses_of_lists_names_and_nodes(loss: str) -> None:
    function, reference = LOSSES[loss]
    w = cg.variable(2.0, "w")
    node = function([w, w * 2], [1.0, 0.0])
    assert node == reference([2.0, 4.0], [1.0, 0.0])
    assert ad.gradient(node)["w"] == ad.grad(lambda w: reference(w * np.array([1.0, 2.0]), np.array([1.0, 0.0])))(2.0)
    named = cg.mse([1.0], [2.0], name="loss")
    assert (named.name, named.opname) == ("loss", "mean")
    assert cg.huber([1.0], [2.0], name="loss").name == "loss"


@for_each("loss", LOSSES)
def test_losses_under_vmap_jit_and_executors(loss: str) -> None:
    function, reference = LOSSES[loss]
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    each = [reference(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(ad.vmap(function)(a, b), each, rtol=1e-13)
    jitted = cg.jit(lambda a: function(a, b))
    for _ in range(2):
        np.testing.assert_allclose(jitted(a), reference(a, b), rtol=1e-13)
    x = cg.placeholder((4, 3), name="x")
    (output,) = cg.Executor([function(x, b)]).run({x: a})
    np.testing.assert_allclose(output, reference(a, b), rtol=1e-13)


@for_each("loss", LOSSES)
def test_losses_of_empty_arrays_are_nan_with_warning(loss: str) -> None:
    function, _ = LOSSES[loss]
    x = cg.variable(np.zeros((0, 3)), "x")
    with pytest.warns(RuntimeWarning, match="empty slice"), np.errstate(invalid="ignore"):
        result = function(x, np.zeros((0, 3)))
    assert np.isnan(result.value)
    with np.errstate(all="ignore"):
        assert ad.gradient(result)["x"].shape == (0, 3)


@for_each("loss", LOSSES)
def test_losses_of_wrong_arguments_raise(loss: str) -> None:
    function, _ = LOSSES[loss]
    name = loss.split(",")[0]
    for shapes in (((3,), (3, 1)), ((3,), (2,)), ((2, 1), (1, 3))):
        with pytest.raises(ValueError, match=f"{name}: predictions have shape .* neither broadcasts to the other"):
            function(np.zeros(shapes[0]), np.zeros(shapes[1]))
        with pytest.raises(ValueError, match="neither broadcasts"):
            ad.grad(lambda x, shape=shapes[1]: function(x, np.zeros(shape)))(np.zeros(shapes[0]))
    with pytest.raises(TypeError, match=f"{name}: numbers of dtype complex128"):
        function(np.ones(2) + 0j, np.ones(2))


def test_huber_at_corners_and_far_out() -> None:
    slope = ad.grad(lambda x: cg.huber(x, 0.0, 2.0))
    assert [float(slope(x)) for x in (-1e300, -2.0, -0.5, 0.0, 0.5, 2.0, 1e300)] == [-2, -2, -0.5, 0, 0.5, 2, 2]
    curvature = ad.grad(ad.grad(lambda x: cg.huber(x, 0.0, 2.0)))
    assert [float(curvature(x)) for x in (-3.0, -1.0, 0.0, 1.0, 3.0)] == [0, 1, 1, 1, 0]
    assert cg.huber(np.inf, 0.0) == np.inf
    for delta, error in ((0, ValueError), (-1.0, ValueError), (np.nan, ValueError), (np.inf, ValueError)):
        with pytest.raises(error, match="huber: delta must be positive and finite"):
            cg.huber([1.0], [0.0], delta)
    for delta in ("1", np.str_("1"), np.complex128(1), None, [1.0], cg.variable(1.0)):
        with pytest.raises(TypeError, match="huber: delta must be a plain number"):
            cg.huber([1.0], [0.0], delta)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ one-hot


@for_each("labels", [2, [0, 2, 1], np.array([[1, 0], [2, 2]], np.uint8), np.zeros((0, 2), int), np.int64(1)])
def test_one_hot(labels: Any) -> None:
    expected = np.eye(3)[np.asarray(labels)]
    for function in (cg.one_hot, lambda labels, classes: cg.one_hot(cg.constant(labels), classes)):
        result = function(labels, 3)
        assert result.shape == (*np.shape(labels), 3)
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)
    for dtype in (np.float32, int, bool, complex):
        result = cg.one_hot(labels, 3, dtype=dtype)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected.astype(dtype))


def test_one_hot_of_computed_labels() -> None:
    x, classes = RNG.normal(size=(4, 3)), np.eye(3)

    def f(x: Any) -> Any:
        return np.sum(cg.one_hot(np.argmax(x, axis=-1), 3) * np.sin(x))

    np.testing.assert_allclose(ad.grad(f)(x), classes[np.argmax(x, axis=1)] * np.cos(x))
    np.testing.assert_allclose(ad.vmap(f)(x), [f(row) for row in x])
    ad.check_grads(f, [x], order=2)
    jitted = cg.jit(f)
    for point in (x, -x):
        np.testing.assert_allclose(jitted(point), f(point))
    assert cg.one_hot([1], 2, name="label").name == "label"


def test_one_hot_checks_labels_in_each_run() -> None:
    labels = cg.placeholder((2,), int, name="labels")
    executor = cg.Executor([cg.one_hot(labels, 3)])
    for feed in ([0, 2], [1, 1]):
        np.testing.assert_array_equal(executor.run({labels: np.array(feed)})[0], np.eye(3)[feed])
    with pytest.raises(ValueError, match="one_hot: class indices must be from 0 to 2"):
        executor.run({labels: np.array([0, 3])})


def test_one_hot_of_wrong_arguments_raises() -> None:
    for labels in ([0, 3], [-1], cg.constant([3])):
        with pytest.raises(ValueError, match="one_hot: class indices must be from 0 to 2"):
            cg.one_hot(labels, 3)
    for wrong in ([0.0], [True], cg.variable([1.0])):
        with pytest.raises(TypeError, match="one_hot: class indices must be integers"):
            cg.one_hot(wrong, 3)
    with pytest.raises(ValueError, match="number of classes must be positive"):
        cg.one_hot([0], 0)
    with pytest.raises(TypeError, match="integer"):
        cg.one_hot([0], 2.0)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ dropout


def by_hand(x: Any, rate: float, rng: Any) -> Any:
    x = np.asarray(x)
    return np.where(rng.random(x.shape) >= rate, x / (1 - rate), 0)


INPUTS: dict[str, Any] = {
    "vector": RNG.normal(size=50),
    "matrix": RNG.normal(size=(4, 5)),
    "number": 2.0,
    "float32": np.ones((3, 4), np.float32),
    "complex": RNG.normal(size=6) + 1j,
    "integers": np.arange(6),
    "zero size": np.zeros((0, 3)),
    "list": [1.0, 2.0, 3.0],
    "infinite": np.array([np.inf, np.nan, -np.inf] * 5),
    "Fortran order": np.asfortranarray(RNG.normal(size=(3, 2))),
}


@for_each("label", INPUTS)
def test_dropout_is_inverted_and_keeps_dtype(label: str) -> None:
    x = INPUTS[label]
    for rate in (0, 0.3, 0.5, np.float32(0.75)):
        expected = by_hand(x, float(rate), np.random.default_rng(1))
        result = cg.dropout(x, rate, np.random.default_rng(1))
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype
        assert not isinstance(result, cg.Node)
        if np.asarray(x).dtype.kind == "f":
            node = cg.dropout(cg.variable(x, "x"), rate, np.random.default_rng(1), name="dropped")
            assert (node.name, node.dtype) == ("dropped", expected.dtype)
            np.testing.assert_array_equal(node.value, expected)


def test_dropout_keeps_mean() -> None:
    rng = np.random.default_rng(0)
    output = cg.dropout(np.ones(100_000), 0.2, rng)
    assert set(np.unique(output)) == {0.0, 1.25}
    assert abs(np.mean(output) - 1) < 0.01
    assert np.any(cg.dropout(np.ones(1000), 0.5, rng) != cg.dropout(np.ones(1000), 0.5, rng))


def test_dropout_derivatives() -> None:
    x = RNG.normal(size=(3, 4))

    def f(x: Any) -> Any:
        return np.sum(np.sin(cg.dropout(x * x, 0.4, np.random.default_rng(2))))

    ad.check_grads(f, [x], order=3)
    is_kept = np.random.default_rng(2).random(x.shape) >= 0.4
    np.testing.assert_allclose(ad.grad(f)(x), np.where(is_kept, np.cos(x * x / 0.6) * 2 * x / 0.6, 0))
    single = ad.grad(f)(x.astype(np.float32))
    assert single.dtype == np.float32
    assert ad.grad(lambda x: np.sum(cg.dropout(x, 0.5, np.random.default_rng(0))))(np.zeros((0, 2))).shape == (0, 2)


def test_dropout_of_infinities_has_zero_derivative() -> None:
    with np.errstate(divide="ignore"):
        gradient = ad.grad(lambda x: np.sum(cg.dropout(np.log(x), 0.5, np.random.default_rng(0))))(np.array([1.0, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(gradient, [2.0, 0.0, 0.0, 0.0])


def test_dropout_in_operator_draws_in_each_call() -> None:
    rng = np.random.default_rng(0)
    slope = ad.grad(lambda x: np.sum(cg.dropout(x, 0.5, rng)))
    first, second = slope(np.ones(100)), slope(np.ones(100))
    assert np.any(first != second)
    again = np.random.default_rng(0)
    for sample in (first, second):
        np.testing.assert_array_equal(sample, by_hand(np.ones(100), 0.5, again))


def test_dropout_in_vmap_requires_randomness_option() -> None:
    rng, x = np.random.default_rng(0), np.ones((3, 40))
    drop = lambda x: cg.dropout(x, 0.5, rng)  # noqa: E731
    with pytest.raises(TypeError, match="vmap: the function draws random numbers"):
        ad.vmap(drop)(x)
    different = ad.vmap(drop, randomness="different")(x)
    assert np.any(different[0] != different[1])
    same = ad.vmap(drop, randomness="same")(x)
    assert np.all(same == same[0])
    assert set(np.unique(different)) == set(np.unique(same)) == {0.0, 2.0}
    slopes = ad.vmap(ad.grad(lambda x: np.sum(drop(x) ** 2)), randomness="different")(x)
    assert np.any(slopes[0] != slopes[1])
    assert set(np.unique(slopes)) == {0.0, 8.0}
    shared = ad.vmap(lambda y: drop(np.ones(40)) * y, randomness="different")(np.ones(3))
    assert np.any(shared[0] != shared[1])


def test_dropout_in_jit_draws_in_each_call() -> None:
    rng = np.random.default_rng(0)
    jitted = cg.jit(lambda x: cg.dropout(x, 0.5, rng))
    results = [jitted(np.ones(100)) for _ in range(4)]
    assert all(np.any(results[0] != other) for other in results[1:])
    assert "draws random numbers" in str(jitted.report())


X = np.arange(1.0, 7).reshape(2, 3)
GRAPHS: dict[str, Callable[[Any, Any], Any]] = {
    "dropout": lambda x, rng: cg.dropout(x, 0.5, rng),
    "a result": lambda x, rng: np.sum(cg.dropout(x * 2, 0.5, rng) ** 2),
    "gradient": lambda x, rng: ad.gradient(np.sum(cg.dropout(x, 0.5, rng)), create_graph=True)[x],
    "grad": lambda x, rng: ad.grad(lambda x: np.sum(cg.dropout(x, 0.5, rng) ** 2))(x),
    "vmap": lambda x, rng: ad.vmap(lambda x: cg.dropout(x, 0.5, rng), randomness="different")(x),
    "vmap of grad": lambda x, rng: ad.vmap(ad.grad(lambda x: np.sum(cg.dropout(x, 0.5, rng))), randomness="different")(x),
}


@for_each("label", GRAPHS)
def test_dropout_mask_in_executor_warns(label: str) -> None:
    node = GRAPHS[label](cg.variable(X, "x"), np.random.default_rng(0))
    assert isinstance(node, cg.Node)
    message = "uses of them are not repeated: the mask that cg.dropout drew at .*test_losses.py"
    with pytest.warns(RuntimeWarning, match=message):
        executor = cg.Executor([node])
    np.testing.assert_array_equal(executor.run({})[0], node.value)
    with pytest.raises(cg.GuardError, match=message):
        cg.Executor([node], strict=True)
    for copied in (copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        with pytest.warns(RuntimeWarning, match=r"cg\.dropout"):
            cg.Executor([copied])


def test_dropout_absent_from_executor_does_not_warn() -> None:
    x, rng = cg.variable(X, "x"), np.random.default_rng(0)
    for _ in range(3):
        ad.gradient(np.sum(cg.dropout(x, 0.5, rng) ** 2))
    mask = cg.placeholder((2, 3), bool, name="mask")
    dropped = np.where(mask, x / 0.5, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor = cg.Executor([dropped, np.sum(x**2)], strict=True)
    for _ in range(2):
        mask_values = rng.random((2, 3)) >= 0.5
        np.testing.assert_array_equal(executor.run({mask: mask_values})[0], np.where(mask_values, 2 * X, 0))


def test_dropout_in_checkpoint_raises() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="It draws random numbers"):
        ad.grad(lambda x: ad.checkpoint(lambda x: np.sum(np.sin(cg.dropout(x, 0.5, rng))))(x))(np.linspace(0, 1, 100))


def test_dropout_of_wrong_arguments_raises() -> None:
    rng = np.random.default_rng(0)
    for rate in (-0.1, 1, 1.5, np.nan):
        with pytest.raises(ValueError, match=r"dropout: rate must be in \[0, 1\), not"):
            cg.dropout([1.0], rate, rng)
    for wrong in ("0.5", None, [0.5], cg.variable(0.5), np.array([0.5])):
        with pytest.raises(TypeError, match="dropout: rate must be a plain number"):
            cg.dropout([1.0], wrong, rng)  # type: ignore[arg-type]
    for generator in (0, None, np.random, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"dropout: rng must be a numpy\.random\.Generator"):
            cg.dropout([1.0], 0.5, generator)  # type: ignore[arg-type]
