"""What is computed with plain numbers must not be part of a derivative."""

from __future__ import annotations

from typing import Any

from compgraph.nodes import InputNode, Node, describe

from ..sweep import collect


def require_outside(operator: str, value: Any) -> None:
    """Raise if a value depends on what a derivative is being taken by, which would be lost without a word.

    Parameters
    ----------
    operator : str
        Who would use its plain number, for the message.
    value : object
        The value; only nodes are looked at. Depending on variables is no harm: they are updated step by step.

    Raises
    ------
    TypeError
        If it carries tangents, or depends on an argument of a function that is being differentiated.
    """
    if isinstance(value, Node) and (value.level or any(n.__class__ is InputNode for n in collect(value))):
        raise TypeError(
            f"{operator}: the {describe(value)} belongs to a function that is being differentiated, but the result would be "
            "plain numbers without a derivative. autodiff.minimize, root and fixed_point are differentiable"
        )
