"""Errors that numbers lead to: whoever catches one goes on in another way, so with other numbers it is asked again.

``np.linalg.cholesky(K)`` in a ``try`` decides as ``if`` does, and no node is asked. What an operation raised is noted as a guard.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import raised, saved_operands
from ..graph.interpreter import source_lines
from ..operations import opname_of
from .guards import note


def error_of(function: Callable[..., Any], options: dict[str, Any], settings: dict[str, Any], *values: Any) -> str | None:
    """The name of the error that ``function(*values, **options)`` raises within ``np.errstate(**settings)``; None if none."""
    with np.errstate(**settings):
        try:
            function(*values, **options)
        except (ArithmeticError, ValueError) as error:
            return type(error).__name__
    return None


def _note_error(function: Any, args: tuple[Any, ...], options: dict[str, Any], error: Exception) -> None:
    args, options = saved_operands(function, args, options)
    settings = {kind: "raise" if how == "raise" else "ignore" for kind, how in np.geterr().items()}
    asked = functools.partial(error_of, function, options, settings)
    note(f"whether {opname_of(function)} raises", asked, args, type(error).__name__, source_lines.users_frame(2))


raised.append(_note_error)
