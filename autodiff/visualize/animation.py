"""`animate`, and the `Animation` that it returns."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from compgraph.graph import breadth_first, operands_of

from ..numeric import require_differentiable
from . import page, pictures
from .frames import frames_of
from .layout import Layout, lay_out
from .steps import Pass, backward, forward

DIRECTIONS = ("LR", "TB")
FORMATS = ("html", "gif")
USES = 4  # an animation shows at most so many edges for each node that it may have


class Animation:
    """The frames of a derivative on its way through a graph; a notebook shows it.

    Attributes
    ----------
    sweep : Pass
        The steps, as data.
    frames : list of Frame
        One for the start, one for each step, and one for the result. ``str(frame)`` says what happens in it.
    """

    __slots__ = ("_direction", "_layout", "_title", "frames", "sweep")

    def __init__(self, sweep: Pass, layout: Layout, direction: str) -> None:
        self.sweep = sweep
        self._layout, self._direction = layout, direction
        self._title, self.frames = frames_of(sweep, layout)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<Animation of {len(self)} frames: a notebook shows it, .save('sweep.html') writes it to a file>"

    def _repr_html_(self) -> str:
        height = min(int(self._layout.height) + 420, 900)
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" width="100%" height="{height}" style="border:0" '
            f'sandbox="allow-scripts" title="{html.escape(self._title)}"></iframe>'
        )

    def html(self, seconds: float = 1.5) -> str:
        """The animation as one self-contained page. On a narrow screen the graph is turned where that makes it narrower.

        Parameters
        ----------
        seconds : float
            How long each frame stays while the animation plays.

        Returns
        -------
        str
        """
        _require_positive(seconds)
        turned = lay_out(self.sweep, "TB" if self._direction == "LR" else "LR")
        return page.page(self._title, self._layout, turned, self.frames, self.sweep.mode, seconds)

    def save(self, filename: str | os.PathLike[str], seconds: float = 1.5) -> None:
        """Write the animation to a file: a page with controls, or a GIF.

        Parameters
        ----------
        filename : str or path
            The file, which ends in ``.html`` or ``.gif``; an existing one is replaced.
        seconds : float
            How long each frame stays while the animation plays.

        Raises
        ------
        ValueError
            If the file ends in something else, or the time is not positive.
        ImportError
            For a GIF, if Matplotlib is not installed.
        """
        path = Path(filename)
        ending = path.suffix[1:].lower()
        if ending not in FORMATS:
            raise ValueError(f"an animation is saved as .html or .gif, not {path.name!r}; single pictures by save_frames(folder)")
        if ending == "html":
            path.write_text(self.html(seconds), encoding="utf-8")
        else:
            _require_positive(seconds)
            pictures.save_gif(path, self._title, self._layout, self.frames, self.sweep.mode, seconds)

    def save_frames(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each frame as a PNG.

        Parameters
        ----------
        folder : str or path
            The folder to write into; it is made if it does not exist.

        Returns
        -------
        list of Path
            The files, ``frame-000.png`` and so on.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        drawn = pictures.draw(self._title, self._layout, self.frames, self.sweep.mode)
        paths = []
        for count, picture in enumerate(drawn):
            paths.append(place / f"frame-{count:03d}.png")
            picture.save(paths[-1])
        return paths


def animate(
    node: np.ndarray[Any, Any],
    wrt: Any = None,
    *,
    mode: str = "reverse",
    seed: Any = None,
    direction: str = "LR",
    limit: int = 60,
) -> Animation:
    """Follow a derivative through a graph, one edge at a time.

    In each frame the operation at work is green. In reverse mode it passes on a contribution to the adjoint of one operand, and
    contributions add up on the operand; in forward mode the operation gets the contribution of one operand to its tangent.
    The chain rule of the step, with its numbers, stands under the graph.

    Parameters
    ----------
    node : Node
        What is differentiated; of an array, the sum of its elements, weighted by `seed`.
    wrt : Node, str, or sequence of them, optional
        With respect to what, as in `autodiff.reverse.gradient`; by default all variables. In forward mode it is one node,
        where the tangent starts.
    mode : {"reverse", "forward"}
        Whether adjoints pass from the result to the variables, or a tangent from a variable to the result.
    seed : array_like, optional
        The adjoint of `node` to start from, or in forward mode the tangent of `wrt`, of its shape; ones by default.
    direction : {"LR", "TB"}
        Whether the graph is drawn from left to right or from top to bottom.
    limit : int
        How many nodes may be drawn, and with them at most four times as many edges: the layout of large graphs takes minutes.

    Returns
    -------
    Animation
        A notebook shows it; ``.save("sweep.html")`` and ``.save("sweep.gif")`` write it to a file, ``.save_frames(folder)``
        writes a PNG for each frame.

    Raises
    ------
    TypeError
        If `node` is not a node, or an operation on the way has no derivative.
    ValueError
        If the mode or the direction is unknown, the graph is too large, something in it was written in place, the seed
        has another shape, `node` does not depend on `wrt`, or in forward mode `wrt` is not one node.

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
    found = breadth_first(node)  # type: ignore[arg-type]
    size = len(found)
    uses = sum([len(operands_of(each)) for each in found])
    if size <= limit < uses / USES:
        raise ValueError(
            f"the graph has only {size} nodes, but uses them {uses} times, and an animation shows each: at most {USES} a node, "
            f"{USES * limit} for limit={limit}; animate a smaller case, or say limit=; visualize_at draws large graphs"
        )
    if size > limit:
        raise ValueError(
            f"the graph has {size} nodes, and an animation shows at most {limit}: animate a smaller case or a node nearer "
            "to the variables, or say limit=; visualize_at draws large graphs"
        )
    sweep = (backward if mode == "reverse" else forward)(node, wrt, seed)
    return Animation(sweep, lay_out(sweep, direction), direction)


def _require_positive(seconds: float) -> None:
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, not {seconds}")
