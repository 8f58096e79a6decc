"""Arguments and results that nest: lists, tuples, dictionaries, named tuples, dataclasses, None."""

from __future__ import annotations

import copyreg
import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import optree

from compgraph.graph.context import renewed

NAMESPACE = "autodiff"
_registering = renewed(threading.Lock())
_registered: set[type] = set()
LEAF: Any = optree.tree_flatten(np.zeros(()), namespace=NAMESPACE)[1]  # type: ignore[arg-type]


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
        What `unflatten` puts other leaves into.

    Examples
    --------
    >>> leaves, structure = flatten({"w": [1.0, 2.0], "b": None})
    >>> leaves, unflatten(structure, [3.0, 4.0])
    ([1.0, 2.0], {'w': [3.0, 4.0], 'b': None})
    """
    if isinstance(tree, np.ndarray):
        return [tree], LEAF
    while True:
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
        unknown = {type(leaf) for leaf in leaves if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)}
        if not unknown:
            return leaves, structure
        for kind in unknown:
            _register(kind)


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """A tree of a structure, with other leaves."""
    return optree.tree_unflatten(structure, leaves)


def with_aux(operator: str, result: Any) -> tuple[Any, Any]:
    """The value and the rest of what a function with auxiliary results returned."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"{operator}: has_aux=True, but the function returned a {type(result).__name__}, not a pair (value, aux)")
    return result[0], result[1]


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
            optree.register_pytree_node(kind, parts, made, namespace=NAMESPACE)
            _registered.add(kind)


def _rebuilt(example: Any) -> Any:
    return flatten(example)[1]


def _reduced(structure: Any) -> Any:
    """A structure in a pickle: where dataclasses are in it, a tree of it, so that they are registered where it is loaded."""
    if structure.namespace != NAMESPACE:
        return object.__reduce_ex__(structure, 2)
    return _rebuilt, (unflatten(structure, range(structure.num_leaves)),)


copyreg.pickle(optree.PyTreeSpec, _reduced)
