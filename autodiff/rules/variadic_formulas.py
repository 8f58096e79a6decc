"""Formulas of operations with any number of operands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

Formula = Callable[..., Any]


class VariadicFormulas(Sequence[Formula | None]):
    """Formulas of an operation with any number of operands, derived from one that also takes the position.

    Parameters
    ----------
    formula : callable
        ``(position, cotangent, out, *operands, **options)`` returns one contribution.
    fixed : int
        The number of leading operands without a derivative.
    """

    def __init__(self, formula: Formula, fixed: int = 0) -> None:
        self.formula = formula
        self.fixed = fixed

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda cotangent, out, *operands, **options: self.formula(position, cotangent, out, *operands, **options)


class SharedFormulas(VariadicFormulas):
    """Formulas of an operation with any number of operands, derived from one that handles several operands per call.

    One call per operand would take n * n steps for n operands, because each call receives all of them.

    Parameters
    ----------
    formula : callable
        ``(positions, cotangent, out, *operands, **options)`` returns a list with a contribution per position. As a
        tangent formula, ``(tangents, out, *operands, **options)`` returns the tangent of the output; see `push`.
    fixed : int
        The number of leading operands without a derivative.
    batched : bool
        Whether the formula accepts cotangents with a batch axis.
    """

    def __init__(self, formula: Formula, fixed: int = 0, batched: bool = False) -> None:
        super().__init__(formula, fixed)
        self.batched = batched

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda cotangent, out, *operands, **options: self.formula([position], cotangent, out, *operands, **options)[0]

    def evaluate(self, node: Any, needed: Any, cotangent: Any, out: Any, operands: Any) -> Contributions:
        """Call the formula once for a node and return the contributions in the form of formulas.

        Parameters
        ----------
        node : Node or MultiOutput
            The node whose operands get the contributions.
        needed : container of int
            The ids of the operands that need a cotangent.
        cotangent, out, operands
            The arguments of the formula.
        """
        args = node.args
        positions = [p for p in node.parent_argnums if p >= self.fixed and id(args[p]) in needed]
        contributions = self.formula(positions, cotangent, out, *operands, **node.options) if positions else []
        return Contributions(dict(zip(positions, contributions, strict=True)))


class Contributions:
    """The contributions of one node in the form of formulas; each is returned once."""

    __slots__ = ("by_position", "current_position")

    def __init__(self, contributions: dict[int, Any]) -> None:
        self.by_position = contributions
        self.current_position = -1

    def __getitem__(self, position: int) -> Any:
        if position not in self.by_position:
            return None
        self.current_position = position
        return self

    def __call__(self, cotangent: object, out: object) -> Any:
        """Return the contribution to the operand that was indexed last."""
        return self.by_position.pop(self.current_position)
