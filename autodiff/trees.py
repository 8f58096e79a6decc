"""Arguments and results that nest: lists, tuples, dictionaries, named tuples, dataclasses, None."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optree

NAMESPACE = "autodiff"
Argnums = int | str | Sequence[int | str]


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

    optree.register_pytree_node(kind, parts, made, namespace=NAMESPACE)


class Arguments:
    """The arguments a function is differentiated by, as one row of leaves, and the function of these.

    Parameters
    ----------
    operator : str
        Who asks, for messages.
    f : callable
        The function.
    args, kwargs : sequence, mapping
        Its arguments.
    argnums : int, str, or sequence of them
        Which to differentiate by: positions, or names of parameters.

    Attributes
    ----------
    leaves : list
        The arrays in them, in order.
    """

    def __init__(
        self, operator: str, f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], argnums: Argnums
    ) -> None:
        self.f, self.args, self.kwargs = f, tuple(args), dict(kwargs)
        self.single = isinstance(argnums, (int, str, np.integer))
        wanted: Any = [argnums] if self.single else list(argnums)  # type: ignore[arg-type]
        self.places = [self._place(operator, argument) for argument in wanted]
        given = [self.args[place] if isinstance(place, int) else self.kwargs[place] for place in self.places]
        self.leaves, self.structure = flatten(given)
        if not self.leaves:
            raise TypeError(f"{operator}: what is to be differentiated by, {given}, holds no array and has no derivatives")

    def _place(self, operator: str, argument: Any) -> int | str:
        """An argument as its position among `args`, or its name among `kwargs`."""
        if isinstance(argument, str):
            if argument in self.kwargs:
                return argument
            names = list(inspect.signature(self.f).parameters)
            if argument not in names:
                raise ValueError(f"{operator}: the function has no argument called {argument!r}")
            position = names.index(argument)
            if position >= len(self.args):
                raise ValueError(f"{operator}: argument {argument!r} was not given")
            return position
        if not -len(self.args) <= argument < len(self.args):
            raise ValueError(f"{operator}: argnums asks for argument {argument}, but {len(self.args)} were given by position")
        return int(argument) % len(self.args)

    def __call__(self, *leaves: Any) -> Any:
        """Call the function with other leaves."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, tree in zip(self.places, unflatten(self.structure, leaves), strict=True):
            if isinstance(place, int):
                args[place] = tree
            else:
                kwargs[place] = tree
        return self.f(*args, **kwargs)

    def shaped(self, results: Sequence[Any]) -> Any:
        """One result for each leaf, as the arguments nest: a tree, or a tuple of trees if several were asked for."""
        trees = unflatten(self.structure, results)
        return trees[0] if self.single else tuple(trees)
