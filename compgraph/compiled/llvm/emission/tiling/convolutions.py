"""Cross-correlations, and their two adjoints, become loops over tiles of registers: by channels, or by lines of images."""

from __future__ import annotations

from dataclasses import astuple

from ... import elementwise
from ...code import INT, POINTER, Module
from ...steps import Convolution
from .channels import Channels
from .lines import Lines
from .tiles import lanes_for


def convolution(module: Module, step: Convolution, width: int) -> str:
    """The name of a function that does a step; it is given the addresses of its result, and of its operands.

    It gives 1 where NumPy has to be asked: products of inf or nan with the zeros around an image are not those of NumPy's code,
    which leaves some of them out, and adds others.
    """
    kind = elementwise.type_of(step.out.buffer.dtype)
    shape = "_".join(str(n) for part in astuple(step.geometry) for n in (part if isinstance(part, tuple) else (part,)))
    name = f".convolution_{step.kind}_{kind.mangled}_{shape}"

    def write() -> None:
        code = module.function(name, INT, [POINTER] * 4, "noinline")
        made = Lines if _is_by_lines(step, width) else Channels
        writer = made(code, step, step.geometry.work_sizes(step.kind), width)
        code.give({"forward": writer.forward, "back": writer.back, "kernel": writer.kernel}[step.kind]())

    return module.made(name, write)


def _is_by_lines(step: Convolution, width: int) -> bool:
    """Whether vectors are longer along the lines of an image than along its channels."""
    g, size = step.geometry, step.out.buffer.dtype.itemsize
    if step.kind == "kernel" or (step.kind == "forward" and g.strides[1] != 1):
        return False
    channels, line = (g.results, g.counts[1]) if step.kind == "forward" else (g.channels, g.lengths[1] // g.strides[1])
    return lanes_for(max(line, 1), size, width) > lanes_for(channels, size, width)
