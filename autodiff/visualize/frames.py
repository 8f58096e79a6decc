"""The frames of an animation: what each shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from .equations import Line, Writer, plain
from .layout import Arrow, Box, Layout
from .names import chosen, letter, on_node
from .steps import Pass

LISTED = 4  # variables; a title names at most so many


@dataclass(frozen=True)
class Frame:
    """One picture of an animation.

    Attributes
    ----------
    words : str
        What happens, in a sentence.
    lines : list of Line
        The equations.
    box : Box or None
        The operation at work.
    arrow : Arrow or None
        The edge along which an adjoint or tangent passes.
    label : str
        What passes along the edge.
    target : Box or None
        The node at which it arrives.
    shown : str
        The adjoint or tangent that the target has from now on.
    """

    words: str
    lines: list[Line]
    box: Box | None = None
    arrow: Arrow | None = None
    label: str = ""
    target: Box | None = None
    shown: str = ""

    def __str__(self) -> str:
        return ". ".join([self.words, *map(plain, self.lines)])


def frames_of(sweep: Pass, layout: Layout) -> tuple[str, list[Frame]]:
    """The title and the frames of a sweep."""
    names, back = layout.names, sweep.mode == "reverse"
    output = sweep.output
    what = names[output] if chosen(output) or not output.opname else letter("f", names)
    writer = Writer(names, what if back else letter("t", names), sweep.mode)
    ((first, seed),) = sweep.start.items()
    boxes = layout.boxes
    begin = "The adjoint of the result is the start" if back else f"The tangent of {names[first]} is the start"
    frames = [Frame(begin, [writer.start(sweep)], target=boxes[first], shown=on_node(seed))]
    for step in sweep.steps:
        target = boxes[step.operand if back else step.node]
        work = boxes[step.node]
        frames.append(
            Frame(
                writer.words(step), writer.step(step), work, layout.arrow(step), on_node(step.passed), target, on_node(step.total)
            )
        )
    frames.append(Frame("The gradient is complete" if back else "The tangent has arrived", writer.result(sweep)))
    if back:
        return f"Reverse mode: {_derivative(what, [names[node] for node in sweep.result])}", frames
    return f"Forward mode: {what} as {names[first]} moves", frames


def _derivative(what: str, names: list[str]) -> str:
    """What is computed, in words; many variables are not listed."""
    if len(names) > LISTED:
        return f"the gradient of {what}"
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"the {'gradient' if others else 'derivative'} of {what} with respect to {listed}"
