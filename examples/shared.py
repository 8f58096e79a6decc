"""Options, optimizers and pictures (saved without a window) of the demos."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from autodiff.optimizers import Optimizer, StepController
from autodiff.reverse import gradient

try:
    import matplotlib
    from matplotlib.figure import Figure
except ImportError:
    sys.exit('the demos draw by Matplotlib: pip install ".[examples]"')

Array: TypeAlias = NDArray[Any]

BLUE, RED, GREEN, ORANGE, GRAY = "#2b6cb0", "#c53030", "#2f855a", "#dd6b20", "#718096"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
}


class Whole(NamedTuple):
    """An option that takes a whole number: its default, its minimum, and its description."""

    default: int
    least: int
    help: str


# ArrayFlow's optimizer with the inertia of the paper's equation 73, and with that of its Algorithm 1 as printed.
INERTIA = {"stepcontroller": "average", "printed": "two gradients"}
LOST = 1e30  # larger losses do not recover; near 1e15 some do


def step_controller(name: str, parameters: Any, rate: float, **settings: Any) -> StepController:
    """ArrayFlow's optimizer, by its name among the options."""
    return StepController(parameters, rate, inertia=INERTIA[name], **settings)


def take_step(optimizer: Optimizer, loss: Any) -> None:
    """Take one step of gradient descent; end the program if the loss diverges."""
    if not abs(loss) < LOST:
        how = f"The loss is {float(loss):.1e} after {optimizer.steps} steps"
        sys.exit(f"{how}; the last steps were too large: {optimizer.learning_rate:.1e}")
    with_loss = (loss,) if isinstance(optimizer, StepController) else ()
    optimizer.step(gradient(loss), *with_loss)


def read_options(
    argv: list[str] | None, description: str | None, optimizers: tuple[str, ...] = (), **numbers: Whole
) -> argparse.Namespace:
    """The options of the command line: an optimizer, numbers, and the folder for pictures, which is created if missing."""
    parser = argparse.ArgumentParser(description=description)
    for name, (default, least, text) in numbers.items():
        help_text = f"{text}; at least {least}, default: {default}"
        parser.add_argument(f"--{name}", type=at_least(least), default=default, metavar="N", help=help_text)
    if optimizers:
        help_text = "stepcontroller is ArrayFlow's, printed the same with the direction of its Algorithm 1; default: %(default)s"
        parser.add_argument("--optimizer", choices=optimizers, default=optimizers[0], help=help_text)
    parser.add_argument("--folder", type=Path, default=Path(), help="where pictures are saved; default: the current folder")
    options = parser.parse_args(argv)
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --folder: cannot make {str(options.folder)!r}: {error.strerror}")
    return options


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers that rejects too small ones."""

    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {number}")
        return number

    return whole


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes, in the style of all demos."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
        return figure, figure.subplots(rows, columns, **options)


def save(figure: Figure, file: Path) -> None:
    """Write a picture, and print its path."""
    figure.savefig(file)
    print(f"Saved {file}")
