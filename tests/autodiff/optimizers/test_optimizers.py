"""Optimizers: update rules against plain NumPy and PyTorch, accepted arguments, errors, and resuming."""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import autodiff
import compgraph as cg
from autodiff import checkpoint, grad, optimizers
from autodiff.optimizers import SGD, AdaGrad, Adam, AdamW, Cosine, RMSProp, StepController, WarmUp, base, clip_by_global_norm
from autodiff.reverse import gradient
from compgraph.guards import collecting_leaks
from tests.support.for_each import for_each, sampled

Make = Callable[[Any], Any]


def slopes(steps: int = 60) -> list[Any]:
    """Gradients of two parameters, step by step."""
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(3, 2)), rng.normal(size=4) * 10.0 ** rng.integers(-3, 3)) for _ in range(steps)]


def starts() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=(3, 2)), rng.normal(size=4)]


# -------------------------------------------------------------------------------------- rules in plain NumPy


def by_hand_sgd(p: Any, slopes: list[Any], momentum: float = 0, nesterov: bool = False, decay: float = 0, damp: float = 0) -> Any:
    v = None
    for g in slopes:
        g = g + decay * p
        v = g if v is None else momentum * v + (1 - damp) * g
        p = p - 0.05 * (g + momentum * v if nesterov else v)
    return p


def by_hand_adagrad(p: Any, slopes: list[Any], initial: float = 0, decay: float = 0) -> Any:
    total = initial
    for g in slopes:
        g = g + decay * p
        total = total + g**2
        p = p - 0.05 * g / (np.sqrt(total) + 1e-10)
    return p


def by_hand_rmsprop(p: Any, slopes: list[Any], momentum: float = 0, decay: float = 0) -> Any:
    square, v = 0.0, 0.0
    for g in slopes:
        g = g + decay * p
        square = 0.9 * square + 0.1 * g**2
        v = momentum * v + g / (np.sqrt(square) + 1e-8)
        p = p - 0.05 * v
    return p


def by_hand_adam(p: Any, slopes: list[Any], amsgrad: bool = False, decay: float = 0, decoupled: float = 0) -> Any:
    m, v, most = 0.0, 0.0, 0.0
    for t, g in enumerate(slopes, 1):
        g = g + decay * p
        p = p * (1 - 0.05 * decoupled)
        m = 0.8 * m + 0.2 * g
        v = 0.95 * v + 0.05 * g**2
        most = np.maximum(most, v) if amsgrad else v
        p = p - 0.05 * (m / (1 - 0.8**t)) / (np.sqrt(most / (1 - 0.95**t)) + 1e-8)
    return p


BETAS = (0.8, 0.95)
RULES: dict[str, tuple[Make, Callable[..., Any], str, dict[str, Any]]] = {
    "sgd": (partial(SGD, learning_rate=0.05), by_hand_sgd, "SGD", {}),
    "sgd momentum": (
        partial(SGD, learning_rate=0.05, momentum=0.9),
        partial(by_hand_sgd, momentum=0.9),
        "SGD",
        {"momentum": 0.9},
    ),
    "sgd nesterov": (
        partial(SGD, learning_rate=0.05, momentum=0.9, nesterov=True),
        partial(by_hand_sgd, momentum=0.9, nesterov=True),
        "SGD",
        {"momentum": 0.9, "nesterov": True},
    ),
    "sgd all": (
        partial(SGD, learning_rate=0.05, momentum=0.7, dampening=0.3, weight_decay=0.1),
        partial(by_hand_sgd, momentum=0.7, damp=0.3, decay=0.1),
        "SGD",
        {"momentum": 0.7, "dampening": 0.3, "weight_decay": 0.1},
    ),
    "sgd nesterov decay": (
        partial(SGD, learning_rate=0.05, momentum=0.7, nesterov=True, weight_decay=0.1),
        partial(by_hand_sgd, momentum=0.7, nesterov=True, decay=0.1),
        "SGD",
        {"momentum": 0.7, "nesterov": True, "weight_decay": 0.1},
    ),
    "adagrad": (partial(AdaGrad, learning_rate=0.05), by_hand_adagrad, "Adagrad", {}),
    "adagrad all": (
        partial(AdaGrad, learning_rate=0.05, initial=0.5, weight_decay=0.1),
        partial(by_hand_adagrad, initial=0.5, decay=0.1),
        "Adagrad",
        {"initial_accumulator_value": 0.5, "weight_decay": 0.1},
    ),
    "rmsprop": (partial(RMSProp, learning_rate=0.05, decay=0.9), by_hand_rmsprop, "RMSprop", {"alpha": 0.9}),
    "rmsprop all": (
        partial(RMSProp, learning_rate=0.05, decay=0.9, momentum=0.6, weight_decay=0.1),
        partial(by_hand_rmsprop, momentum=0.6, decay=0.1),
        "RMSprop",
        {"alpha": 0.9, "momentum": 0.6, "weight_decay": 0.1},
    ),
    "adam": (partial(Adam, learning_rate=0.05, betas=BETAS), by_hand_adam, "Adam", {"betas": BETAS}),
    "adam decay": (
        partial(Adam, learning_rate=0.05, betas=BETAS, weight_decay=0.1),
        partial(by_hand_adam, decay=0.1),
        "Adam",
        {"betas": BETAS, "weight_decay": 0.1},
    ),
    "amsgrad": (
        partial(Adam, learning_rate=0.05, betas=BETAS, amsgrad=True),
        partial(by_hand_adam, amsgrad=True),
        "Adam",
        {"betas": BETAS, "amsgrad": True},
    ),
    "adamw": (
        partial(AdamW, learning_rate=0.05, betas=BETAS, weight_decay=0.3),
        partial(by_hand_adam, decoupled=0.3),
        "AdamW",
        {"betas": BETAS, "weight_decay": 0.3},
    ),
    "adamw amsgrad": (
        partial(AdamW, learning_rate=0.05, betas=BETAS, weight_decay=0.3, amsgrad=True),
        partial(by_hand_adam, decoupled=0.3, amsgrad=True),
        "AdamW",
        {"betas": BETAS, "weight_decay": 0.3, "amsgrad": True},
    ),
}
EVERY: dict[str, Make] = {name: case[0] for name, case in RULES.items()} | {
    "controller": partial(StepController, learning_rate=0.01, window=4),
    "controller of two gradients": partial(StepController, learning_rate=0.01, window=4, inertia="two gradients"),
    "controller accelerating": partial(StepController, learning_rate=0.01, window=4, grow="accelerating"),
    "adam cosine": partial(Adam, learning_rate=WarmUp(Cosine(0.1, 90), 10)),
    "clipped": partial(SGD, learning_rate=0.05, momentum=0.9, clip=partial(clip_by_global_norm, limit=0.5)),
}


def take_step(optimizer: Any, gradients: Any, loss: float = 1.0) -> None:
    """One step of any optimizer."""
    if isinstance(optimizer, StepController):
        optimizer.step(gradients, loss)
    else:
        optimizer.step(gradients)


@for_each("name", RULES)
def test_optimizers_match_plain_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also cut into blocks, in other layouts, and of numbers."""
    make, by_hand, *_ = RULES[name]
    for block in (2, 1000):
        monkeypatch.setattr(base, "BLOCK", block)
        w, b = starts()
        fortran, strided, number = np.asfortranarray(w), np.repeat(b, 2)[::2], float(b[0])
        optimizer = make([w.copy(), b.copy(), fortran, strided, number])
        for g, h in slopes():
            optimizer.step([g, h, g, h, h[0]])
        expected_w, expected_b = (by_hand(start, [s[i] for s in slopes()]) for i, start in enumerate(starts()))
        expected = [expected_w, expected_b, expected_w, expected_b, expected_b[0]]
        for actual, reference in zip(optimizer.parameters, expected, strict=True):
            np.testing.assert_allclose(actual, reference, rtol=1e-12, atol=1e-12)
        assert optimizer.parameters[2] is fortran
        assert type(optimizer.parameters[4]) is float


@for_each("name", RULES)
def test_optimizers_match_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, _, theirs, settings = RULES[name]
    ours = [cg.variable(start) for start in starts()]
    peers = [torch.tensor(start, requires_grad=True) for start in starts()]
    optimizer, peer = make(ours), getattr(torch.optim, theirs)(peers, lr=0.05, **settings)
    for gradients in slopes(300):
        optimizer.step(list(gradients))
        for p, g in zip(peers, gradients, strict=True):
            p.grad = torch.tensor(g)
        peer.step()
        for x, p in zip(ours, peers, strict=True):
            np.testing.assert_allclose(x.value, p.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_optimizers_have_defaults_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in ((Adam, "Adam"), (AdamW, "AdamW"), (AdaGrad, "Adagrad"), (RMSProp, "RMSprop")):
        x, p = cg.variable(starts()[0]), torch.tensor(starts()[0], requires_grad=True)
        optimizer, peer = ours(x), getattr(torch.optim, theirs)([p])
        for g, _ in slopes():
            optimizer.step(g)
            p.grad = torch.tensor(g)
            peer.step()
        np.testing.assert_allclose(x.value, p.detach().numpy(), rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------- accepted parameters


@dataclass
class Layer:
    w: Any
    b: Any


def test_optimizers_accept_any_pytree_and_gradients() -> None:
    w, b = starts()
    variables = {"layer": Layer(cg.variable(w, "w"), cg.variable(b, "b")), "rest": (cg.variable(0.5, "s"), None)}
    arrays = {"layer": Layer(w.copy(), b.copy()), "rest": (np.array(0.5), None)}
    numbers = {"layer": Layer(w.copy(), b.copy()), "rest": (0.5, None)}

    def loss(p: Any) -> Any:
        return np.sum(np.sin(p["layer"].w)) * np.sum(p["layer"].b ** 2) * p["rest"][0]

    optimized = [Adam(tree, 0.1) for tree in (variables, variables, arrays, numbers)][1:]
    for _ in range(5):
        optimized[0].step(gradient(loss(variables)))
        optimized[1].step(grad(loss)(arrays))
        optimized[2].step(grad(loss)(optimized[2].parameters))
    assert numbers["rest"] == (0.5, None)
    for tree in (arrays, optimized[2].parameters):
        assert np.array_equal(tree["layer"].w, variables["layer"].w.value)
        assert np.array_equal(tree["layer"].b, variables["layer"].b.value)
        assert tree["rest"][0] == variables["rest"][0].value
    assert optimized[0].parameters["layer"].w is variables["layer"].w


def test_step_invalidates_older_graphs() -> None:
    x = cg.variable([1.0, 2.0], "x")
    buffer, loss = x.value, np.sum(x * x)
    SGD(x, 0.5).step(gradient(loss))
    assert np.array_equal(buffer, [0, 0]), "the variable has another buffer"
    with pytest.raises(ValueError, match="updated in place"):
        gradient(loss)


def test_step_with_loss_of_further_variables() -> None:
    x, y = cg.variable(1.0), cg.variable(2.0)
    SGD([x], 0.5).step(gradient(x * y))
    assert (float(x), float(y)) == (0.0, 2.0)


def test_step_accepts_nodes_as_gradients() -> None:
    x = cg.variable(3.0)
    SGD([x], 0.5).step(gradient(x * x, create_graph=True))
    assert float(x) == 0.0


def test_step_accepts_another_parameter_as_gradient() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    SGD([x, y], 1.0).step([y, x])
    assert np.array_equal(x, [-2, -3])
    assert np.array_equal(y, [2, 3])


@for_each("name", EVERY)
@for_each("dtype", [np.float32, np.longdouble])
def test_step_keeps_dtypes(name: str, dtype: Any) -> None:
    x, array, number = cg.variable(np.ones(3), dtype=dtype), np.ones(3, dtype), dtype(1)
    optimizer = EVERY[name]([x, array, number])
    for _ in range(4):
        take_step(optimizer, [np.ones(3), np.ones(3, dtype), 1])
    assert x.dtype == array.dtype == dtype
    assert type(optimizer.parameters[2]) is dtype
    assert np.array_equal(x.value, array)
    assert all(np.asarray(v).dtype == dtype for k, v in optimizer.state_dict().items() if k[-2:] in (".0", ".1", ".2"))
    assert float(optimizer.parameters[2]) == float(array[0]) != 1


@for_each("name", EVERY)
def test_step_empty_and_half_precision_parameters(name: str) -> None:
    take_step(EVERY[name]([np.zeros((0, 3)), np.ones(1)]), [np.zeros((0, 3)), np.ones(1)])
    if "ada" in name or "rms" in name or "ams" in name:
        with pytest.raises(ValueError, match="zero in float16"):
            EVERY[name](np.ones(2, np.float16))


def test_schedule_receives_step_count() -> None:
    steps: list[int] = []
    optimizer = SGD({"a": 0.0}, lambda step: steps.append(step) or 1.0 + step)  # type: ignore[func-returns-value]
    for _ in range(3):
        optimizer.step({"a": 1.0})
    assert steps == [0, 1, 2]
    assert optimizer.parameters == {"a": -6.0}
    optimizer.learning_rate = 0.5
    optimizer.step({"a": 1.0})
    assert optimizer.parameters == {"a": -6.5}


# --------------------------------------------------------------------------------------------------- errors


@for_each(
    ("parameters", "error", "message"),
    [
        ([], TypeError, "contains none"),
        (np.arange(3), TypeError, "int64"),
        ([1j], TypeError, "complex"),
        (np.ones(2, complex), TypeError, "real and imaginary"),
        ({"a": "x"}, TypeError, r"\['a'\] is a str"),
        ([True], TypeError, "bool"),
        ([np.ma.ones(3)], TypeError, "MaskedArray"),
        ([cg.variable(1.0) * 2], TypeError, "not a variable"),
        ([cg.constant(1.0)], TypeError, "not a variable"),
        (np.broadcast_to(1.0, 3), ValueError, "read-only"),
    ],
)
def test_optimizer_wrong_parameters_raise(parameters: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SGD(parameters, 0.1)


def test_optimizer_shared_memory_raises() -> None:
    x, a = cg.variable(np.ones(4), "x"), np.ones(6)
    for pair in ([x, x], [x, x.value], [a, a[::2]], [a[:4], np.ones(2), a[3:]]):
        with pytest.raises(ValueError, match="share memory"):
            Adam(pair)
    Adam([a[::2], a[1::2]])


def require_rejection(gradients: dict[str, Any]) -> Any:
    return {"w": np.ones(2), "x": np.ones(2)} | gradients


@for_each("name", EVERY)
@for_each(
    ("gradients", "error", "message"),
    [
        ({"w": np.ones(2)}, ValueError, "nest as"),
        ([np.ones(2), np.ones(2)], ValueError, "nest as"),
        (require_rejection({"x": None}), ValueError, "nest as"),
        (require_rejection({"y": np.ones(2)}), ValueError, "nest as"),
        (require_rejection({"x": np.ones(1)}), ValueError, r"'x' has shape \(2,\), its gradient \(1,\)"),
        (require_rejection({"x": 1.0}), ValueError, "shape"),
        (require_rejection({"x": np.array([1.0, np.nan])}), ValueError, "gradient of parameter 'x' contains NaN"),
        (require_rejection({"x": np.array([1.0, -np.inf])}), ValueError, "NaN or infinity"),
        (require_rejection({"x": np.ones(2, complex)}), TypeError, "complex128"),
        (require_rejection({"x": np.array(["a", "b"])}), TypeError, "<U1"),
        (require_rejection({"x": np.ma.array([1.0, 2.0], mask=[True, False])}), TypeError, "masked"),
    ],
)
def test_step_wrong_gradients_change_nothing(name: str, gradients: Any, error: type[Exception], message: str) -> None:
    optimizer = EVERY[name]({"w": np.ones(2), "x": cg.variable(np.ones(2), "x")})
    take_step(optimizer, require_rejection({}))
    before = optimizer.state_dict()
    with pytest.raises(error, match=message):
        take_step(optimizer, gradients, 2.0)
    assert_same(optimizer.state_dict(), before)


def test_step_mismatched_graph_gradients_raise() -> None:
    x, y, array = cg.variable(1.0, "x"), cg.variable(1.0, "y"), np.ones(2)
    gradients = gradient(x * 2)
    with pytest.raises(ValueError, match="no gradient for parameter 'y'"):
        SGD([x, y], 0.1).step(gradients)
    with pytest.raises(TypeError, match="plain array"):
        SGD([x, array], 0.1).step(gradients)
    assert (float(x), float(y)) == (1.0, 1.0)
    SGD([x, y], 0.1).step(gradient(x * 2, [x, y], unused="zero"))
    assert (float(x), float(y)) == (0.8, 1.0)


def test_step_large_gradients_stay_finite() -> None:
    optimizer = SGD([np.zeros(3)], 1e-300)
    optimizer.step([np.full(3, 1e300)])
    assert np.array_equal(optimizer.parameters[0], [-1, -1, -1])
    with pytest.raises(ValueError, match="infinity"):  # in float32 it is one
        SGD([np.zeros(3, np.float32)], 1.0).step([np.full(3, 1e300)])


@for_each("make", [AdaGrad, RMSProp, Adam, AdamW, partial(Adam, amsgrad=True)])
def test_step_overflowing_squares_raise(make: Make) -> None:
    """They would make every later step zero."""
    for dtype, large, fine in ((np.float32, 1e20, 1e18), (np.float64, 1e160, 1e153)):
        optimizer = make([np.ones(3, dtype)])
        before = optimizer.state_dict()
        with pytest.raises(ValueError, match="Clip it"):
            optimizer.step([np.array([0, large, 0])])
        assert_same(optimizer.state_dict(), before)
        optimizer.step([np.full(3, fine)])
        assert np.all(np.isfinite(optimizer.parameters[0]))
        make([np.ones(3, dtype)], clip=partial(clip_by_global_norm, limit=1.0)).step([np.array([0, large, 0])])


def test_step_gradients_with_tangents_raise() -> None:
    """The parameters are plain numbers: a tangent is refused, and leaving the graph is noticed."""
    array = np.ones(1)
    optimizer = SGD([array], 1.0)

    def f(t: Any) -> Any:
        optimizer.step([np.reshape(2 * t, 1)])
        return array[0] * t

    with pytest.raises(TypeError, match="carries tangents"):
        autodiff.jvp(f, (1.0,), (1.0,))
    assert array[0] == 1
    with collecting_leaks() as leaks:
        optimizer.step([np.reshape(cg.variable(2.0), 1)])
    assert [leak.description for leak in leaks] == ["step()"]
    assert "test_optimizers.py" in str(leaks[0])


def test_step_updates_variables_and_arrays() -> None:
    w, b = cg.variable(np.ones(2), "w"), np.ones(2)
    optimizer = SGD([w, b], 0.5)
    for _ in range(2):
        optimizer.step(grad(lambda p: np.sum(p[0] ** 2 * p[1] + p[1]))([w, b]))
    assert np.array_equal(w.value, [0, 0])
    assert np.array_equal(b, [-0.5, -0.5])


def test_step_read_only_parameter_changes_nothing() -> None:
    a, b = np.ones(2), np.ones(2)
    optimizer = SGD([a, b], 0.1)
    b.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        optimizer.step([a, a])
    assert np.array_equal(a, [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        optimizer.load_state_dict(SGD([a * 2, b * 2], 0.1).state_dict())
    assert np.array_equal(a, [1, 1])


def test_step_within_checkpoint_raises() -> None:
    a, x = np.ones(1), cg.variable([1.0], "x")
    optimizer = SGD([a, x], 0.1)

    def f(y: Any) -> Any:
        optimizer.step([np.ones(1), np.ones(1)])
        return np.sum(y)

    with pytest.raises(TypeError, match="checkpoint"):
        checkpoint(f)(cg.variable([1.0]))
    assert a[0] == x.value[0] == 1


@for_each(
    ("make", "message"),
    [
        (partial(SGD, learning_rate=-1), "rate must be finite"),
        (partial(SGD, learning_rate=np.nan), "rate must be finite"),
        (partial(SGD, learning_rate=0.1, momentum=-1), "momentum"),
        (partial(SGD, learning_rate=0.1, nesterov=True), "nesterov=True needs momentum"),
        (partial(SGD, learning_rate=0.1, momentum=0.9, nesterov=True, dampening=0.1), "no dampening"),
        (partial(SGD, learning_rate=0.1, dampening=0.1), "dampening needs momentum"),
        (partial(Adam, betas=(1.0, 0.9)), r"betas\[0\]"),
        (partial(Adam, epsilon=-1), "epsilon"),
        (partial(AdaGrad, initial=-1), "initial"),
        (partial(RMSProp, decay=1.5), "decay"),
        (partial(StepController, beta=0), "beta"),
        (partial(StepController, window=0), "window"),
        (partial(StepController, grow="always"), "grow is"),
        (partial(StepController, inertia="none"), "inertia is"),
    ],
)
def test_optimizer_wrong_settings_raise(make: Make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make([np.ones(2)])


def test_step_wrong_schedule_or_clip_changes_nothing() -> None:
    for settings in (
        {"learning_rate": lambda step: np.nan},
        {"learning_rate": 0.1, "clip": lambda g: g[:1]},
        {"learning_rate": 0.1, "clip": lambda g: [0, 0]},
    ):
        optimizer = SGD([np.ones(2), np.ones(2)], **settings)
        with pytest.raises(ValueError, match=r"rate|gradients for 2|shape"):
            optimizer.step([np.ones(2), np.ones(2)])
        assert np.array_equal(optimizer.parameters, np.ones((2, 2)))
    with pytest.raises(TypeError, match="clip is a function"):
        SGD([1.0], 0.1, clip=1.0)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- going on later


def assert_same(actual: Any, expected: Any) -> None:
    assert set(actual) == set(expected)
    for name, value in expected.items():
        assert np.asarray(actual[name]).dtype == np.asarray(value).dtype, name
        assert np.asarray(actual[name]).tobytes() == np.asarray(value).tobytes(), name


def fresh(make: Make, dtype: Any) -> tuple[Any, Any]:
    w, b = starts()
    tree = {"w": cg.variable(w, dtype=dtype), "b": b.astype(dtype), "s": 0.5}
    return make(tree), tree


def train(optimizer: Any, first: int, last: int) -> None:
    for g, h in slopes(100)[first:last]:
        take_step(optimizer, {"w": g, "b": h, "s": h[0]}, float(np.sum(g * g)))


def through_a_file(state: Any) -> Any:
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    return np.load(file, allow_pickle=False)


def through_json(state: Any) -> Any:
    numbers = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    assert all(type(value) in (int, float) for value in numbers.values())
    return json.loads(json.dumps(numbers)) | {name: value for name, value in state.items() if name not in numbers}


def through_pickle(state: Any) -> Any:
    return pickle.loads(pickle.dumps(state))


@sampled
@for_each("name", EVERY)
@for_each("through", [through_a_file, through_json, through_pickle])
@for_each("dtype", [np.float32, np.float64])
def test_optimizer_resumes_bit_for_bit(name: str, through: Any, dtype: Any) -> None:
    """A hundred steps have the bits of fifty, saved, loaded elsewhere, and fifty more."""
    whole, _ = fresh(EVERY[name], dtype)
    train(whole, 0, 100)
    first, _ = fresh(EVERY[name], dtype)
    train(first, 0, 50)
    second, tree = fresh(EVERY[name], dtype)
    train(second, 0, 3)  # its previous state does not matter
    second.load_state_dict(through(first.state_dict()))
    train(second, 50, 100)
    assert_same(second.state_dict(), whole.state_dict())
    assert second.steps == 100
    assert np.array_equal(tree["w"].value, whole.parameters["w"].value)
    assert second.parameters["s"] == whole.parameters["s"]


@for_each("name", EVERY)
def test_optimizer_copies_are_independent(name: str) -> None:
    whole, _ = fresh(EVERY[name], np.float64)
    train(whole, 0, 10)
    copies = [copy.deepcopy(whole)]
    copies.append(pickle.loads(pickle.dumps(whole)))
    before = whole.state_dict()
    for other in copies:
        train(other, 10, 20)
        assert not np.array_equal(other.parameters["w"].value, before["parameter.0"])
        assert not np.array_equal(other.parameters["b"], before["parameter.1"])
        assert_same(whole.state_dict(), before)
    train(whole, 10, 20)
    for other in copies:
        assert_same(other.state_dict(), whole.state_dict())


@for_each("again", [copy.deepcopy, through_pickle])
def test_optimizer_copies_update_their_own_variables(again: Callable[[Any], Any]) -> None:
    """Whatever the layout of the memory."""
    column, fortran = cg.variable(np.ones((4, 4))[:, 1], copy=False), cg.variable(np.asfortranarray(np.ones((2, 3))))
    optimizer = again(SGD([column, fortran], 1.0))
    optimizer.step([np.ones(4), np.ones((2, 3))])
    assert not any(np.any(x.value) for x in optimizer.parameters)
    assert np.all(column.value == 1)
    assert len(pickle.dumps(Adam([np.ones(1000)]))) < 4 * 8000  # the value and two averages, no scratch


def test_state_dict_is_a_copy() -> None:
    optimizer, tree = fresh(partial(SGD, learning_rate=0.1, momentum=0.9), np.float64)
    train(optimizer, 0, 2)
    state = optimizer.state_dict()
    snapshot = copy.deepcopy(state)
    train(optimizer, 2, 4)
    assert_same(state, snapshot)
    optimizer.load_state_dict(state)
    tree["b"] += 1
    assert_same(state, snapshot)


@for_each("name", EVERY)
def test_load_state_wrong_states_change_nothing(name: str) -> None:
    optimizer, _ = fresh(EVERY[name], np.float64)
    train(optimizer, 0, 3)
    before = optimizer.state_dict()
    spoilt: list[dict[str, Any]] = [
        {k: v for k, v in before.items() if k != "parameter.1"},
        before | {"more": 1},
        before | {"parameter.1": np.zeros(3)},
        before | {"parameter.2": np.zeros((), np.float32)},
        before | {"steps": -1},
        before | {"steps": 1.5},
    ]
    if "learning_rate" in before:
        spoilt.append(before | {"learning_rate": np.nan})
    if "history" in before:
        spoilt += [before | {"losses": np.zeros(3)}, before | {"history": np.zeros(3)}]
    for state in spoilt:
        state = {k: v + 1 if k == "parameter.0" else v for k, v in state.items()}
        with pytest.raises(ValueError, match=r"state|rate"):
            optimizer.load_state_dict(state)
        assert_same(optimizer.state_dict(), before)


def test_load_state_of_another_optimizer_raises() -> None:
    state = fresh(EVERY["adam"], np.float64)[0].state_dict()
    for name in ("sgd", "rmsprop", "amsgrad", "adam cosine", "controller"):
        with pytest.raises(ValueError, match="a different optimizer"):
            fresh(EVERY[name], np.float64)[0].load_state_dict(state)


def test_optimizers_are_attributes_of_package() -> None:
    assert autodiff.optimizers is optimizers
    for name in optimizers.__all__:
        assert name == "METHODS" or getattr(optimizers, name).__doc__
    assert repr(Adam([1.0])) == "Adam(1 parameters, learning_rate=0.001, steps=0)"
