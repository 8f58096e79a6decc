"""Formulas of operations with any number of operands, where a list with one for each would not do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Formula = Callable[..., Any]


def unowned(contribution: Any) -> Any:
    """What a user's function gave, which may be kept there: a view, so that no sweep takes the array for its own."""
    return contribution.view() if type(contribution) is np.ndarray else contribution


class Variadic(Sequence[Formula | None]):
    """Formulas of an operation with any number of operands, made from one that takes the position too.

    The first `fixed` operands have no derivative.
    """

    def __init__(self, formula: Formula, fixed: int = 0) -> None:
        self.formula = formula
        self.fixed = fixed

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda adjoint, out, *operands, **options: self.formula(position, adjoint, out, *operands, **options)


class Shared(Variadic):
    """Formulas of an operation with any number of operands, made from one that answers for several operands in one call.

    Asked one by one, each call would be handed all n operands, and find out anew where its own stands: n * n steps.

    Parameters
    ----------
    formula : callable
        ``(positions, adjoint, out, *operands, **options)`` returns a list with one contribution for each position. (Of
        tangents, ``(tangents, out, *operands, **options)`` returns the tangent of the output; see `push`.)
    fixed : int
        How many operands, the first, have no derivative.
    batched : bool
        Whether the formula takes adjoints with a batch axis before their own.
    """

    def __init__(self, formula: Formula, fixed: int = 0, batched: bool = False) -> None:
        super().__init__(formula, fixed)
        self.batched = batched

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda adjoint, out, *operands, **options: self.formula([position], adjoint, out, *operands, **options)[0]

    def answers(self, node: Any, needed: Any, adjoint: Any, out: Any, operands: Any) -> Answers:
        """What stands for these formulas while a sweep is at one node; the formula is asked once.

        Parameters
        ----------
        node : Node or MultiOutput
            Where the sweep is.
        needed : container of int
            The ids of the operands that need an adjoint.
        adjoint, out, operands
            What the formula is given.
        """
        args = node.args
        positions = [p for p in node.parent_argnums if p >= self.fixed and id(args[p]) in needed]
        found = self.formula(positions, adjoint, out, *operands, **node.options) if positions else []
        return Answers(dict(zip(positions, found, strict=True)))


class Answers:
    """The contributions of one node, in the place of formulas: each is handed out once."""

    __slots__ = ("_asked", "_found")

    def __init__(self, found: dict[int, Any]) -> None:
        self._found = found
        self._asked = -1

    def __getitem__(self, position: int) -> Any:
        if position not in self._found:
            return None
        self._asked = position
        return self

    def __call__(self, adjoint: Any, out: Any) -> Any:
        """The contribution to the operand that was looked up last."""
        return self._found.pop(self._asked)
