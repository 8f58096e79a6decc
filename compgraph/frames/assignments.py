"""The variable of Python's to which a line of code assigns what a call in it gives."""

from __future__ import annotations

import ast
import linecache
from types import CodeType
from typing import Any


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
    positions = list(code.co_positions())
    if instruction // 2 >= len(positions):
        return None
    line, last, start, end = positions[instruction // 2]
    if line is None or line != last or start is None or end is None:
        return None
    text = linecache.getline(code.co_filename, line)
    indent = len(text) - len(text.lstrip())
    try:
        statements = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):  # a part of a longer statement
        return None
    named = [(target, value) for statement in statements for target, value in _pairs(statement) if isinstance(target, ast.Name)]
    spans = [(value.col_offset + indent, (value.end_col_offset or 0) + indent) for _, value in named]
    return named[spans.index((start, end))][0].id if (start, end) in spans else None


def _pairs(statement: ast.stmt) -> list[tuple[Any, Any]]:
    """What a statement assigns to what."""
    if isinstance(statement, ast.AnnAssign):
        return [(statement.target, statement.value)] if statement.value is not None else []
    if not isinstance(statement, ast.Assign):
        return []
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]
