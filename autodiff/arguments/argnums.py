"""Which arguments of a function are differentiated: by position or by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from compgraph.interception import lent
from compgraph.values import Borrowed, Value, describe

from .aliases import find_shared, lock_views
from .checks import as_argument
from .derived import pickle_as_call
from .labels import is_labelled, labelled, named_labels, require_aligned
from .pytrees import flatten, unflatten

Argnums = int | str | Sequence[int | str]
Operator = TypeVar("Operator", bound=Callable[..., Any])


def of_functions(operator: Operator) -> Operator:
    """An operator of functions, which raises where it is given a node, and takes ``argnum=``, as HIPS/autograd has it, too."""

    @functools.wraps(operator)
    def applied(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Value):
            raise TypeError(
                f"{operator.__name__} takes a function, not the {describe(args[0])}; the derivatives of a node are "
                "autodiff.gradient(node, wrt)"
            )
        if "argnum" in kwargs:
            if "argnums" in kwargs or len(args) > 1:
                raise TypeError(f"{operator.__name__}: argnum and argnums are the same argument; give one of them")
            kwargs["argnums"] = kwargs.pop("argnum")
        return pickle_as_call(applied, operator(*args, **kwargs), args, kwargs)

    return applied  # type: ignore[return-value]


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
    single : bool
        Whether one argument was asked for, rather than a sequence.

    Raises
    ------
    TypeError
        If `argnums` is neither, or the arguments hold no array.
    ValueError
        If `argnums` is out of range, names no argument, or names one twice.
    """

    def __init__(
        self, operator: str, f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], argnums: Argnums
    ) -> None:
        self.operator, self.f, self.args, self.kwargs = operator, f, tuple(args), dict(kwargs)
        self.single = isinstance(argnums, (int, str, np.integer))
        wanted: Any = (argnums,) if self.single or not isinstance(argnums, Sequence) else argnums
        self.places = [self._place(argument) for argument in wanted]
        if len(set(self.places)) < len(self.places):
            raise ValueError(f"{operator}: argnums {argnums} asks for the same argument twice")
        given = [self.args[place] if isinstance(place, int) else self.kwargs[place] for place in self.places]
        self.leaves, self.structure = flatten(given)
        if not self.leaves:
            raise TypeError(f"{operator}: what is to be differentiated by, {given}, holds no array and has no derivatives")
        self.labelled = any(map(is_labelled, self.leaves))
        self.shared: frozenset[int] = frozenset()
        if len(self.leaves) > 1 or len(self.args) + len(self.kwargs) > 1:
            self.shared = find_shared(self.leaves, flatten(self.kept())[0])
        if self.labelled:
            require_aligned(operator, [*_leaves_of(self.args), *_leaves_of(self.kwargs)])

    def _place(self, argument: int | str) -> int | str:
        """An argument as its position among `args`, or its name among `kwargs`."""
        if isinstance(argument, str):
            if argument in self.kwargs:
                return argument
            names = _positional(self.f)
            if argument not in names:
                raise ValueError(f"{self.operator}: the function has no argument called {argument!r}, or it was not given")
            position = names.index(argument)
            if position >= len(self.args):
                raise ValueError(f"{self.operator}: argument {argument!r} was not given")
            return position
        if not isinstance(argument, (int, np.integer)):
            raise TypeError(f"{self.operator}: argnums is a position, a name, or a sequence of them, not {argument!r}")
        if not -len(self.args) <= argument < len(self.args):
            raise ValueError(
                f"{self.operator}: argnums asks for argument {argument}, but {len(self.args)} were given by position; one that "
                "is given by keyword is asked for by its name"
            )
        return int(argument) % len(self.args)

    def kept(self) -> list[Any]:
        """The arguments that are not differentiated and that the function gets unchanged."""
        if len(self.places) == len(self.args) + len(self.kwargs):
            return []
        by_position = [value for place, value in enumerate(self.args) if place not in self.places]
        return by_position + [value for name, value in self.kwargs.items() if name not in self.places]

    def arrays(self) -> list[Any]:
        """The leaves, as arrays or nodes that have derivatives."""
        try:
            return list(map(as_argument, self.leaves))
        except TypeError:
            for name, leaf in zip(self.names, self.leaves, strict=True):
                as_argument(leaf, f"{self.operator}: {name}")  # the same error with a name, which takes time to find
            raise

    @property
    def nested(self) -> bool:
        """Whether one of the arguments is not an array, but nests."""
        return not all(part.is_leaf() for part in self.structure.children())

    @property
    def names(self) -> list[str]:
        """What to call each leaf in messages: the argument, and where in it."""
        return [path[1:].codify(f"argument {self.places[path[0].entry]!r}") for path in self.structure.accessors()]

    @property
    def advice(self) -> str:
        """What to say where the graph was lost and a list of numbers was given, perhaps for an array."""
        given = [self.args[place] if isinstance(place, int) else self.kwargs[place] for place in self.places]
        if any(isinstance(tree, list) and all(isinstance(x, (int, float)) for x in tree) for tree in given):
            return ". A list of numbers is handed to the function as a list; for an array give np.array(...)"
        return ""

    def given(self) -> Iterator[Any]:
        """The arguments as the caller gave them."""
        yield from self.args
        yield from self.kwargs.values()

    def __call__(self, *leaves: Any) -> Any:
        """Call the function with other leaves; its other arguments belong to the caller."""
        args, kwargs = list(map(lent, self.args)), {name: lent(value) for name, value in self.kwargs.items()}
        for place, tree in zip(self.places, unflatten(self.structure, leaves), strict=True):
            if isinstance(place, int):
                args[place] = tree
            else:
                kwargs[place] = tree
        if self.shared:
            views: list[Any] = [x for x in flatten((args, kwargs))[0] if type(x) is Borrowed]
            lock_views(views, [self.leaves[position] for position in self.shared])
        if not self.labelled:
            return self.f(*args, **kwargs)
        try:
            return self.f(*args, **kwargs)
        except (AttributeError, IndexError) as error:
            error.add_note(
                f"{self.operator}: the function is given the numbers of {named_labels(self.leaves)} as plain arrays, without "
                "labels and methods: take elements by position, and what is looked up by label (x.index.get_loc) outside"
            )
            raise

    def shaped(self, results: Sequence[Any]) -> Any:
        """One result for each leaf, as the arguments nest: a tree, or a tuple of trees if several were asked for.

        A plain array of the shape of an argument that has labels, as pandas and xarray give them, has these.
        """
        if self.labelled:
            results = [labelled(result, leaf) for result, leaf in zip(results, self.leaves, strict=True)]
        trees = unflatten(self.structure, results)
        return trees[0] if self.single else tuple(trees)

    def tangents(self, tree: Any) -> list[Any]:
        """One tangent for each leaf, from what nests as the arguments do: a tree, or a tuple of trees."""
        trees = [tree] if self.single else tree
        if not isinstance(trees, (tuple, list)):
            raise ValueError(f"{self.operator}: tangents of {len(self.places)} arguments are a tuple, not {type(tree).__name__}")
        if len(trees) != len(self.places):
            raise ValueError(f"{self.operator}: {len(trees)} tangents were given for {len(self.places)} arguments")
        leaves, given = flatten(list(trees))
        if given != self.structure:
            raise ValueError(f"{self.operator}: the tangents nest as {given}, the arguments as {self.structure}")
        for name, leaf, tangent in zip(self.names, self.leaves, leaves, strict=True) if self.labelled else ():
            require_aligned(self.operator, [(name, leaf), ("its tangent", tangent)])
        return leaves


def _leaves_of(tree: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of arguments, and what to call each in messages."""
    leaves, structure = flatten(tree)
    for path, leaf in zip(structure.accessors(), leaves, strict=True):
        yield path[1:].codify(f"argument {path[0].entry!r}"), leaf


def _positional(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters that arguments given by position go to, in order; none where Python does not know."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
