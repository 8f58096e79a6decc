"""Nodes in lists and tuples that are passed to NumPy: ``np.sum([x[0], x[1]])``.

NumPy dispatches on the arguments that a function's dispatcher returns, and ignores the contents of lists. Two patches change
that (methods of ufuncs: see `numpy_substitute`):

- Patched dispatchers also return the nodes in lists.
- At the top level nodes are arrays over their data, so NumPy converts a list of them without dispatch.
  Functions that convert lists are patched on import, and record lists that contain nodes. Calls from library code are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import ops
from ..context import is_recording
from ..frames import frame_up, is_internal, source_lines
from ..graph import flatten_sequences
from ..tracing import is_tracing
from ..values import Value, is_operator_tracer
from .callers import RECORDS_SEQUENCES
from .code_patches import NODE_FREE_TYPES, patch_code

open_interceptions: set[Any] = set()  # the open interceptions of all threads: not empty while a function is differentiated
_MAX_DEPTH = 64  # of nested lists, as deep as arrays have axes
_SEQUENCES = (list, tuple)


# --------------------------------------------------------------------------------------- lists at the top level


class _Switch:
    """A flag that several modules share."""

    __slots__ = ("is_on",)

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on


interception_switch = _Switch(True)  # see `cg.interception`


def sequence_contains_node(values: Iterable[object], depth: int = _MAX_DEPTH) -> bool:
    """Whether a list or tuple contains a node, at any depth. The classes of the elements are compared first, which is fast.

    Outside of tracing, tracers do not count: they belong to an operator, which is active in another thread.
    """
    if NODE_FREE_TYPES.issuperset(classes := set(map(type, values))):
        return False
    if any(issubclass(cls, Value) for cls in classes):
        return is_tracing() or not any(isinstance(v, Value) and is_operator_tracer(v) for v in values)
    return depth > 0 and any(isinstance(v, _SEQUENCES) and sequence_contains_node(v, depth - 1) for v in values)


def is_call_recorded(filename: str, values: Iterable[object]) -> bool:
    """Whether a top-level call with these values, from a file, is recorded because a list contains a node."""
    return (
        interception_switch.is_on
        and RECORDS_SEQUENCES[filename]
        and is_recording()
        and any(isinstance(v, _SEQUENCES) and sequence_contains_node(v) for v in values)
    )


def is_call_inspected(filename: str) -> bool:
    """Whether lists in a top-level call from a file (of user code, or of NumPy) are searched for nodes."""
    return interception_switch.is_on and (RECORDS_SEQUENCES[filename] or is_internal(filename))


# -------------------------------------------------------------------------------------------------- dispatchers


def patch_dispatchers() -> None:
    """Let the dispatchers of NumPy's functions return the nodes in lists as well."""
    for dispatcher in ops.dispatchers():
        patch_code(dispatcher, _relevant_arguments)


def _relevant_arguments(dispatcher: object, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = original(*args, **kwargs)
    filename = frame_up(3).f_code.co_filename  # of the caller of the NumPy function
    if source_lines.is_package_code(filename):
        return relevant  # compgraph and autodiff stack lists of nodes themselves
    if not (is_tracing() and open_interceptions) and not is_call_inspected(filename):
        return relevant
    relevant = tuple(relevant)
    lists = [value for value in relevant if type(value) in (list, tuple)]
    node_arguments = [v for v in (*args, *kwargs.values()) if isinstance(v, Value)]  # np.sum(plain, initial=x), np.take(plain, i)
    return (*relevant, *node_arguments, *[leaf for leaf in flatten_sequences(lists) if isinstance(leaf, Value)])
