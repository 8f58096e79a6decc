"""Derivatives of a user's operation by central differences, where it has no rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind

from ..numeric import finite_differences
from .rule import Rule, makers


class Slope:
    """The derivative of a function of plain arrays with respect to one operand, by central differences."""

    def __init__(self, function: Any, position: int, elementwise: bool) -> None:
        self.__name__ = f"{function.__name__}_slope"
        self.function, self.position, self.elementwise = function, position, elementwise

    def __call__(self, *operands: Any, **options: Any) -> Any:
        """The Jacobian, or of an elementwise function its diagonal."""
        values = [np.asarray(x) for x in operands]
        if any(x.dtype.kind == "c" for x in values):
            raise TypeError("rule: a derivative by central differences needs real operands; declare formulas for complex ones")
        k = self.position

        def moved(x: Any) -> Any:
            out = np.asarray(self.function(*values[:k], x, *values[k + 1 :], **options))
            if out.dtype.kind == "c":
                raise TypeError("rule: a derivative by central differences needs a real result; declare formulas")
            if self.elementwise and out.shape != np.broadcast_shapes(*(v.shape for v in values)):
                raise ValueError(
                    f"rule: {self.function.__name__} made shape {out.shape} of {', '.join(str(v.shape) for v in values)}; it is "
                    "not elementwise: leave out kind"
                )
            return out

        if self.elementwise:
            return finite_differences.elementwise(moved, values[k], np.ones(values[k].shape))
        return finite_differences.jacobian(moved, values[k])


def numerical(function: Any, position: int, elementwise: bool) -> Any:
    """The derivative as an operation of its own, which cannot be differentiated."""
    slope = Slope(function, position, elementwise)
    return lambda *operands, **options: bind(slope, operands, options)


def _slope_rule(slope: Slope) -> Rule:
    opname = ops.opname_of(slope.function)

    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(
            f"the derivative of {opname} is by central differences, which are not differentiated again; declare formulas "
            "with autodiff.rule for higher orders"
        )

    return Rule(slope.__name__, "general", _Always(refuse), _Always(refuse))


class _Always(Sequence[Any]):
    """The same formula for every operand."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:
        return self.formula


makers[Slope] = _slope_rule
