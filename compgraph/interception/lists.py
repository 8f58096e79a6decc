"""NumPy functions that are given nodes in a list: ``np.sum([x[0], x[1]])``, ``np.dot([x[0], 1.0], b)``.

NumPy asks the arguments that the function's dispatcher names, and does not look into lists. Dispatchers are exchanged, so that
within a function that is differentiated they also name the nodes in lists.
"""

from __future__ import annotations

from typing import Any

from .. import operations
from ..graph import Node, leaves_of
from ..graph.hollow import bodies
from ..graph.interpreter import frame_up, source_lines
from .exchanged import exchange


def look_into_lists() -> None:
    """Let NumPy ask nodes in lists."""
    for dispatcher in operations.dispatchers():
        exchange(dispatcher, _relevant)


def _relevant(dispatcher: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = original(*args, **kwargs)
    if bodies() is None or relevant.__class__ is not tuple or source_lines.is_ours(frame_up(3).f_code.co_filename):
        return relevant  # our own code gathers nodes from lists itself
    lists = [value for value in relevant if value.__class__ in (list, tuple)]
    return (*relevant, *[leaf for leaf in leaves_of(lists) if isinstance(leaf, Node)])
