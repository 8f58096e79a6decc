"""Nested arguments and results: their leaves and their structure.

optree flattens trees; it is imported for the first nested tree. `optree_fallback` does the same in Python if it is missing.
"""

from __future__ import annotations

import copyreg
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..context import reset_after_fork

__all__ = ["flatten", "register_container", "unflatten"]

NAMESPACE = "compgraph"
_registration_lock = reset_after_fork(threading.Lock())
_registered_classes: set[type] = set()
_leaf_classes: set[type] = set()  # classes of leaves so far, without dataclasses
_MAX_LEAF_CLASSES = 4096
_library: Any = None  # optree, or `optree_fallback`
_leaf_structure: Any = None  # the structure of a tree that is one leaf


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, and its structure.

    Parameters
    ----------
    tree : object
        Lists, tuples, dictionaries, named tuples, dataclasses and None, nested in any way; everything else is a leaf.

    Returns
    -------
    leaves : list
        In order.
    structure : optree.PyTreeSpec
        The argument of `unflatten`; it can be compared, hashed and pickled.

    Examples
    --------
    >>> from compgraph.trees import flatten, unflatten
    >>> leaves, structure = flatten({"w": [1.0, 2.0], "b": None})
    >>> leaves, unflatten(structure, [3.0, 4.0])
    ([1.0, 2.0], {'w': [3.0, 4.0], 'b': None})
    """
    library = _library or _import_library()
    if isinstance(tree, np.ndarray):
        return [tree], _leaf_structure
    while True:
        leaves, structure = library.tree_flatten(tree, namespace=NAMESPACE)
        new_classes = set(map(type, leaves)) - _leaf_classes
        if not new_classes:
            return leaves, structure
        classes = list(filter(dataclasses.is_dataclass, new_classes))
        if len(_leaf_classes) < _MAX_LEAF_CLASSES:
            _leaf_classes.update(new_classes.difference(classes))
        for kind in classes:
            _register(kind)
        if not classes:
            return leaves, structure


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """A tree of a structure, with other leaves."""
    return structure.unflatten(leaves)


def _import_library() -> Any:
    """Import optree, or its fallback, at the first use, which keeps ``import compgraph`` fast."""
    global _library, _leaf_structure
    library: Any
    try:
        import optree as library

        kind = library.PyTreeSpec
    except ModuleNotFoundError:  # in a browser, for which it is not built
        from . import optree_fallback as library

        kind = library.Structure
    copyreg.pickle(kind, _reduce_structure)
    _leaf_structure = library.tree_flatten(0.0, namespace=NAMESPACE)[1]
    _library = library
    return library


def _register(cls: type) -> None:
    """Register a dataclass as a container of its fields."""
    names = tuple(field.name for field in dataclasses.fields(cls))

    def parts(instance: object) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
        return tuple(getattr(instance, name) for name in names), names, names

    def rebuild(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
        instance: Any = object.__new__(cls)  # without __init__, which may check or convert its arguments
        for name, value in zip(names, values, strict=True):
            object.__setattr__(instance, name, value)
        return instance

    register_container(cls, parts, rebuild)


def register_container(cls: type, flatten_function: Callable[[Any], Any], rebuild: Callable[[Any, Any], Any]) -> None:
    """Register a class as a container, once, by the two functions that optree's registration takes."""
    library = _library or _import_library()
    with _registration_lock:
        if cls not in _registered_classes:
            library.register_pytree_node(cls, flatten_function, rebuild, namespace=NAMESPACE)
            _registered_classes.add(cls)


def _rebuilt(example: object) -> Any:
    """Return the structure of a tree; pickles call it."""
    return flatten(example)[1]


def _reduce_structure(structure: Any) -> Any:
    """Pickle a structure as an example of a tree, so that loading registers the dataclasses in it."""
    if structure.namespace != NAMESPACE:
        return object.__reduce_ex__(structure, 2)
    return _rebuilt, (unflatten(structure, range(structure.num_leaves)),)
