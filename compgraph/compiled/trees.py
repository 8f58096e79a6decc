"""Arguments and results that nest: lists, tuples, dictionaries, named tuples, dataclasses, None."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

from ..graph.context import renewed

NAMESPACE = "compgraph"
_registering = renewed(threading.Lock())
_registered: set[type] = set()
_leaves: set[type] = set()  # classes that were met as leaves, and are no dataclasses
_optree: Any = None  # imported when a tree is first flattened, since `import compgraph` shall not wait for it


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, in order, and its structure, which can be compared and hashed.

    Lists, tuples, dictionaries, named tuples, dataclasses and None nest; everything else is a leaf.
    """
    while True:
        leaves, structure = (_optree or _imported()).tree_flatten(tree, namespace=NAMESPACE)
        unknown = set(map(type, leaves)) - _leaves
        if not unknown:
            return leaves, structure
        classes = list(filter(dataclasses.is_dataclass, unknown))
        if len(_leaves) < _MOST:
            _leaves.update(unknown.difference(classes))
        for kind in classes:
            _register(kind)
        if not classes:
            return leaves, structure


_MOST = 4096


def _imported() -> Any:
    global _optree
    import optree

    _optree = optree
    return optree


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """A tree of a structure, with other leaves."""
    return structure.unflatten(leaves)


def _register(kind: type) -> None:
    """Let the fields of a dataclass be found."""
    names = tuple(field.name for field in dataclasses.fields(kind))

    def parts(instance: Any) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
        return tuple(getattr(instance, name) for name in names), names, names

    def made(names: Any, values: Any) -> Any:
        instance: Any = object.__new__(kind)  # as it was, whatever its __init__ takes or checks
        for name, value in zip(names, values, strict=True):
            object.__setattr__(instance, name, value)
        return instance

    with _registering:
        if kind not in _registered:  # by another thread, meanwhile
            (_optree or _imported()).register_pytree_node(kind, parts, made, namespace=NAMESPACE)
            _registered.add(kind)
