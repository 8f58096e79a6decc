"""NumPy functions that are given nodes in a list: ``np.sum([x[0], x[1]])``, ``np.dot([x[0], 1.0], b)``.

NumPy calls the protocol of the arguments that the function's dispatcher returns, and does not look into lists. Dispatchers are
replaced by functions that also return the nodes in lists.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..frames import frame_up, source_lines
from ..graph import flatten_sequences
from ..tracing import is_tracing
from ..values import Value
from .exchanged import exchange
from .toplevel import is_users, opened


def look_into_lists() -> None:
    """Let NumPy ask nodes in lists."""
    for dispatcher in ops.dispatchers():
        exchange(dispatcher, _relevant)


def _relevant(dispatcher: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = original(*args, **kwargs)
    filename = frame_up(3).f_code.co_filename
    if source_lines.is_package_code(filename):
        return relevant  # our own code gathers nodes from lists itself
    if (not is_tracing() or not opened) and not is_users(filename):
        return relevant
    relevant = tuple(relevant)
    lists = [value for value in relevant if type(value) in (list, tuple)]
    options = [v for v in (*args, *kwargs.values()) if isinstance(v, Value)]  # np.sum(plain, initial=x), np.take(plain, i)
    return (*relevant, *options, *[leaf for leaf in flatten_sequences(lists) if isinstance(leaf, Value)])
