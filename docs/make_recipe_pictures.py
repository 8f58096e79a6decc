"""Write the pictures of ``docs/recipes``. Run ``python docs/make_recipe_pictures.py`` after a change of a recipe.

Each picture shows the variables of its page: the page's code runs first. Requires Matplotlib (extra ``examples``).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import compgraph as cg

DOCS = Path(__file__).resolve().parent
BLUE, RED, GREEN, GRAY = "#2b6cb0", "#c53030", "#2f855a", "#718096"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "recipes",  # equal figures give equal files
    "legend.frameon": False,
}


def run_page(name: str) -> Any:
    """Run the Python code of a recipe, and return its variables."""
    text = (DOCS / "recipes" / f"{name}.md").read_text()
    names: dict[str, Any] = {"__name__": "page"}
    cg.reset()
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        examples = doctest.DocTestParser().get_examples(block) if ">>>" in block else []
        source = "".join(example.source for example in examples) or textwrap.dedent(block)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, f"{name}.md", "exec"), names)
    return SimpleNamespace(**names)


def error_propagation(page: Any, figure: Figure) -> None:
    """A fit, and the standard error of its curve."""
    left, right = figure.subplots(1, 2)
    curve = page.model(page.grid, page.fit.x)
    left.fill_between(page.grid, curve - 3 * page.band, curve + 3 * page.band, color=BLUE, alpha=0.25, lw=0, label="± 3 errors")
    left.plot(page.grid, curve, color=BLUE, lw=1, label="fit")
    left.plot(page.x, page.y, ".", color=RED, label="measurements")
    left.set(xlabel="pressure x", ylabel="volume y")
    left.legend(loc="lower right")
    right.plot(page.grid, page.band, color=BLUE)
    right.axvspan(page.x[0], page.x[-1], color=RED, alpha=0.15, lw=0, label="measured range")
    right.set(xlabel="pressure x", ylabel="standard error of the curve")
    right.legend(loc="lower right")


def least_squares(page: Any, figure: Figure) -> None:
    """Circles on the way to the fitted one."""
    axes = figure.subplots()
    angle = np.linspace(0.0, 2 * np.pi, 100)
    for k, color in zip((0, 1, 2, 25), ("#cbd5e0", "#a0aec0", GRAY, BLUE), strict=True):
        u, v, radius = page.iterates[k]
        axes.plot(u + radius * np.cos(angle), v + radius * np.sin(angle), color=color, label=f"iteration {k}")
    axes.plot(page.x, page.y, "o", color=RED, label="points")
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def sampling(page: Any, figure: Figure) -> None:
    """The density, samples, and Laplace's approximation."""
    axes = figure.subplots()
    first, second = page.axes
    density = page.weights.reshape(second.size, first.size)
    levels = density.max() * np.exp(-0.5 * np.array([3.0, 2.0, 1.0]) ** 2)
    axes.plot(*page.samples[::3].T, ".", ms=2, color=RED, alpha=0.5, label="samples")
    axes.contour(first, second, density, levels, colors=GRAY, linewidths=1)
    angle = np.linspace(0.0, 2 * np.pi, 100)
    for radius in (1, 2, 3):
        ellipse = page.mode[:, None] + radius * page.factor @ np.stack([np.cos(angle), np.sin(angle)])
        axes.plot(*ellipse, color=BLUE, lw=1, label="Laplace" if radius == 1 else None)
    axes.plot([], [], color=GRAY, lw=1, label="density")
    axes.set(xlabel="intercept", ylabel="slope", xlim=(-3, 6), ylim=(-10, 40))
    axes.legend(loc="upper left")


def lagrangian(page: Any, figure: Figure) -> None:
    """The path of the second mass, and the pendulum at its end."""
    axes = figure.subplots()
    times = np.linspace(0.0, 5.0, 600)
    a, b = page.motion.sol(times)[:2]
    x, y = np.sin(a), -np.cos(a)
    u, v = x + np.sin(b), y - np.cos(b)
    axes.plot(u, v, color=BLUE, lw=1, label="second mass")
    axes.plot(x, y, color=GRAY, lw=1, label="first mass")
    axes.plot([0, x[0], u[0]], [0, y[0], v[0]], "o-", color=GREEN, ms=4, label="start")
    axes.plot([0, x[-1], u[-1]], [0, y[-1], v[-1]], "o-", color=RED, ms=4, label="after 5 s")
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def gaussian_process(page: Any, figure: Figure) -> None:
    """The posterior and the samples."""
    axes = figure.subplots()
    low, high = page.mean - 2 * page.deviation, page.mean + 2 * page.deviation
    axes.fill_between(page.new, low, high, color=BLUE, alpha=0.2, lw=0, label="± 2 standard deviations")
    axes.plot(page.new, page.mean, color=BLUE, label="mean")
    axes.plot(page.new, np.sin(page.new) + 0.5 * np.sin(2.5 * page.new), "--", color=GRAY, lw=1, label="truth")
    axes.plot(page.x, page.y, ".", color=RED, label="samples")
    axes.set(xlabel="x", ylabel="y", ylim=(-2.8, 3.6))
    axes.legend(ncols=4, loc="upper center")


def kalman_filter(page: Any, figure: Figure) -> None:
    """The measurements and the filtered level."""
    axes = figure.subplots()
    level, variance, *_ = page.kalman(page.fit.x)
    years = np.arange(1871, 1972)
    deviation = np.sqrt(variance[1:])
    axes.fill_between(years[1:], level[1:] - deviation, level[1:] + deviation, color=BLUE, alpha=0.2, lw=0)
    axes.plot(years[1:], level[1:], color=BLUE, label="predicted level ± 1 standard deviation")
    axes.plot(years[:-1], page.nile, ".", color=RED, label="measurements")
    axes.set(xlabel="year", ylabel="volume in 10⁸ m³", ylim=(400, 1500))
    axes.legend(ncols=2, loc="upper center")


def heat_source(page: Any, figure: Figure) -> None:
    """The flux and the temperatures."""
    left, right = figure.subplots(1, 2)
    left.plot(page.times, page.truth, color=GRAY, label="true flux")
    left.plot(page.times, page.fit.x, color=BLUE, label="recovered flux")
    left.set(xlabel="time", ylabel="heat flux at the front", ylim=(-0.2, 1.35))
    left.legend(loc="upper right")
    right.plot(page.times, page.data, ".", color=RED, label="measured")
    right.plot(page.times, page.thermocouple(page.fit.x), color=BLUE, label="computed")
    right.set(xlabel="time", ylabel="temperature at the back")
    right.legend(loc="upper left")


def thin_films(page: Any, figure: Figure) -> None:
    """Reflectances over the visible spectrum."""
    axes = figure.subplots()
    start, best = page.start, page.fit.x
    for label, d, color in (("bare glass", 0 * start, GRAY), ("quarter-half-quarter", start, RED), ("optimized", best, BLUE)):
        axes.plot(page.wavelengths, 100 * page.reflectance(d), color=color, label=label)
    axes.set(xlabel="wavelength in nm", ylabel="reflectance in percent", ylim=(0, 5.5))
    axes.legend(ncols=3, loc="upper center")


PICTURES: dict[str, tuple[Callable[[Any, Figure], None], tuple[float, float]]] = {
    "error_propagation": (error_propagation, (7.0, 2.8)),
    "least_squares": (least_squares, (5.5, 3.5)),
    "sampling": (sampling, (5.0, 3.5)),
    "lagrangian": (lagrangian, (5.5, 3.5)),
    "gaussian_process": (gaussian_process, (7.0, 3.0)),
    "kalman_filter": (kalman_filter, (7.0, 3.0)),
    "heat_source": (heat_source, (7.0, 2.8)),
    "thin_films": (thin_films, (6.0, 3.0)),
}


def draw(name: str, format: str = "svg") -> bytes:
    """Return the picture of a recipe."""
    fill, size = PICTURES[name]
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        fill(run_page(name), figure)
        file = io.BytesIO()
        figure.savefig(file, format=format, dpi=110, metadata={"Date": None, "Creator": None} if format == "svg" else None)
    return file.getvalue()


if __name__ == "__main__":
    for name in PICTURES:
        path = DOCS / "pictures" / f"{name.replace('_', '-')}.svg"
        path.write_bytes(draw(name))
        print(f"wrote {path.name}")
