"""Learning-rate schedules, gradient clipping, and `StepController`, which controls its learning rate."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.optimizers import (
    SGD,
    Adam,
    Constant,
    Cosine,
    Exponential,
    Piecewise,
    Polynomial,
    StepController,
    StepDecay,
    WarmUp,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
)
from autodiff.reverse import gradient
from tests.support.for_each import for_each, sampled

# ------------------------------------------------------------------------------------------------- schedules

SCHEDULES: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
    "constant": (Constant(0.1), lambda t: 0.1),
    "step": (StepDecay(0.1, 7, 0.5), lambda t: 0.1 * 0.5 ** np.floor(t / 7)),
    "exponential": (Exponential(0.1, 0.9), lambda t: 0.1 * np.exp(t * np.log(0.9))),
    "cosine": (Cosine(0.1, 20, 0.02), lambda t: 0.02 + 0.08 * np.cos(np.pi * np.minimum(t, 20) / 40) ** 2),
    "polynomial": (Polynomial(0.1, 20, 0.02, 3), lambda t: 0.02 + 0.08 * (1 - min(t, 20) / 20) ** 3),
    "line": (Polynomial(0.0, 20, 1.0), lambda t: min(t / 20, 1)),
    "piecewise": (Piecewise([3, 10], [1.0, 0.5, 0.1]), lambda t: 1.0 if t < 3 else 0.5 if t < 10 else 0.1),
    "joined": (Piecewise([10], [WarmUp(1.0, 10), Cosine(1.0, 10)]), lambda t: t / 10 if t < 10 else
               (1 + np.cos(np.pi * min(t - 10, 10) / 10)) / 2),
    "warm-up": (WarmUp(Exponential(1.0, 0.9), 5, start=0.2), lambda t: 0.9**t * min(0.2 + 0.8 * t / 5, 1)),
}  # fmt: skip


@for_each("name", SCHEDULES)
def test_schedules_give_stated_rates(name: str) -> None:
    schedule, expected = SCHEDULES[name]
    for again in (schedule, pickle.loads(pickle.dumps(schedule))):
        rates = [again(step) for step in range(31)]
        np.testing.assert_allclose(rates, [expected(step) for step in range(31)], rtol=1e-12, atol=1e-15)
        assert all(type(rate) is float for rate in rates)


def test_schedules_match_torch() -> None:
    torch = pytest.importorskip("torch")
    library = torch.optim.lr_scheduler
    pairs = [
        (StepDecay(0.1, 7, 0.5), lambda o: library.StepLR(o, 7, 0.5)),
        (Exponential(0.1, 0.9), lambda o: library.ExponentialLR(o, 0.9)),
        (Cosine(0.1, 30, 0.02), lambda o: library.CosineAnnealingLR(o, 30, 0.02)),
        (Polynomial(0.1, 20, power=2), lambda o: library.PolynomialLR(o, 20, 2)),
        (WarmUp(0.1, 10, start=0.25), lambda o: library.LinearLR(o, 0.25, 1.0, 10)),
    ]
    for ours, theirs in pairs:
        p, x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True), np.array([1.0])
        peer, optimizer = torch.optim.SGD([p], lr=0.1), SGD(x, ours)
        scheduler = theirs(peer)
        for step in range(30):
            g = np.cos([float(step)])
            p.grad = torch.tensor(g)
            peer.step()
            scheduler.step()
            optimizer.step(g)
            np.testing.assert_allclose(x, p.detach().numpy(), rtol=1e-12)


@for_each(
    "make",
    [
        lambda: StepDecay(1.0, 0),
        lambda: Cosine(1.0, 0),
        lambda: Polynomial(1.0, 0),
        lambda: Polynomial(1.0, 3, power=0),
        lambda: WarmUp(1.0, 0),
        lambda: WarmUp(1.0, 3, start=-1),
        lambda: Piecewise([1], [1.0]),
        lambda: Piecewise([3, 3], [1.0, 1.0, 1.0]),
        lambda: Piecewise([0], [1.0, 1.0]),
    ],
)
def test_schedules_wrong_arguments_raise(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"must|need"):
        make()


# -------------------------------------------------------------------------------------------------- clipping


def test_clipping_matches_plain_numpy() -> None:
    rng = np.random.default_rng(0)
    tree = {"w": rng.normal(size=(3, 4)), "b": [rng.normal(size=5).astype(np.float32), np.array(0.01)]}
    leaves = [tree["w"], *tree["b"]]
    norms = [np.sqrt(np.sum(np.square(a))) for a in leaves]
    whole = np.sqrt(sum(n**2 for n in norms))
    for clip, expected in (
        (clip_by_value, [np.clip(a, -0.5, 0.5) for a in leaves]),
        (clip_by_norm, [a * min(1, 0.5 / n) for a, n in zip(leaves, norms, strict=True)]),
        (clip_by_global_norm, [a * 0.5 / whole for a in leaves]),
    ):
        result = clip(tree, 0.5)
        for a, b in zip([result["w"], *result["b"]], expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        assert result["b"][0].dtype == np.float32
    assert np.array_equal(clip_by_global_norm(tree, 100.0)["w"], tree["w"])
    assert tree["w"] is leaves[0]


def test_clip_by_global_norm_matches_torch() -> None:
    torch = pytest.importorskip("torch")
    gradients = [np.arange(6.0).reshape(2, 3), np.ones(4)]
    parameters = [torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_norm_(parameters, 2.0)
    for p, g in zip(parameters, clip_by_global_norm(gradients, 2.0), strict=True):
        np.testing.assert_allclose(g, p.grad.numpy(), rtol=1e-6)  # PyTorch adds 1e-6 to the norm


def test_clipping_accepts_gradients_of_graph() -> None:
    x, y = cg.variable([3.0, 0.0], "x"), cg.variable([0.0, 4.0], "y")
    result = clip_by_global_norm(gradient((np.sum(x**2) + np.sum(y**2)) / 2), 1.0)
    np.testing.assert_allclose(result[x], [0.6, 0.0])
    np.testing.assert_allclose(result["y"], [0.0, 0.8])
    with pytest.raises(KeyError, match="depends on no variable called 'z'"):
        result["z"]
    optimizer = SGD([x, y], 1.0)
    optimizer.step(result)
    np.testing.assert_allclose(x.value, [2.4, 0.0])
    SGD([x], 1.0, clip=lambda g: clip_by_norm(g, 0.4)).step([np.array([2.0, 0.0])])
    np.testing.assert_allclose(x.value, [2.0, 0.0])


def test_clipping_overflowing_or_zero_norms() -> None:
    for size in (1e300, 1e-300):
        (result,) = clip_by_norm([np.array([3 * size, 4 * size])], size)
        np.testing.assert_allclose(result, [0.6 * size, 0.8 * size])
    assert np.array_equal(clip_by_norm([np.zeros(2)], 1.0)[0], [0, 0])
    with pytest.raises(ValueError, match="overflows float64"):
        clip_by_norm([np.full(100, 1e308)], 1.0)


def test_clipping_bad_input_raises() -> None:
    for clip in (clip_by_value, clip_by_norm, clip_by_global_norm):
        with pytest.raises(ValueError, match="NaN"):
            clip([np.array([1.0, np.nan])], 1.0)
        x = cg.variable(1.0, "x")
        with pytest.raises(TypeError, match="nodes"):
            clip(gradient(x * x, create_graph=True), 1.0)
        for limit in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="limit"):
                clip([np.ones(2)], limit)
    for clip in (clip_by_norm, clip_by_global_norm):
        with pytest.raises(ValueError, match="infinite"):
            clip([np.array([1.0, np.inf])], 1.0)
    assert np.array_equal(clip_by_value([np.array([np.inf])], 1.0), [[1.0]])
    with pytest.raises(TypeError, match="complex"):
        clip_by_value([np.array([1j])], 1.0)


# ----------------------------------------------------------------------------------- ArrayFlow's step sizes


def algorithm(x: Any, value: Any, slope: Any, steps: int, rate: float, beta: float, m: int, accelerating: bool, two: bool) -> Any:
    """Algorithm 1 line by line: positions and step sizes."""
    losses, averages, grows = [value(x)], [value(x)] * 4, True
    previous = 0 * x if two else slope(x)
    for _ in range(steps):
        losses.append(value(x))
        if len(losses) > m:
            losses.pop(0)
        averages = [*averages[1:], sum(losses) / len(losses)]
        first = -averages[0] / 3 + 3 * averages[1] / 2 - 3 * averages[2] + 11 * averages[3] / 6
        second = -averages[0] + 4 * averages[1] - 5 * averages[2] + 2 * averages[3]
        if first > 0 and second > 0:
            rate, grows = 0.99 * rate, False
        elif grows and (second if accelerating else first) < 0:
            rate = 1.02 * rate
        new = slope(x)
        direction = beta * new + (1 - beta) * previous
        previous = new if two else direction
        x = x - rate * direction
        yield x, rate


@for_each("two", [False, True])
@for_each(("accelerating", "start_rate"), [(False, 1e-3), (True, 0.03)])
def test_step_controller_follows_algorithm(accelerating: bool, start_rate: float, two: bool) -> None:
    """On a bowl that is left by too large steps: it grows, then shrinks, and never grows again."""
    a, steps = np.array([1.0, 30.0]), 262 if two else 400  # with two gradients the iterates do not return to the bowl
    start, settings = np.array([3.0, -2.0]), {"rate": start_rate, "beta": 0.3, "m": 5, "accelerating": accelerating, "two": two}
    expected = list(algorithm(start, lambda x: float(np.sum(a * x**2)), lambda x: 2 * a * x, steps, **settings))
    x = cg.variable(start)
    grow, inertia = "accelerating" if accelerating else "falling", "two gradients" if two else "average"
    optimizer = StepController(x, start_rate, beta=0.3, window=5, grow=grow, inertia=inertia)
    for reference, rate in expected:
        loss = np.sum(a * x**2)
        optimizer.step(gradient(loss), loss)
        np.testing.assert_allclose(x.value, reference, rtol=1e-8, atol=1e-8)
        assert optimizer.learning_rate == pytest.approx(rate, rel=1e-12)
    rates = optimizer.history.learning_rate
    changes = np.unique(np.round(rates[1:] / rates[:-1], 9))
    assert set(changes) <= {0.99, 1.0, 1.02}
    assert 1.02 in changes
    assert 0.99 in changes
    assert not optimizer.growing
    assert not np.any(np.diff(rates)[np.argmax(rates) :] > 0)


def fit_wave(grow: str, dtype: Any, steps: int) -> Any:
    """ArrayFlow's demo: fit the three parameters of a damped wave."""
    t = np.linspace(0, 5, 100).astype(dtype)
    target = (np.exp(-0.5 * t) * np.sin(4 * t + 3)).astype(dtype)
    a, b, c = (cg.variable(start, dtype=dtype) for start in (-0.1, 1.2, 1.2))
    optimizer, capped = StepController([a, b, c], 1e-4, grow=grow), 0.0
    for _ in range(steps):
        loss = np.sqrt(np.mean((np.exp(a * t) * np.sin(b * t + c) - target) ** 2))
        optimizer.step(gradient(loss), loss)
        if not optimizer.growing and not capped:
            capped = optimizer.learning_rate
    return optimizer, capped, [float(p) for p in (a, b, c)]


@for_each("dtype", [np.float32, np.float64])
def test_step_controller_fits_wave(dtype: Any) -> None:
    optimizer, capped, parameters = fit_wave("falling", dtype, 1500)
    np.testing.assert_allclose(parameters, [-0.5, 4.0, 3.0], atol=5e-3)
    assert 0.5 < capped < 2
    assert len(optimizer.history.loss) == 1500
    assert optimizer.history.loss[-1] < 2e-3 < optimizer.history.loss[0]
    np.testing.assert_allclose(optimizer.history.average[-1], np.mean(optimizer.history.loss[-10:]), rtol=1e-5)


def test_step_controller_reproduces_published_step_size() -> None:
    """ArrayFlow's program prints that this step is capped at 0.678 (rounding decides the last steps of growth)."""
    _, capped, parameters = fit_wave("accelerating", np.float32, 1500)
    assert 0.55 < capped < 0.85
    np.testing.assert_allclose(parameters, [-0.5, 4.0, 3.0], atol=2e-2)


@sampled
@for_each("inertia", ["average", "two gradients"])
@for_each("beta", [0.05, 0.3, 0.7])
def test_step_controller_converges_below_bound_only(inertia: str, beta: float) -> None:
    """Just below the bound in the notes a bowl's bottom is found, just above it the bowl is left."""
    curvature = 3.0
    bound = 2 * (2 - beta) / (beta * curvature) if inertia == "average" else 1 / ((1 - beta) * curvature)
    ends = []
    for rate in (0.98 * bound, 1.02 * bound):
        x = cg.variable(1.0)
        optimizer = StepController(x, rate, beta=beta, inertia=inertia, fixed=True)
        for _ in range(3000):
            loss = curvature * x**2 / 2
            if loss > 1e9:
                break
            optimizer.step(gradient(loss), loss)
        ends.append(abs(float(x)))
    assert ends[0] < 1e-3
    assert ends[1] > 1e3


def test_step_controller_inertia_equals_momentum() -> None:
    """The rate of one is the step of the other times beta, the momentum 1 - beta; only what a first gradient counts differs."""
    rng, start = np.random.default_rng(0), np.ones(4)
    controller, momentum = StepController([start.copy()], 0.5, beta=0.02, fixed=True), SGD([start.copy()], 0.01, 0.98)
    for slope in [np.zeros(4), *rng.normal(size=(50, 4))]:
        controller.step([slope], 0.0)
        momentum.step([slope])
    np.testing.assert_allclose(controller.parameters[0], momentum.parameters[0], rtol=1e-12)


@for_each("loss", np.geomspace(1e-3, 1e3, 50).astype(np.float32))
def test_step_controller_equal_losses_keep_step(loss: Any) -> None:
    """Rounding in the differences of equal averages neither grows a step nor ends its growth."""
    optimizer = StepController([0.0], 1.0)
    for _ in range(5):
        optimizer.step([0.0], loss)
    assert set(optimizer.history.learning_rate) == {1.0}
    assert optimizer.growing


def test_step_controller_rising_loss() -> None:
    optimizer = StepController([0.0], 1.0)
    for loss in (1.0, 2.0, 4.0, 8.0):
        optimizer.step([0.0], loss)
    np.testing.assert_allclose(optimizer.history.learning_rate, [1.0, 0.99, 0.99**2, 0.99**3])
    for _ in range(20):
        optimizer.step([0.0], 0.0)
    assert optimizer.learning_rate <= 0.99**3


def test_step_controller_fixed_step() -> None:
    optimizer = StepController([0.0], 0.5, beta=1.0, fixed=True)
    for loss in (3.0, 2.0, 5.0, 1.0):
        optimizer.step([1.0], loss)
    assert set(optimizer.history.learning_rate) == {0.5}
    assert optimizer.parameters == [-2.0]


def test_step_controller_requires_loss() -> None:
    x = cg.variable(1.0, "x")
    optimizer = StepController([x])
    with pytest.raises(TypeError, match=r"optimizer.step\(autodiff\.gradient\(loss\), loss\)"):
        optimizer.step([1.0])
    wrong: list[Any] = [np.nan, np.inf, np.ones(2), "a", 1j]
    for loss in wrong:
        with pytest.raises(ValueError, match="one finite real number"):
            optimizer.step([1.0], loss)
    assert float(x) == 1.0
    assert optimizer.history.loss.size == 0
    with pytest.raises(TypeError, match="takes no schedule"):
        StepController([x], Constant(0.1))  # type: ignore[arg-type]


def test_step_controller_plot() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    optimizer = StepController([0.0], 1.0)
    for loss in (3.0, 2.0, 1.0):
        optimizer.step([0.0], loss)
    for axes in (None, pyplot.subplots(1, 2)[1]):
        figure = optimizer.plot(axes)
        above, below = figure.axes
        assert [list(line.get_ydata()) for line in above.lines] == [[3, 2, 1], list(optimizer.history.average)]
        assert list(below.lines[0].get_ydata()) == list(optimizer.history.learning_rate)
        pyplot.close(figure)


def test_step_controller_plot_without_matplotlib_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="examples"):
        StepController([0.0]).plot()


def test_optimizers_import_loads_no_heavy_modules() -> None:
    """Neither Matplotlib, nor SciPy's optimizers, nor the progress bar comes with the package."""
    slow = ("matplotlib", "scipy.optimize", "tqdm")
    code = f"import sys, autodiff; autodiff.optimizers; print([m for m in {slow} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_optimizers_train_small_network() -> None:
    """All of it together, as in a program."""
    rng = np.random.default_rng(0)
    x, layers = (
        rng.uniform(-2, 2, (200, 1)),
        {"w": rng.normal(size=(1, 16)), "b": np.zeros(16), "v": rng.normal(size=(16, 1)) / 4},
    )
    p: Any = {name: cg.variable(value, name) for name, value in layers.items()}
    optimizer = Adam(p, WarmUp(Cosine(0.03, 400), 20), clip=lambda g: clip_by_global_norm(g, 1.0))
    for _ in range(400):
        loss = np.mean((np.tanh(x @ p["w"] + p["b"]) @ p["v"] - np.sin(2 * x)) ** 2)
        optimizer.step(gradient(loss))
    assert float(loss) < 0.01
