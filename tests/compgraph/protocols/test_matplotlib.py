"""Matplotlib draws nodes as arrays: the rendered pixels equal those of plain arrays, and there are no warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.failures import Failures

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is optional")

matplotlib.use("Agg")

x = np.linspace(0.1, 1.0, 9)
y, z, e = np.sin(5 * x), np.cos(5 * x), x / 4
gx, gy = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(0, 2, 7))
gz, gu, gv = gx * gy, np.sin(gx), np.cos(gy)
COLOR = np.array([0.2, 0.5, 0.7])


def _quiver_update(axes: Any, gx: Any, gy: Any, gu: Any, gv: Any) -> None:
    axes.quiver(gx, gy, gu * 0 + 1, gv).set_UVC(gu, gv, gx)


def _image_update(axes: Any, gz: Any) -> None:
    image = axes.imshow(gz * 0)
    image.set_data(gz)
    image.set_clim(gz.min(), gz.max())


def _scatter_update(axes: Any, x: Any, y: Any, z: Any) -> None:
    points = axes.scatter(x * 0, x, c=x)
    points.set_offsets(np.stack([x, y], 1))
    points.set_array(z)
    axes.set_ylim(y.min(), y.max())


def _line_update(axes: Any, x: Any, y: Any) -> None:
    (line,) = axes.plot(x, x, alpha=x[3], lw=x[4])
    line.set_data(x, y)
    line.set_color((x[1], x[2], x[3]))


def _pyplot(axes: Any, x: Any, y: Any, z: Any, e: Any) -> None:
    from matplotlib import pyplot as plt

    plt.sca(axes)
    plt.scatter(x, y, c=z)
    plt.colorbar()
    plt.errorbar(x, y, yerr=e)
    plt.fill_between(x, y - e, y + e)
    plt.xlim(x[0], x[-1])


PLOTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "plot": (lambda axes, x, y: axes.plot(x, y, "r--", x, y * 2, "k."), (x, y)),
    "plot of columns": (lambda axes, x, gy: axes.plot(x, gy), (x, np.stack([y, z], 1))),
    "a point": (lambda axes, x, y: axes.plot(x[1], y[1], "o"), (x, y)),
    "axhline": (lambda axes, y: axes.axhline(y[2]), (y,)),
    "scatter": (lambda axes, x, y, z, e: axes.scatter(x, y, c=z, s=300 * e, vmin=z.min()), (x, y, z, e)),
    "colorbar": (lambda axes, x, y, z: axes.figure.colorbar(axes.scatter(x, y, c=z)), (x, y, z)),
    "contour": (
        lambda axes, gx, gy, gz, levels: axes.contour(gx, gy, gz, levels=levels),
        (gx, gy, gz, np.array([-0.5, 0.0, 0.5])),
    ),
    "contourf": (lambda axes, gx, gy, gz: axes.contourf(gx, gy, gz), (gx, gy, gz)),
    "tricontourf": (lambda axes, x, y, z: axes.tricontourf(x, y, z), (gx.ravel(), gy.ravel(), gz.ravel())),
    "tripcolor": (lambda axes, x, y, z: axes.tripcolor(x, y, z), (gx.ravel(), gy.ravel(), gz.ravel())),
    "imshow": (lambda axes, gz: axes.imshow(gz, vmin=gz.min(), vmax=gz.max()), (gz,)),
    "imshow of colors": (lambda axes, gz: axes.imshow(gz), (np.linspace(0, 1, 60).reshape(4, 5, 3),)),
    "imshow with nan": (lambda axes, gz: axes.imshow(np.where(gz > 0.3, gz, np.nan)), (gz,)),
    "quiver": (lambda axes, gx, gy, gu, gv: axes.quiver(gx, gy, gu, gv), (gx, gy, gu, gv)),
    "quiver with colors": (lambda axes, gx, gy, gu, gv, gz: axes.quiver(gx, gy, gu, gv, gz), (gx, gy, gu, gv, gz)),
    "barbs": (lambda axes, gx, gy, gu, gv: axes.barbs(gx, gy, 30 * gu, 30 * gv), (gx, gy, gu, gv)),
    "streamplot": (lambda axes, gx, gy, gu, gv: axes.streamplot(gx, gy, gu, gv), (gx, gy, gu, gv)),
    "hist": (lambda axes, y, w: axes.hist(y, weights=w), (y, e)),
    "hist of two": (lambda axes, y, z, bins: axes.hist([y, z], bins=bins), (y, z, np.linspace(-1, 1, 6))),
    "hist2d": (lambda axes, x, y: axes.hist2d(x, y), (x, y)),
    "hexbin": (lambda axes, x, y, z: axes.hexbin(x, y, C=z, gridsize=6), (x, y, z)),
    "errorbar": (lambda axes, x, y, e: axes.errorbar(x, y, yerr=e, xerr=e), (x, y, e)),
    "errorbar of a list": (lambda axes, x, y, e: axes.errorbar(x, y, yerr=[e, 2 * e]), (x, y, e)),
    "fill_between": (lambda axes, x, y, z: axes.fill_between(x, y, z, where=y > z), (x, y, z)),
    "pcolormesh": (lambda axes, gx, gy, gz: axes.pcolormesh(gx, gy, gz), (gx, gy, gz)),
    "pcolor": (lambda axes, gx, gy, gz: axes.pcolor(gx, gy, gz), (gx, gy, gz)),
    "bar": (lambda axes, x, y, w, z: axes.bar(x, y, width=w, bottom=z, yerr=w), (x, y, e, z)),
    "boxplot": (lambda axes, y, z: axes.boxplot([y, z]), (y, z)),
    "limits": (lambda axes, x, y: (axes.set_xlim(x[0], x[-1]), axes.set_ylim(y.min(), y.max()), axes.set_xticks(x[::3])), (x, y)),
    "colors": (lambda axes, c: (axes.set_facecolor(c), axes.plot([0, 1], color=c[::-1])), (COLOR,)),
    "LineCollection": (
        lambda axes, segments, c: axes.add_collection(matplotlib.collections.LineCollection(segments, array=c)),
        (np.stack([[x, y], [z, x]]).transpose(2, 0, 1), z),
    ),
    "set_data of a line": (_line_update, (x, y)),
    "set_data of an image": (_image_update, (gz,)),
    "set_offsets and set_array": (_scatter_update, (x, y, z)),
    "set_UVC": (_quiver_update, (gx, gy, gu, gv)),
    "pyplot": (_pyplot, (x, y, z, e)),
    "plot_surface": (lambda axes, gx, gy, gz: axes.plot_surface(gx, gy, gz, cmap="viridis"), (gx, gy, gz)),
    "contour in 3D": (lambda axes, gx, gy, gz: axes.contour(gx, gy, gz), (gx, gy, gz)),
    "scatter in 3D": (lambda axes, x, y, z: axes.scatter(x, y, z, c=z), (x, y, z)),
}
IN_SPACE = ("plot_surface", "contour in 3D", "scatter in 3D")
SOURCES: dict[str, Callable[[Any], Any]] = {"variable": cg.variable, "operation": lambda a: cg.variable(a) * 1.0}


def pixels(kind: str, arrays: list[Any]) -> Any:
    """The rendered picture of a kind."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(2, 1.5), subplot_kw={"projection": "3d" if kind in IN_SPACE else None})
    try:
        PLOTS[kind][0](axes, *arrays)
        figure.canvas.draw()
        return np.array(figure.canvas.buffer_rgba())
    finally:
        plt.close(figure)


@pytest.mark.parametrize("source", SOURCES)
def test_nodes_are_drawn_as_arrays(source: str) -> None:
    with Failures("pictures") as failures:
        for kind, (_, arrays) in PLOTS.items():
            with failures.case(kind):
                expected = pixels(kind, list(arrays))
                assert len(np.unique(expected.reshape(-1, 4), axis=0)) > 2
                np.testing.assert_array_equal(pixels(kind, [SOURCES[source](a) for a in arrays]), expected)


def test_hist_of_a_node_returns_counts() -> None:
    from matplotlib.figure import Figure

    counts, edges, _ = Figure().subplots().hist(cg.variable(y))
    np.testing.assert_array_equal(counts, np.histogram(y)[0])
    np.testing.assert_array_equal(edges, np.histogram(y)[1])


def test_different_arrays_give_different_pixels() -> None:
    """The comparison of the pixels can fail."""
    assert not np.array_equal(pixels("scatter", [x, y, z, e]), pixels("scatter", [x, y, -z, e]))
