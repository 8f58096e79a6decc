"""Selection of the arguments that a function is differentiated by."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compgraph.interception import as_borrowed
from compgraph.trees import flatten, unflatten
from compgraph.values import Borrowed, Value

from .labeled_arrays import attach_labels, describe_labeled, is_labeled, require_aligned
from .shared_memory import find_shared_positions, make_views_read_only
from .validation import as_argument

Argnums = int | str | Sequence[int | str]


def require_argnums(operator: str, argnums: object) -> None:
    """Raise a TypeError unless `argnums` consists of positions and names.

    A frequent mistake is ``grad(f, x)``, which passes the arguments of the function in place of `argnums`.
    """
    argnum_list = argnums if isinstance(argnums, Sequence) else (argnums,)
    if any(isinstance(argument, Value) or not isinstance(argument, (int, str, np.integer)) for argument in argnum_list):
        point = "x, v" if operator in ("hvp", "hessian_vector_product") else "x"
        raise TypeError(
            f"{operator}: argnums must be a position, a name, or a sequence of them, not {reprlib.repr(argnums)}. {operator}(f) "
            f"returns a function, which takes the arguments: write {operator}(f)({point})"
        )


class Arguments:
    """The arguments of a call, and the leaves of those that the function is differentiated by.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    f : callable
        The function.
    args, kwargs : sequence, mapping
        Its arguments.
    argnums : int, str, or sequence of them
        Positions or names of the arguments to differentiate by.

    Attributes
    ----------
    selected : list of int or str
        The arguments to differentiate by, as positions in `args` or names in `kwargs`.
    is_single : bool
        Whether `argnums` is one argument rather than a sequence.
    leaves : list
        The arrays in the selected arguments, in order.
    structure : PyTreeSpec
        Their nesting.
    has_labels : bool
        Whether a leaf is an array of pandas or xarray.
    shared_positions : frozenset of int
        The positions of leaves that share memory with another leaf or argument.

    Raises
    ------
    TypeError
        If `argnums` has another type, or the arguments contain no array.
    ValueError
        If `argnums` is out of range, is not the name of an argument, or repeats one.
    """

    def __init__(
        self, operator: str, f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], argnums: Argnums
    ) -> None:
        self.operator, self.f, self.args, self.kwargs = operator, f, tuple(args), dict(kwargs)
        require_argnums(operator, argnums)
        self.is_single = isinstance(argnums, (int, str, np.integer))
        argnum_list: Any = (argnums,) if self.is_single else argnums
        self.selected = [self._locate(argument) for argument in argnum_list]
        if len(set(self.selected)) < len(self.selected):
            raise ValueError(f"{operator}: argnums {argnums} contains the same argument twice. Pass each once")
        trees = self._selected_values()
        self.leaves, self.structure = flatten(trees)
        if not self.leaves:
            raise TypeError(
                f"{operator}: the arguments to differentiate by, {trees}, contain no array. Pass the argnums of an argument "
                "with arrays"
            )
        self.has_labels = any(map(is_labeled, self.leaves))
        self.shared_positions: frozenset[int] = frozenset()
        if len(self.leaves) > 1 or len(self.args) + len(self.kwargs) > 1:
            self.shared_positions = find_shared_positions(self.leaves, flatten(self.constants())[0])
        if self.has_labels:
            require_aligned(operator, [*_named_leaves(self.args), *_named_leaves(self.kwargs)])

    def _locate(self, argument: int | str) -> int | str:
        """Return the position of an argument in `args`, or its name in `kwargs`."""
        if isinstance(argument, str):
            if argument in self.kwargs:
                return argument
            names = _positional_parameters(self.f)
            if argument not in names or names.index(argument) >= len(self.args):
                raise ValueError(
                    f"{self.operator}: argnums contains {argument!r}, which is not an argument of this call; the function has "
                    f"the positional parameters {names}"
                )
            return names.index(argument)
        if not -len(self.args) <= argument < len(self.args):
            advice = (
                f"Write {self.operator}(f)(x)" if argument == 0 and not self.kwargs else "Select a keyword argument by its name"
            )
            raise ValueError(
                f"{self.operator}: argnums {argument} is out of range, because the function was called with {len(self.args)} "
                f"positional arguments. {advice}"
            )
        return int(argument) % len(self.args)

    def _selected_values(self) -> list[Any]:
        """Return the arguments to differentiate by."""
        return [self.args[key] if isinstance(key, int) else self.kwargs[key] for key in self.selected]

    def constants(self) -> list[Any]:
        """Return the arguments that are not differentiated."""
        if len(self.selected) == len(self.args) + len(self.kwargs):
            return []
        by_position = [value for position, value in enumerate(self.args) if position not in self.selected]
        return by_position + [value for name, value in self.kwargs.items() if name not in self.selected]

    def values(self) -> Iterator[Any]:
        """Yield all arguments."""
        yield from self.args
        yield from self.kwargs.values()

    def arrays(self) -> list[Any]:
        """Return the leaves, as differentiable arrays or nodes."""
        try:
            return list(map(as_argument, self.leaves))
        except TypeError:
            for name, leaf in zip(self.names, self.leaves, strict=True):
                as_argument(leaf, f"{self.operator}: {name}")  # raises the same error with the name, which is slow to compute
            raise

    @property
    def is_nested(self) -> bool:
        """Whether one of the selected arguments is a container."""
        return not all(part.is_leaf() for part in self.structure.children())

    @property
    def names(self) -> list[str]:
        """The name of each leaf for messages, such as ``argument 0['w']``."""
        return [path[1:].codify(f"argument {self.selected[path[0].entry]!r}") for path in self.structure.accessors()]

    @property
    def advice(self) -> str:
        """Advice for a list of numbers among the arguments, which was perhaps meant as an array; empty without one."""
        if any(isinstance(tree, list) and all(isinstance(x, (int, float)) for x in tree) for tree in self._selected_values()):
            return "A list of numbers is passed to the function as a list; for an array pass np.array(...)"
        return ""

    def __call__(self, *leaves: object) -> Any:
        """Call the function with other leaves. Its other arguments are borrowed: a write copies them."""
        args, kwargs = list(map(as_borrowed, self.args)), {name: as_borrowed(value) for name, value in self.kwargs.items()}
        for key, tree in zip(self.selected, unflatten(self.structure, leaves), strict=True):
            if isinstance(key, int):
                args[key] = tree
            else:
                kwargs[key] = tree
        if self.shared_positions:
            views: list[Any] = [x for x in flatten((args, kwargs))[0] if type(x) is Borrowed]
            make_views_read_only(views, [self.leaves[position] for position in self.shared_positions])
        try:
            return self.f(*args, **kwargs)
        except TypeError as error:
            if self.advice:
                error.add_note(f"{self.operator}: {self.advice}")
            raise
        except (AttributeError, IndexError) as error:
            if not self.has_labels:
                raise
            error.add_note(
                f"{self.operator} passes the values of {describe_labeled(self.leaves)} to the function as plain arrays, without "
                "labels and methods. Select elements by position; look up labels (x.index.get_loc) outside the function"
            )
            raise

    def nest(self, results: Sequence[Any]) -> Any:
        """Return one result per leaf, nested like the selected arguments; a tuple if `argnums` is a sequence.

        A result that has the shape of a labeled argument (pandas, xarray) gets its labels.
        """
        if self.has_labels:
            results = [attach_labels(result, leaf) for result, leaf in zip(results, self.leaves, strict=True)]
        trees = unflatten(self.structure, results)
        return trees[0] if self.is_single else tuple(trees)

    def flatten_tangents(self, tree: object) -> list[Any]:
        """Return the leaves of tangents; raise unless they nest like the selected arguments, as the results of `nest` do."""
        trees = [tree] if self.is_single else tree
        if not isinstance(trees, (tuple, list)):
            raise ValueError(
                f"{self.operator}: the tangents of {len(self.selected)} arguments must be a tuple, not a {type(tree).__name__}"
            )
        if len(trees) != len(self.selected):
            raise ValueError(
                f"{self.operator}: {len(trees)} tangents were passed for {len(self.selected)} arguments. Pass one per argument"
            )
        leaves, structure = flatten(list(trees))
        if structure != self.structure:
            raise ValueError(
                f"{self.operator}: the tangents nest as {structure}, but the arguments as {self.structure}. Nest them alike"
            )
        for name, leaf, tangent in zip(self.names, self.leaves, leaves, strict=True) if self.has_labels else ():
            require_aligned(self.operator, [(name, leaf), ("its tangent", tangent)])
        return leaves


def _named_leaves(tree: object) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of arguments, with their names for messages."""
    leaves, structure = flatten(tree)
    for path, leaf in zip(structure.accessors(), leaves, strict=True):
        yield path[1:].codify(f"argument {path[0].entry!r}"), leaf


def _positional_parameters(f: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters; an empty list for functions without a signature."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
