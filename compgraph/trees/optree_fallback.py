"""The used part of optree in Python, for platforms without optree, such as browsers.

Names and results are those of optree, except for texts of errors.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_registered: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)


class Entry:
    """One step into a tree: the class of the container, and the key, the position or the field."""

    __slots__ = ("entry", "kind")

    def __init__(self, kind: type, entry: Any) -> None:
        self.kind, self.entry = kind, entry

    def codify(self) -> str:
        """The step as it is written in Python."""
        if self.kind in _registered:
            return f".{self.entry}"
        names = _fields(self.kind)
        return f".{names[self.entry]}" if names is not None else f"[{self.entry!r}]"


class Accessor(tuple[Entry, ...]):
    """The way to a leaf."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> Any:
        item = super().__getitem__(place)
        return Accessor(item) if isinstance(place, slice) else item

    def codify(self, root: str = "") -> str:
        """The way as it is written in Python."""
        return root + "".join(entry.codify() for entry in self)


class Structure:
    """How a tree nests: `kind` is the class of a container, None for a leaf; `rest` what else is to be known to make it."""

    __slots__ = ("entries", "kind", "num_leaves", "parts", "rest")
    namespace = "compgraph"

    def __init__(self, kind: type | None, entries: Sequence[Any], parts: Sequence[Structure], rest: Any) -> None:
        self.kind, self.entries, self.parts, self.rest = kind, tuple(entries), tuple(parts), rest
        self.num_leaves: int = 1 if kind is None else sum(part.num_leaves for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.kind, self.entries, self.parts))

    def __repr__(self) -> str:
        return f"Structure({self.unflatten([_Star()] * self.num_leaves)!r})"

    def _key(self) -> Any:
        rest = self.rest[0] if self.kind in (OrderedDict, defaultdict) else None if self.kind is dict else self.rest
        return self.kind, self.entries, self.parts, rest

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.kind is None

    def children(self) -> list[Structure]:
        """The structures of what a container holds."""
        return list(self.parts)

    def accessors(self) -> list[Accessor]:
        """The ways to the leaves."""
        if self.kind is None:
            return [Accessor()]
        pairs = zip(self.entries, self.parts, strict=True)
        return [Accessor((Entry(self.kind, entry), *way)) for entry, part in pairs for way in part.accessors()]

    def paths(self) -> list[tuple[Any, ...]]:
        """The keys, positions and fields on the ways to the leaves."""
        return [tuple(step.entry for step in way) for way in self.accessors()]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree, with other leaves."""
        new_leaves = list(leaves)
        if len(new_leaves) != self.num_leaves:
            raise ValueError(f"the structure has {self.num_leaves} leaves, and {len(new_leaves)} were given")
        return self._rebuild(iter(new_leaves))

    def _rebuild(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        values = [part._rebuild(leaves) for part in self.parts]
        return _joined(self.kind, self.entries, values, self.rest)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of another tree at the leaves of this one."""
        if self.kind is None:
            return [tree]
        kind, entries, values, _ = _parted(tree)  # as in optree, the maximal length of a deque is ignored
        alike = kind in _MAPPINGS if self.kind in _MAPPINGS else kind is self.kind
        if not alike or set(entries) != set(self.entries) or len(entries) != len(self.entries):
            raise ValueError(f"expected what nests as {self!r}, got {tree!r}")
        subtrees = dict(zip(entries, values, strict=True))
        return [leaf for key, part in zip(self.entries, self.parts, strict=True) for leaf in part.flatten_up_to(subtrees[key])]


class _Star:
    """Represents a leaf in a text."""

    def __repr__(self) -> str:
        return "*"


def tree_flatten(tree: Any, namespace: str = "") -> tuple[list[Any], Structure]:
    """The leaves of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _structure(tree, leaves)


def register_pytree_node(
    kind: type, parts: Callable[[Any], Any], unflatten_function: Callable[[Any, Any], Any], namespace: str = ""
) -> None:
    """Let what instances of a class hold be found."""
    _registered[kind] = parts, unflatten_function


def _structure(tree: Any, leaves: list[Any]) -> Structure:
    kind, entries, values, rest = _parted(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    return Structure(kind, entries, [_structure(value, leaves) for value in values], rest)


def _parted(tree: Any) -> tuple[type | None, Sequence[Any], Sequence[Any], Any]:
    """Return the class of a container, its keys, its values in order, and other data needed to rebuild it."""
    kind = type(tree)
    if kind in _MAPPINGS:
        keys = list(tree) if kind is OrderedDict else _sorted(tree)
        metadata = (getattr(tree, "default_factory", None), list(tree))  # a dictionary keeps the order of its keys
        return kind, keys, [tree[key] for key in keys], metadata
    if kind in _SEQUENCES or _fields(kind) is not None:
        return kind, range(len(tree)), list(tree), getattr(tree, "maxlen", None)
    if kind in _registered:
        values, names, entries = _registered[kind][0](tree)
        return kind, entries, values, names
    return (kind, (), (), None) if tree is None else (None, (), (), None)


def _joined(kind: type, entries: Sequence[Any], values: list[Any], rest: Any) -> Any:
    """A container of what `_parted` gave."""
    if kind in _MAPPINGS:
        factory, order = rest
        values_by_key = dict(zip(entries, values, strict=True))
        mapping: Any = defaultdict(factory) if kind is defaultdict else kind()
        mapping.update((key, values_by_key[key]) for key in order)
        return mapping
    if kind is deque:
        return deque(values, rest)
    if kind in _registered:
        return _registered[kind][1](rest, values)
    if kind is type(None):
        return None
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a named tuple, or of one of Python's own such (``os.stat_result``); None of other classes."""
    if not issubclass(kind, tuple) or kind is tuple:
        return None
    names = getattr(kind, "_fields", None)
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return names
    if kind.__bases__ == (tuple,) and isinstance(getattr(kind, "n_sequence_fields", None), int):
        return tuple(kind.__match_args__)  # type: ignore[attr-defined]
    return None


def _sorted(keys: Iterable[Any]) -> list[Any]:
    """Keys in order: sorted, where they cannot be by their classes first, and where that cannot be as they stand."""
    try:
        return sorted(keys)
    except TypeError:
        try:
            return sorted(keys, key=lambda key: (f"{type(key).__module__}.{type(key).__qualname__}", key))
        except TypeError:
            return list(keys)


_LEAF = Structure(None, (), (), None)
