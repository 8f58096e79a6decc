"""The variable of Python's to which a line of code assigns what a call in it gives."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from .expressions import expression, parents, tree_of


def assigned_name(code: CodeType | str | None, instruction: int) -> str | None:
    """The name that a line gives to what its call made; None where it gives none, or where that is not known.

    Only what the whole call gives is named: in ``w = np.tanh(cg.variable(1.0))`` the variable has no name.

    Parameters
    ----------
    code : code object, str or None
        The code at work, as a node keeps it.
    instruction : int
        The instruction of the call.

    Returns
    -------
    str or None

    Examples
    --------
    >>> import sys
    >>> class Told:
    ...     def __init__(self):
    ...         frame = sys._getframe(1)
    ...         print(assigned_name(frame.f_code, frame.f_lasti))
    >>> weight, bias = Told(), Told()
    weight
    bias
    """
    if not isinstance(code, CodeType):
        return None
    tree, value = tree_of(code.co_filename), expression(code, instruction)
    if tree is None or value is None:
        return None
    outer = parents(tree)
    statement, position = outer.get(value), None
    if isinstance(statement, ast.Tuple):  # weight, bias = Told(), Told()
        position, statement = statement.elts.index(value), outer.get(statement)
    if isinstance(statement, ast.AnnAssign):
        target: Any = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    if position is not None:
        if not isinstance(target, ast.Tuple) or len(target.elts) <= position:
            return None
        target = target.elts[position]
    return target.id if isinstance(target, ast.Name) else None
