"""The used part of optree in Python, for platforms without optree, such as browsers.

Names and results are those of optree, except for texts of errors.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_registered_classes: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)


class Entry:
    """One step into a tree: the class of the container, and the key, the position or the field."""

    __slots__ = ("cls", "entry")

    def __init__(self, cls: type, entry: Any) -> None:
        self.cls, self.entry = cls, entry

    def codify(self) -> str:
        """The step as Python code."""
        if self.cls in _registered_classes:
            return f".{self.entry}"
        names = _fields(self.cls)
        return f".{names[self.entry]}" if names is not None else f"[{self.entry!r}]"


class Accessor(tuple[Entry, ...]):
    """The path to a leaf."""

    __slots__ = ()

    def __getitem__(self, position: Any) -> Any:
        item = super().__getitem__(position)
        return Accessor(item) if isinstance(position, slice) else item

    def codify(self, root: str = "") -> str:
        """The path as Python code."""
        return root + "".join(entry.codify() for entry in self)


class Structure:
    """The structure of a tree: `cls` is the class of a container, None for a leaf; `metadata` are further data to rebuild it."""

    __slots__ = ("cls", "entries", "metadata", "num_leaves", "parts")
    namespace = "compgraph"

    def __init__(self, cls: type | None, entries: Sequence[Any], parts: Sequence[Structure], metadata: Any) -> None:
        self.cls, self.entries, self.parts, self.metadata = cls, tuple(entries), tuple(parts), metadata
        self.num_leaves: int = 1 if cls is None else sum(part.num_leaves for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.cls, self.entries, self.parts))

    def __repr__(self) -> str:
        return f"Structure({self.unflatten([_LeafText()] * self.num_leaves)!r})"

    def _key(self) -> Any:
        metadata = self.metadata[0] if self.cls in (OrderedDict, defaultdict) else None if self.cls is dict else self.metadata
        return self.cls, self.entries, self.parts, metadata

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.cls is None

    def children(self) -> list[Structure]:
        """The structures of a container's elements."""
        return list(self.parts)

    def accessors(self) -> list[Accessor]:
        """The paths to the leaves."""
        if self.cls is None:
            return [Accessor()]
        pairs = zip(self.entries, self.parts, strict=True)
        return [Accessor((Entry(self.cls, entry), *path)) for entry, part in pairs for path in part.accessors()]

    def paths(self) -> list[tuple[Any, ...]]:
        """The keys, positions and fields on the paths to the leaves."""
        return [tuple(step.entry for step in path) for path in self.accessors()]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure with new leaves."""
        new_leaves = list(leaves)
        if len(new_leaves) != self.num_leaves:
            raise ValueError(f"the structure has {self.num_leaves} leaves, and {len(new_leaves)} were passed")
        return self._rebuild(iter(new_leaves))

    def _rebuild(self, leaves: Iterator[Any]) -> Any:
        if self.cls is None:
            return next(leaves)
        values = [part._rebuild(leaves) for part in self.parts]
        return _unflatten_one_level(self.cls, self.entries, values, self.metadata)

    def flatten_up_to(self, tree: object) -> list[Any]:
        """Return the subtrees of another tree at the leaves of this one."""
        if self.cls is None:
            return [tree]
        cls, entries, values, _ = _flatten_one_level(tree)  # as in optree, the maximal length of a deque is ignored
        is_same_kind = cls in _MAPPINGS if self.cls in _MAPPINGS else cls is self.cls
        if not is_same_kind or set(entries) != set(self.entries) or len(entries) != len(self.entries):
            raise ValueError(f"expected a tree of structure {self!r}, got {tree!r}")
        subtrees = dict(zip(entries, values, strict=True))
        return [leaf for key, part in zip(self.entries, self.parts, strict=True) for leaf in part.flatten_up_to(subtrees[key])]


class _LeafText:
    """Represents a leaf in a text."""

    def __repr__(self) -> str:
        return "*"


def tree_flatten(tree: object, namespace: str = "") -> tuple[list[Any], Structure]:
    """The leaves of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _structure(tree, leaves)


def register_pytree_node(
    cls: type, flatten_function: Callable[[Any], Any], unflatten_function: Callable[[Any, Any], Any], namespace: str = ""
) -> None:
    """Register a class as a container: `flatten_function` flattens an instance, `unflatten_function` rebuilds it."""
    _registered_classes[cls] = flatten_function, unflatten_function


def _structure(tree: object, leaves: list[Any]) -> Structure:
    cls, entries, values, metadata = _flatten_one_level(tree)
    if cls is None:
        leaves.append(tree)
        return _LEAF
    return Structure(cls, entries, [_structure(value, leaves) for value in values], metadata)


def _flatten_one_level(tree: Any) -> tuple[type | None, Sequence[Any], Sequence[Any], Any]:
    """Return the class of a container, its keys, its values in order, and other data needed to rebuild it."""
    cls = type(tree)
    if cls in _MAPPINGS:
        keys = list(tree) if cls is OrderedDict else _sort_keys(tree)
        metadata = (getattr(tree, "default_factory", None), list(tree))  # a dictionary keeps the order of its keys
        return cls, keys, [tree[key] for key in keys], metadata
    if cls in _SEQUENCES or _fields(cls) is not None:
        return cls, range(len(tree)), list(tree), getattr(tree, "maxlen", None)
    if cls in _registered_classes:
        values, names, entries = _registered_classes[cls][0](tree)
        return cls, entries, values, names
    return (cls, (), (), None) if tree is None else (None, (), (), None)


def _unflatten_one_level(cls: type, entries: Sequence[Any], values: list[Any], metadata: Any) -> Any:
    """Rebuild a container from the results of `_flatten_one_level`."""
    if cls in _MAPPINGS:
        factory, order = metadata
        values_by_key = dict(zip(entries, values, strict=True))
        mapping: Any = defaultdict(factory) if cls is defaultdict else cls()
        mapping.update((key, values_by_key[key]) for key in order)
        return mapping
    if cls is deque:
        return deque(values, metadata)
    if cls in _registered_classes:
        return _registered_classes[cls][1](metadata, values)
    if cls is type(None):
        return None
    return cls(*values) if hasattr(cls, "_fields") else cls(values)


def _fields(cls: type) -> tuple[str, ...] | None:
    """The field names of a named tuple, or of a struct sequence such as ``os.stat_result``; None for other classes."""
    if not issubclass(cls, tuple) or cls is tuple:
        return None
    names = getattr(cls, "_fields", None)
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return names
    if cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_sequence_fields", None), int):
        return tuple(cls.__match_args__)  # type: ignore[attr-defined]
    return None


def _sort_keys(keys: Iterable[Any]) -> list[Any]:
    """Sort keys; if they cannot be compared, sort them by class first; if that fails too, keep their order."""
    try:
        return sorted(keys)
    except TypeError:
        try:
            return sorted(keys, key=lambda key: (f"{type(key).__module__}.{type(key).__qualname__}", key))
        except TypeError:
            return list(keys)


_LEAF = Structure(None, (), (), None)
