"""`animate`, and the `Animation` that it returns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compgraph.graph import breadth_first, operands_of
from compgraph.view import DIRECTIONS, GraphDrawing, draw_graph, notebook_frame, page_of, require_resolution

from ..numeric import require_differentiable
from .equations import Writer, has_chosen_name, node_text, truncate, unique_names, unused_letter
from .frame_images import Frame, images_of, save_gif
from .sweep_steps import Pass, Step, backward, forward

FORMATS = ("html", "gif")
EDGES_PER_NODE = 4  # the maximum, times `limit`
MAX_LISTED = 4  # variables in a title, at most


class Animation:
    """The frames of a sweep of a derivative through a graph, which a notebook displays.

    Attributes
    ----------
    sweep : Pass
        The steps, as data.
    frames : list of Frame
        The start, each step, and the result. ``str(frame)`` describes the frame.
    """

    __slots__ = ("_direction", "_drawing", "_title", "frames", "sweep")

    def __init__(self, sweep: Pass, direction: str) -> None:
        self.sweep, self._direction = sweep, direction
        graph = draw_graph(sweep.output)
        names = unique_names(list(graph.numbers))
        _label_entries(graph, sweep, names)
        self._drawing = graph.drawing
        self._title, self.frames = _frames_of(sweep, graph, names)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<Animation of {len(self)} frames: a notebook shows it, .save('sweep.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return notebook_frame(self.html(), self._title, 720)

    def html(self, seconds: float = 1.5) -> str:
        """Return the animation as one self-contained page. On a narrow screen the graph is rotated if it can be drawn larger.

        Parameters
        ----------
        seconds : float
            The duration of a frame while the animation plays.

        Returns
        -------
        str
        """
        _require_positive(seconds)
        frames = [frame.page_data() for frame in self.frames]
        data = {**self._drawing.page_data(self._direction), "frames": frames, "seconds": seconds, "mode": self.sweep.mode}
        return page_of("animation", self._title, data)

    def save(self, filename: str | os.PathLike[str], seconds: float = 1.5, *, dpi: float | None = None) -> None:
        """Write the animation to a file: a page with controls, or a GIF.

        Parameters
        ----------
        filename : str or path
            The file, which ends in ``.html`` or ``.gif``; an existing one is replaced.
        seconds : float
            The duration of a frame while the animation plays.
        dpi : float, optional
            The resolution of a GIF, in dots per inch; by default 150, or less for wide graphs.

        Raises
        ------
        ValueError
            If the file has a different ending, or the duration or `dpi` is not positive; if `dpi` is set for a page.
        ImportError
            For a GIF, if Matplotlib is not installed.
        """
        path = Path(filename)
        ending = path.suffix[1:].lower()
        if ending not in FORMATS:
            raise ValueError(f"an animation is saved as .html or .gif, not {path.name!r}; single pictures by save_frames(folder)")
        if ending == "html":
            if dpi is not None:
                raise ValueError("dpi is the resolution of a GIF or of frames; a page has none and is drawn sharply at each size")
            path.write_text(self.html(seconds), encoding="utf-8")
        else:
            _require_positive(seconds)
            save_gif(path, self._images(dpi), seconds)

    def save_frames(self, folder: str | os.PathLike[str], *, dpi: float | None = None) -> list[Path]:
        """Write each frame as a PNG.

        Parameters
        ----------
        folder : str or path
            The folder to write into, which is created if needed.
        dpi : float, optional
            The resolution, in dots per inch; by default 150, or less for wide graphs.

        Returns
        -------
        list of Path
            The files, ``frame-000.png`` and so on.

        Raises
        ------
        ValueError
            If `dpi` is not positive.
        ImportError
            If Matplotlib is not installed.
        """
        images = self._images(dpi)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for count, image in enumerate(images):
            paths.append(folder / f"frame-{count:03d}.png")
            image.save(paths[-1])
        return paths

    def _images(self, dpi: float | None = None) -> Iterator[Any]:
        if dpi is not None:
            require_resolution(dpi)
        return images_of(self._title, self._drawing, self._direction, self.frames, dpi)


def animate(
    node: np.ndarray[Any, Any],
    wrt: Any = None,
    *,
    mode: str = "reverse",
    seed: Any = None,
    direction: str = "LR",
    limit: int = 60,
) -> Animation:
    """Animate the propagation of a derivative through a graph, one edge at a time.

    In each frame the current operation is green. In reverse mode it passes a contribution to the adjoint of one operand, and
    the operand sums its contributions. In forward mode the operation receives the contribution of one operand to its tangent.
    The chain rule of the step, with its numbers, is below the graph.

    Parameters
    ----------
    node : Node
        The node to differentiate; for an array, the sum of its elements, weighted by `seed`.
    wrt : Node, str, or sequence of them, optional
        The variables, as in `autodiff.reverse.gradient`; by default all. In forward mode one node, where the tangent starts.
    mode : {"reverse", "forward"}
        Whether adjoints pass from the result to the variables, or a tangent from a variable to the result.
    seed : array_like, optional
        The adjoint of `node` to start from, or in forward mode the tangent of `wrt`, of its shape; ones by default.
    direction : {"LR", "TB"}
        Whether the graph is drawn from left to right or from top to bottom.
    limit : int
        The maximal number of nodes, with at most four times as many edges. The layout of large graphs takes minutes.

    Returns
    -------
    Animation
        A notebook displays it; ``.save("sweep.html")`` and ``.save("sweep.gif")`` write it to a file, ``.save_frames(folder)``
        writes a PNG for each frame.

    Raises
    ------
    TypeError
        If `node` is not a node, or an operation between it and `wrt` has no derivative.
    ValueError
        If the mode or the direction is unknown, the graph is too large, an array in it was written in place, the shape of the
        seed is wrong, `node` does not depend on `wrt`, or in forward mode `wrt` is not one node.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.visualize import animate
    >>> x = cg.variable(3.0, "x")
    >>> for frame in animate(cg.multiply(x, 5.0, name="f")).frames:
    ...     print(frame)
    The adjoint of the result is the start. ∂f/∂f = 1
    f passes its adjoint back to its first operand, x. ∂f/∂x += ∂f/∂f · ∂f/∂x = 1 × 5 = 5. with ∂f/∂x = 5
    The gradient is complete. ∂f/∂x = 5
    """
    if mode not in ("reverse", "forward"):
        raise ValueError(f"mode must be 'reverse' or 'forward', not {mode!r}")
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    require_differentiable("animate", node)
    nodes = breadth_first(node)  # type: ignore[arg-type]
    size, uses = len(nodes), sum(len(operands_of(each)) for each in nodes)
    if size <= limit < uses / EDGES_PER_NODE:
        raise ValueError(
            f"the graph has {uses} edges, and an animation with limit={limit} shows at most {EDGES_PER_NODE * limit}. Animate "
            "a smaller case, or pass a larger limit. visualize_at draws large graphs"
        )
    if size > limit:
        raise ValueError(
            f"the graph has {size} nodes, and an animation shows at most {limit}. Animate a smaller case or a node nearer "
            "to the variables, or pass limit=. visualize_at draws large graphs"
        )
    return Animation((backward if mode == "reverse" else forward)(node, wrt, seed), direction)


def _require_positive(seconds: float) -> None:
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, not {seconds}")


# ------------------------------------------------------------------------------------------ the frames


def _label_entries(graph: GraphDrawing, sweep: Pass, names: dict[Any, str]) -> None:
    """Label the entries with names and values, and reserve space for the adjoints or tangents that arrive."""
    entries, arrows = graph.drawing.entries, graph.drawing.arrows
    for node, number in graph.numbers.items():
        title = truncate(f"{node.opname}: {names[node]}") if has_chosen_name(node) else names[node]
        value = node_text(node.raw_value)  # type: ignore[union-attr]  # no writes: `backward` and `forward` raise for them
        entries[number].label = title if value == title else f"{title}\n{value}"
        entries[number].has_symbol = False
        entries[number].details["title"] = names[node]
    arriving = [(node, seed) for node, seed in sweep.start.items()]
    for step in sweep.steps:
        arriving.append((step.operand if sweep.mode == "reverse" else step.node, step.total))
        arrows[graph.arrows[step.node, _position(step)]].label = node_text(step.derivative_on_edge)
    for node, value in arriving:
        entry = entries[graph.numbers[node]]
        entry.slot = max(entry.slot, node_text(value), key=len)


def _position(step: Step) -> int:
    """Return the position of a step's operand among the drawn ones, which include plain numbers."""
    earlier = sum(step.node.args[k] is step.operand for k in step.node.parent_argnums if k < step.position)
    return [k for k, operand in enumerate(operands_of(step.node)) if operand is step.operand][earlier]


def _frames_of(sweep: Pass, graph: GraphDrawing, names: dict[Any, str]) -> tuple[str, list[Frame]]:
    """Return the title and the frames of a sweep."""
    is_reverse, output = sweep.mode == "reverse", sweep.output
    result = names[output] if has_chosen_name(output) or not output.opname else unused_letter("f", names)
    writer = Writer(names, result if is_reverse else unused_letter("t", names), sweep.mode)
    ((first, seed),) = sweep.start.items()
    words = "The adjoint of the result is the start" if is_reverse else f"The tangent of {names[first]} is the start"
    frames = [Frame(words, [writer.start(sweep)], target=graph.numbers[first], derivative_text=node_text(seed))]
    for step in sweep.steps:
        work, target = graph.numbers[step.node], graph.numbers[step.operand if is_reverse else step.node]
        arrow = graph.arrows[step.node, _position(step)]
        frames.append(Frame(writer.describe(step), writer.step(step), work, arrow, target, node_text(step.total)))
    frames.append(Frame("The gradient is complete" if is_reverse else "The tangent has arrived", writer.result(sweep)))
    if is_reverse:
        return f"Reverse mode: {_name_derivative(result, [names[node] for node in sweep.result])}", frames
    return f"Forward mode: {result} as {names[first]} moves", frames


def _name_derivative(result: str, names: list[str]) -> str:
    """Name the derivative that is computed, with its variables if they are few."""
    if len(names) > MAX_LISTED:
        return f"the gradient of {result}"
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"the {'gradient' if others else 'derivative'} of {result} with respect to {listed}"
