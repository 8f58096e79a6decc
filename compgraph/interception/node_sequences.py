"""Nodes in lists and tuples that are passed to NumPy: ``np.sum([x[0], x[1]])``, ``np.maximum.reduce([x, y])``.

NumPy dispatches on the arguments that a function's dispatcher returns, and ignores the contents of lists. Three patches change
that:

- Patched dispatchers also return the nodes in lists.
- At the top level nodes are arrays over their data, so NumPy converts a list of them without dispatch. From the first variable
  on, the functions that convert lists record lists with nodes. Calls from library code are unchanged.
- Ufunc methods convert their argument without dispatch, and attributes of ufuncs cannot be replaced. In a function whose code
  names such a method, ``np`` refers to a module whose ufuncs first stack the nodes in lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from .. import ops
from ..context import is_recording
from ..frames import frame_up, is_internal, source_lines
from ..graph import flatten_sequences, stack_nested
from ..tracing import is_tracing
from ..values import Value, is_operator_tracer
from .callers import RECORDS_SEQUENCES
from .code_patches import NODE_FREE_TYPES, patch_code

active_contexts: set[Any] = set()  # the open interceptions of all threads: not empty while a function is differentiated
_MAX_DEPTH = 64  # of nested lists, as deep as arrays have axes
_SEQUENCES = (list, tuple)


# --------------------------------------------------------------------------------------- lists at the top level


class _Switch:
    __slots__ = ("is_on",)

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on


interception_switch = _Switch(True)  # see `cg.interception`
# Whether lists are recorded at the top level: from the first variable on, unless interception is off.
top_level_recording = _Switch(False)


def sequence_holds_node(values: Iterable[object], depth: int = _MAX_DEPTH) -> bool:
    """Whether a list or tuple holds a node, at any depth. The classes of the elements are compared first, which is fast."""
    if NODE_FREE_TYPES.issuperset(classes := set(map(type, values))):
        return False
    if any(issubclass(cls, Value) for cls in classes):
        return is_tracing() or not any(isinstance(v, Value) and is_operator_tracer(v) for v in values)
    return depth > 0 and any(isinstance(v, _SEQUENCES) and sequence_holds_node(v, depth - 1) for v in values)


def records_sequences(filename: str, values: Iterable[object]) -> bool:
    """Whether a call from a file that converts these values is recorded."""
    return (
        top_level_recording.is_on
        and RECORDS_SEQUENCES[filename]
        and is_recording()
        and any(isinstance(v, _SEQUENCES) and sequence_holds_node(v) for v in values)
    )


def inspects_sequences(filename: str) -> bool:
    """Whether lists in a call from a file at the top level are searched for nodes: calls from user code and NumPy."""
    return top_level_recording.is_on and (RECORDS_SEQUENCES[filename] or is_internal(filename))


# -------------------------------------------------------------------------------------------------- dispatchers


def patch_dispatchers() -> None:
    """Let the dispatchers of NumPy's functions return the nodes in lists as well."""
    for dispatcher in ops.dispatchers():
        patch_code(dispatcher, _relevant_arguments)


def _relevant_arguments(dispatcher: object, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = original(*args, **kwargs)
    filename = frame_up(3).f_code.co_filename
    if source_lines.is_package_code(filename):
        return relevant  # the two packages here stack lists of nodes themselves
    if (not is_tracing() or not active_contexts) and not inspects_sequences(filename):
        return relevant
    relevant = tuple(relevant)
    lists = [value for value in relevant if type(value) in (list, tuple)]
    options = [v for v in (*args, *kwargs.values()) if isinstance(v, Value)]  # np.sum(plain, initial=x), np.take(plain, i)
    return (*relevant, *options, *[leaf for leaf in flatten_sequences(lists) if isinstance(leaf, Value)])


# -------------------------------------------------------------------------------------------- methods of ufuncs

UFUNC_METHODS = {"reduce": (0,), "accumulate": (0,), "reduceat": (0,), "at": (2,)}  # with the positions of operands


class GatheringUfunc:
    """A ufunc whose methods take nodes in lists; otherwise the ufunc itself."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return np.ufunc

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the ufunc."""
        return self._ufunc(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._ufunc

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ufunc, name)
        if name not in UFUNC_METHODS:
            return attribute
        positions = UFUNC_METHODS[name]
        return lambda *args, **kwargs: attribute(
            *[stack_nested(a) if k in positions else a for k, a in enumerate(args)], **kwargs
        )


class _GatheringNumPy(ModuleType):
    """NumPy with ufuncs whose methods take nodes in lists."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(np, name)
        return GatheringUfunc(attribute) if isinstance(attribute, np.ufunc) and attribute.nin == 2 else attribute


GATHERING_NUMPY = _GatheringNumPy("numpy")
