"""The demos of ArrayFlow's paper: each runs as a command, and reaches its target."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient
from tests.support.failures import Failures

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {
    "boundary_value": ["boundary-value.png"],
    "catenary": ["catenary.gif", "catenary.png"],
    "derivative": ["derivative.png"],
    "histograms": ["histograms.png"],
    "local_optimum": ["local-optimum.png"],
    "polynomial": ["polynomial.png"],
}


def demo(name: str) -> ModuleType:
    """A script, imported as Python does where it runs one: with its folder first on the path."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[0]


def run_demo(name: str, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a demo; its pictures, and no others, are in the folder."""
    assert demo(name).main([*options, "--folder", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == PICTURES[name]
    for picture in folder.iterdir():
        with Image.open(picture) as image:
            assert len(np.unique(np.asarray(image.convert("L")))) > 5  # not blank
    output = capsys.readouterr().out
    assert all(f"Saved {folder / picture}\n" in output for picture in PICTURES[name])
    return output


def numbers(pattern: str, output: str) -> list[float]:
    match = re.search(pattern, output)
    assert match, output
    return [float(group) for group in match.groups()]


# --------------------------------------------------------------------------------------------- results


@pytest.mark.slow
def test_demo_catenary_reaches_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("catenary", [], tmp_path, capsys)
    (distance,) = numbers(r"distance from the catenary: (\S+)\n", output)
    assert distance < 1e-3
    lowest = numbers(r"the rope: (-[\d.]+), .*catenary: (-[\d.]+), .*parabola: (-[\d.]+), .*arc: (-[\d.]+)\n", output)
    assert lowest[0] == pytest.approx(lowest[1], abs=1e-3)
    assert min(abs(other - lowest[1]) for other in lowest[2:]) > 0.01
    with Image.open(tmp_path / "catenary.gif") as animation:
        assert animation.n_frames > 20


@pytest.mark.parametrize(
    ("segments", "optimizer"),
    [
        (20, "sgd"),
        *(
            pytest.param(segments, optimizer, marks=pytest.mark.slow)
            for segments, optimizer in [(20, "stepcontroller"), (50, "stepcontroller"), (100, "sgd")]
        ),
    ],
)
def test_demo_rope_of_any_number_of_segments_comes_to_rest(segments: int, optimizer: str) -> None:
    catenary = demo("catenary")
    heights = catenary.hang(segments, 1500, 3, optimizer)[-1]
    x = np.linspace(0, 1, segments + 1)
    assert np.max(np.abs(heights - catenary.catenary(catenary.length_of(heights), x))) < 1e-3


def test_demo_rope_diverges_with_two_gradients(tmp_path: Path) -> None:
    """Algorithm 1 as printed: growth is seen to have gone too far when the step is three times what the rope bears."""
    with pytest.raises(SystemExit, match=r"The loss is .* after \d+ steps; the last steps were too large: 1\.\de-01"):
        demo("catenary").main(["--optimizer", "printed", "--folder", str(tmp_path)])


@pytest.mark.parametrize("length", [1.1, 1.5])
def test_demo_curves_have_requested_length(length: float) -> None:
    catenary = demo("catenary")
    x = np.linspace(0, 1, 100_001)
    circle = catenary.arc(length, 100_001)
    for at, y in [(x, catenary.catenary(length, x)), (x, catenary.parabola(length, x)), circle]:
        assert np.sum(np.hypot(np.diff(at), np.diff(y))) == pytest.approx(length, abs=1e-6)
        np.testing.assert_allclose([at[0], y[0], at[-1], y[-1]], [0, 0, 1, 0], atol=1e-12)
    steepness = np.gradient(catenary.catenary(length, x), x)  # of a catenary it grows as the length from its lowest point
    along = np.cumsum(np.hypot(1, steepness)) * x[1]
    assert np.ptp(np.diff(steepness)[1:-1] / np.diff(along)[1:-1]) < 1e-3
    center = (circle[1].min() ** 2 - 0.25) / (2 * circle[1].min())  # as far from the ends as from the lowest point
    assert np.ptp(np.hypot(circle[0] - 0.5, circle[1] - center)) < 1e-12


def test_demo_rope_energy_matches_formula() -> None:
    catenary, inner = demo("catenary"), np.random.default_rng(0).uniform(-0.2, 0, 7)
    y = np.array([0, *inner, 0])
    lengths = np.sqrt((1 / 8) ** 2 + (y[1:] - y[:-1]) ** 2)
    expected = (lengths.sum() - 1.1) ** 2 + lengths @ (y[1:] + y[:-1]) / 2
    assert catenary.energy(inner) == pytest.approx(expected, rel=1e-12)
    assert check_gradient(catenary.energy, [inner])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "seed"), [("stepcontroller", "0"), ("stepcontroller", "1"), ("printed", "0"), ("adam", "0")]
)
def test_demo_histograms_reaches_accuracy(optimizer: str, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("histograms", ["--optimizer", optimizer, "--seed", seed], tmp_path, capsys)
    (accuracy,) = numbers(r"Accuracy on 1000 fresh examples: ([\d.]+)%\n", output)
    assert accuracy > 99
    moved, first, last = numbers(r"moved by ([\d.]+): its logit was (-?[\d.]+) and is (-?[\d.]+)\.", output)
    assert first < 0 < 3 < last < 3.5
    before, after = numbers(r" ([\d.]+)% before, ([\d.]+)% after\n", output)
    assert 0 < moved < 0.3
    assert before < 50
    assert after > 95


def test_demo_histograms_match_numpy() -> None:
    demos, rng = demo("histograms"), np.random.default_rng(5)
    rows = np.stack([demos.other_numbers(rng) for _ in range(20)] + [rng.standard_normal(500) for _ in range(20)])
    expected = np.stack([np.histogram(row, 16)[0] / 500 for row in rows])
    # A number on an edge, which rounding may put on either side, is all they may differ by.
    assert np.abs(demos.histograms(rows) - expected).max() <= 1 / 500 + 1e-12
    assert np.mean(demos.histograms(rows) == expected) > 0.95
    np.testing.assert_allclose(demos.histograms(rows).sum(axis=1), 1)


def test_demo_histograms_network_matches_formula() -> None:
    demos, rng = demo("histograms"), np.random.default_rng(5)
    network = demos.make_network(rng)
    x = rng.random((4, 16))
    kernels, w1, b1, w2 = (w.value for w in network)
    pooled = [[np.correlate(row, k[0]).reshape(6, 2).max(axis=1) for k in kernels] for row in x]
    expected = (np.reshape(pooled, (4, 18)) @ w1 + b1) @ w2
    np.testing.assert_allclose(network.logits(x).value, expected, rtol=1e-12)
    classes = (expected > 0).astype(int)
    assert demos.accuracy(network, x, classes) == 1
    assert demos.accuracy(network, x, 1 - classes) == 0


def test_demo_histograms_attack_follows_gradient() -> None:
    demos, rng = demo("histograms"), np.random.default_rng(5)
    network = demos.make_network(rng)
    x = demos.make_examples(2, rng)[0][0]
    after, uphill = demos.hack(network, x)
    with cg.no_graph():
        logit = [float(network.logits(row[None])[0]) for row in (x, after)]
        differences = [network.logits((x + e)[None])[0] - network.logits((x - e)[None])[0] for e in 1e-6 * np.eye(16)]
    np.testing.assert_allclose(uphill, np.array(differences) / 2e-6, rtol=1e-6, atol=1e-6)
    assert logit[0] < demos.CERTAIN < logit[1] < demos.CERTAIN + np.linalg.norm(uphill) * demos.STEP * 3


@pytest.mark.slow
def test_demo_boundary_value_reaches_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("boundary_value", [], tmp_path, capsys)
    (single,) = numbers(r"20 points, float32, .* within (\S+) of the analytic", output)
    (double,) = numbers(r"100 points, float64, .* within (\S+) of the analytic", output)
    assert single < 0.005
    assert double < 1e-5


def test_demo_boundary_value_in_double_precision() -> None:
    assert demo("boundary_value").in_double_precision(30).error < 2e-3


@pytest.mark.slow
def test_demo_boundary_value_step_controller_fails() -> None:
    """Growth of the step stops too late; then each oscillation and rounding error counts as a rise."""
    boundary = demo("boundary_value")
    inner = cg.variable(boundary.first_guess(20), "y", dtype=np.float32)
    optimizer = boundary.make_optimizer("adapted", inner)
    for _ in range(3000):
        loss = boundary.loss_of(inner)
        optimizer.step(gradient(loss), loss)
    largest = optimizer.history.learning_rate.max()
    assert largest > 1.2 * 2 * (2 - 0.05) / (0.05 * 3.1e5)  # what the curvature bears
    assert optimizer.learning_rate < largest / 10
    assert boundary.Solution(boundary.with_ends(inner.value), "").error > 0.1


def test_demo_boundary_value_reference_solves_problem() -> None:
    boundary = demo("boundary_value")
    t = np.linspace(0, 6.1, 50)
    slope = ad.elementwise_grad(boundary.analytic)
    y, first, second = boundary.analytic(t), slope(t), ad.elementwise_grad(slope)(t)
    np.testing.assert_allclose(2 * second + first + 2 * y, 0, atol=1e-12)
    np.testing.assert_allclose(y[[0, -1]], [1, 0.1], atol=1e-12)


def test_demo_differences_are_exact_for_polynomials() -> None:
    boundary = demo("boundary_value")
    for row, offset in enumerate([0, 2, 4]):  # at the first, the middle, the last of five neighbors
        at = np.arange(5.0) - offset
        for power in range(5):
            assert boundary.SLOPES[row] @ at**power == pytest.approx(float(power == 1), abs=1e-12)
            assert boundary.BENDS[row] @ at**power == pytest.approx(2.0 * (power == 2), abs=1e-12)


@pytest.mark.parametrize("points", [2, pytest.param(99, marks=pytest.mark.exhaustive), 1000])
def test_demo_derivative_reaches_target(points: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("derivative", ["--points", str(points)], tmp_path, capsys)
    assert numbers(r"by hand: (\S+)\n", output)[0] < 1e-6


def test_demo_derivative_reference_is_right() -> None:
    derivative = demo("derivative")
    x = np.linspace(0.01, 12, 100)
    central = (derivative.function(x + 1e-6) - derivative.function(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(derivative.by_hand(x), central, atol=1e-8)


@pytest.mark.slow
def test_demo_polynomial_recovers_coefficients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("polynomial", [], tmp_path, capsys)
    assert numbers(r"Largest difference: (\S+)\n", output)[0] < 1e-3
    coefficients = numbers("Coefficients: " + ", ".join([r"(\S+)"] * 4) + "\n", output)
    np.testing.assert_allclose(coefficients, [0.5, 1.8, 2.3, -0.6], atol=1e-3)


@pytest.mark.slow
def test_demo_local_optimum_prints_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_demo("local_optimum", [], tmp_path, capsys)
    figures = r"at a = (\S+), b = (\S+), c = (\S+) with loss (\S+)\n"
    assert numbers(r"From \(0\.0, 0\.0, 0\.0\): stuck " + figures, output)[3] > 0.2
    *end, loss = numbers(r"From \(-0\.1, 1\.2, 1\.2\): solved " + figures, output)
    np.testing.assert_allclose(end, [-0.5, 4, 3], atol=1e-3)
    assert loss < 1e-3


@pytest.mark.parametrize("optimizer", ["stepcontroller", pytest.param("printed", marks=pytest.mark.exhaustive)])
def test_demo_local_optimum_solution_by_either_direction(optimizer: str) -> None:
    descent = demo("local_optimum").descend((-0.1, 1.2, 1.2), 3000, optimizer)
    assert descent.verdict == "solved"
    np.testing.assert_allclose(descent.path[-1], [-0.5, 4, 3], atol=1e-3)


def test_demo_local_optimum_stuck_point_is_an_optimum() -> None:
    local = demo("local_optimum")
    end = local.descend((0.0, 0.0, 0.0), 1000).path[-1]

    def loss(p: Any) -> Any:
        return local.loss_of(*p)

    np.testing.assert_allclose(ad.grad(loss)(end), 0, atol=1e-6)
    assert np.linalg.eigvalsh(ad.hessian(loss)(end)).min() > 0.01
    assert loss(end) > 0.2


def test_demo_local_optimum_landscape_is_least_loss() -> None:
    local = demo("local_optimum")
    a, b = np.array([-0.5, 0.2]), np.array([1.0, 4.0, 5.0])
    c = np.linspace(0, 2 * np.pi, 2000)
    losses = local.landscape(a, b)
    for i, j in np.ndindex(3, 2):
        errors = np.exp(a[j] * local.t) * np.sin(b[i] * local.t + c[:, None]) - local.TARGET
        least = np.sqrt((errors**2).mean(axis=1)).min()
        assert least - 1e-9 <= losses[i, j] <= least + 0.1


# ---------------------------------------------------------------------------------- how they are started


def test_demo_help_shows_options_and_subject(capsys: pytest.CaptureFixture[str]) -> None:
    with Failures("demos") as failures:
        for name in PICTURES:
            with failures.case(name):
                with pytest.raises(SystemExit) as stopped:
                    demo(name).main(["--help"])
                assert stopped.value.code == 0
                shown = " ".join(capsys.readouterr().out.split())
                assert "--folder" in shown
                assert "default:" in shown
                assert " ".join(str(demo(name).__doc__).split())[:40] in shown


SHORTEST = {
    "boundary_value": "--steps 2 --points 12",
    "catenary": "--steps 2 --segments 5",
    "histograms": "--steps 2",
    "local_optimum": "--steps 2",
    "polynomial": "--steps 2",
}


@pytest.mark.parametrize("name", SHORTEST)
def test_demo_shortest_run_draws(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_demo(name, SHORTEST[name].split(), tmp_path, capsys)


def test_demo_script_runs_as_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "derivative.py"), "--folder", "new/folder"]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    assert (tmp_path / "new" / "folder" / "derivative.png").read_bytes().startswith(b"\x89PNG")


WRONG = [
    ("catenary", ["--segments", "1"], "argument --segments: must be at least 2, not 1"),
    ("catenary", ["--optimizer", "adam"], "argument --optimizer: invalid choice: 'adam'"),
    ("catenary", ["--seed", "-1"], "argument --seed: must be at least 0, not -1"),
    ("polynomial", ["--steps", "0"], "argument --steps: must be at least 1, not 0"),
    ("polynomial", ["--steps", "many"], "argument --steps: invalid whole value: 'many'"),
    ("boundary_value", ["--points", "11"], "argument --points: must be at least 12, not 11"),
    ("derivative", ["--folder", "file"], "argument --folder: cannot make 'file': File exists"),
]


def test_demo_wrong_options_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with Failures("wrong options") as failures:
        for name, options, message in WRONG:
            with failures.case(f"{name} {' '.join(options)}"):
                with pytest.raises(SystemExit) as stopped:
                    demo(name).main(options)
                assert stopped.value.code == 2
                assert message in capsys.readouterr().err.splitlines()[-1]


def test_demo_without_matplotlib_exits_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "shared", raising=False)
    with pytest.raises(SystemExit, match=r'pip install "\.\[examples\]"'):
        demo("shared")
