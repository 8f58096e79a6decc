"""Plain arrays made while a function is differentiated: NumPy's own in all respects, but nodes once a node is written into them.

A program fills ``np.zeros(n)`` and cannot know beforehand whether with numbers or with nodes. A `Promotable` is an array over
real memory, and to NumPy, SciPy and C code it is nothing else. It has the slots of a node. When a node is written into it, or
into a view of it, the array and all its views become nodes by a change of class. What is computed or copied from it is promotable
too.

An array that was there before the function was called belongs to the caller. Within the function it is seen as `Given`: the same
memory; what is computed from it is promotable, and a node written into it raises.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..operations import getitem
from .aliasing import place_in, window
from .context import is_recording, wrappers
from .history import hollow_out
from .hollow import refused
from .interpreter import frame_up
from .kinds import INERT
from .layout import Layout, TangentLayout
from .node import InertNode, Value, describe, fill, new_view
from .operands import gathered, to_plain
from .record import record
from .saved import LARGE, same_bits, watched

ndarray = np.ndarray


class Promotable(Layout):
    """A plain array that becomes a node once a node is written into it or into a view of it."""

    __slots__ = ()
    is_given = False

    def __array_finalize__(self, source: Any) -> None:
        base = self.base
        if isinstance(self, TangentLayout):  # a view is wrapped as its root; a copy may be made within another function
            inherited = getattr(source, "_shadow", None)
            self._shadow = (inherited or wrappers.get()) if base is not None else (wrappers.get() or inherited)
        if isinstance(base, Promotable):
            _remember(base, self)
        elif isinstance(source, Promotable) and source.is_given:  # a copy: memory of its own
            self.__class__ = _FRESH[type(self)]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if return_scalar:
            return array[()]
        if type(array) is ndarray and array.dtype.kind in NUMERIC:
            return promotable(array)
        return array

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        for kind in types:
            if issubclass(kind, Value):
                return NotImplemented
        if function is np.take:  # which does not ask the index
            index = kwargs["indices"] if "indices" in kwargs else args[1]
            if _differs(index):
                return index.__array_function__(function, types, args, kwargs)
        return _fresh(ndarray.__array_function__(self, function, types, args, kwargs))

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(value) in _NUMBERS or self.dtype.kind not in "fc" or not holds_node(value):
            if self.dtype.kind in "biu" and holds_node(value):
                value = _integers(value, self.dtype)
                if _holds_batch(value):
                    promote(self)
                    self[index] = value
                    return
            try:
                ndarray.__setitem__(self, index, value)  # which asks a node for its number, if integers are wanted
            except IndexError:
                if not _differs(index):
                    raise
                promote(self)
                self[index] = value
        elif not _is_followed(value):
            ndarray.__setitem__(self, index, to_plain(value))
        else:
            promote(self)
            self[index] = value

    def fill(self, value: Any) -> None:
        """As ``ndarray.fill``."""
        self[...] = value

    def numbers_now(self) -> Any:
        """The present numbers as a plain array that nobody changes later: an operand as the graph keeps it.

        It is a copy, shared by all operations until the numbers change. A large array of the caller's is not copied; see `saved`.
        """
        plain = new_view(self, ndarray)
        kept = getattr(self, "_operands", None)
        if self.is_given and plain.nbytes > LARGE:
            if kept is None:
                kept = self._operands = watched(plain)
            return kept
        if kept is None or not same_bits(kept, plain):
            kept = self._operands = plain.copy("K")
        return kept

    def __reduce__(self) -> Any:
        return new_view(self, ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return new_view(self, ndarray).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


class TangentPromotable(TangentLayout, Promotable):
    """A Promotable within vmap, or a function through which tangents are pushed; `_shadow` holds functions that add these."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        if _differs(index):  # which NumPy would not ask
            return record(getitem, (new_view(self, ndarray), *(index if isinstance(index, tuple) else (index,))))
        return ndarray.__getitem__(self, index)

    def take(self, indices: Any, *args: Any, **kwargs: Any) -> Any:
        """As ``ndarray.take``."""
        if _differs(indices):
            return np.take(self, indices, *args, **kwargs)
        return ndarray.take(self, indices, *args, **kwargs)


class Given(Promotable):
    """A view of an array that was there before the differentiated function was called; a node written into it raises."""

    __slots__ = ()
    is_given = True


class TangentGiven(TangentPromotable):
    """A Given within a function through which tangents are pushed."""

    __slots__ = ()
    is_given = True


_FRESH: dict[type, type] = {
    Promotable: Promotable, Given: Promotable, TangentPromotable: TangentPromotable, TangentGiven: TangentPromotable,
}  # fmt: skip
PROMOTABLE = frozenset(_FRESH)
NUMERIC = "biufc"  # the dtype kinds of promotable arrays; integers and booleans, because floating arrays are computed from them
ARRAYS = PROMOTABLE | {ndarray}  # the classes of plain arrays
_NUMBERS = frozenset({float, int, bool, complex, ndarray, np.float64, np.float32, np.int64, np.bool_, *_FRESH})
_PRUNED = 16  # views that are remembered before the dead ones are dropped


def promotable(array: Any, is_owner: bool = False) -> Any:
    """Make a new plain array promotable: it becomes a node when a node is written into it.

    If `is_owner`, the array owns its memory, as C code that resizes its own arrays requires.
    """
    kind = TangentPromotable if wrappers.get() else Promotable
    if not is_owner or array.base is not None:
        return new_view(array, kind)
    owner: Any = ndarray.__new__(kind, array.shape, array.dtype, order="C" if array.flags.c_contiguous else "F")
    new_view(owner, ndarray)[...] = array
    return owner


def given(array: Any) -> Any:
    """A plain array of the caller's, as the function that is differentiated sees it."""
    return new_view(array, TangentGiven if wrappers.get() else Given)


def _fresh(made: Any) -> Any:
    """The result of a NumPy function of a promotable array: new arrays become promotable, also in lists and tuples."""
    if type(made) is ndarray and made.base is None and made.dtype.kind in NUMERIC:
        return promotable(made)
    return type(made)(map(_fresh, made)) if type(made) in (list, tuple) else made


def plainly(value: Any) -> Any:
    """A value to hand to the user: of a promotable or given array a plain view, others as they are."""
    return new_view(value, ndarray) if type(value) in _FRESH else value


def holds_node(value: Any) -> bool:
    """Whether a value is a node, or a list or tuple with one in it."""
    if type(value) is list or type(value) is tuple:
        return any(map(holds_node, value))
    return isinstance(value, Value)


def _differs(index: Any) -> bool:
    """Whether an index is another for each example of a vmap."""
    return any(isinstance(part, Value) and part.carries == "batch" for part in (index if isinstance(index, tuple) else (index,)))


def _integers(value: Any, dtype: Any) -> Any:
    """A value with nodes, to be stored as integers: floating values must be piecewise constant, such as those of ``np.floor``."""
    if isinstance(value, (list, tuple)):
        return [_integers(part, dtype) for part in value]
    if not isinstance(value, Value) or value.dtype.kind not in "fc":
        return value
    if type(value) in INERT or getattr(value, "_tangent", value) is None:
        return value.astype(dtype)
    raise refused(frame_up(2), f"the {describe(value)}")


def _is_followed(value: Any) -> bool:
    """Whether the graph or the tangents of a node, or of a node in a list, have to be kept: not under `no_graph`."""
    if isinstance(value, Value):
        return is_recording() or value.carries == "batch"
    return any(map(_is_followed, value)) if isinstance(value, (list, tuple)) else False


def _remember(root: Any, view: Any) -> None:
    """Enter a view into the list that its root keeps of them, as weak references."""
    views = getattr(root, "memory", None)
    if views is None:
        views = root.memory = []
    views.append(weakref.ref(view))
    if len(views) >= _PRUNED and not len(views) & (len(views) - 1):  # at powers of two
        views[:] = [reference for reference in views if reference() is not None]


def promote(array: Any) -> None:
    """Turn an array, what it is a view of, and all views of that into nodes, by a change of class."""
    if array.is_given:
        raise TypeError(
            f"a node is written into an array (shape {array.shape}, {array.dtype}) that was made before the differentiated "
            "function was called; it belongs to the caller. Copy it inside the function first: np.copy(a), or a.copy()"
        )
    base = array.base
    if isinstance(base, Value):  # the root is a node already; only this view was made since
        _become(array, record(window, (base,), place_in(base.plain, array)))
        return
    root = base if isinstance(base, Promotable) else array
    views = [view for reference in getattr(root, "memory", None) or () if (view := reference()) is not None]
    places = [place_in(root, view) for view in views]
    _promote_root(root)
    for view, place in zip(views, places, strict=True):
        if isinstance(view, Promotable) and (view.dtype.kind in "fc" or view.dtype == root.dtype):
            _become(view, record(window, (root,), place))


def _promote_root(root: Any) -> None:
    base = root.base
    if base is None:  # it owns the memory: a plain view would refer to it, and it to the view
        plain = np.array(root, subok=False, order="K")
    elif type(base) is ndarray:
        plain = window(base, **place_in(base, root))
    else:
        plain = new_view(root, ndarray)
    made: Any = plain
    if isinstance(root, TangentLayout):
        for wrap in getattr(root, "_shadow", ()):
            made = wrap(made)
        if not isinstance(made, TangentLayout):
            raise TypeError(
                f"a node is written into an array (shape {root.shape}) that was made within a function through which tangents "
                "were pushed, after that returned; copy it first (np.copy)"
            )
        _become(root, made)
        return
    root.__class__ = InertNode  # the write of an active node makes it active; see `inplace.writing`
    root.plain = plain
    root._operands = None
    fill(root, None, (), ())


def _become(array: Any, made: Any) -> None:
    """Give an array the class and the slots of the node that was made for it."""
    for kind in type(made).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(made, slot):
                setattr(array, slot, getattr(made, slot))
    array.__class__ = type(made)
    if new_view(made, ndarray).dtype != made.dtype:
        hollow_out(array)


def promoted(value: Any, operands: Any = ()) -> Any:
    """The target of a function that writes nodes: a promotable array becomes a node; others are returned unchanged.

    An array of integers or booleans is unchanged unless an operand is batched by a vmap: values are written into it.
    """
    if isinstance(value, Promotable) and (value.dtype.kind in "fc" or any(map(_holds_batch, operands))):
        promote(value)
    return value


def _holds_batch(value: Any) -> bool:
    """Whether a value is batched by a vmap, or is a list or tuple that contains such a value."""
    if type(value) is list or type(value) is tuple:
        return any(map(_holds_batch, value))
    return isinstance(value, Value) and value.carries == "batch"


def _asking(name: str) -> Any:
    """A method that takes arrays: with nodes among them NumPy's function is called, since its method would not ask them."""
    by_numpy = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(holds_node, args)) or any(map(holds_node, kwargs.values())):
            return getattr(np, name)(self, *args, **kwargs)
        return by_numpy(self, *args, **kwargs)

    method.__name__ = name
    return method


def _operating(name: str) -> Any:
    """An operator whose other operand may be a list that holds nodes."""
    by_numpy = getattr(ndarray, name)

    def method(self: Any, other: Any) -> Any:
        if (type(other) is list or type(other) is tuple) and holds_node(other):
            other = gathered(other)
        return by_numpy(self, other)

    method.__name__ = name
    return method


def _part(name: str) -> property:
    """A property for ``z.real``, ``z.imag`` or ``a.flat``; a node written into it promotes the array."""
    by_numpy = getattr(ndarray, name)

    def write(self: Any, value: Any) -> None:
        if holds_node(value) and _is_followed(value) and self.dtype.kind in "fc":
            promote(self)
            setattr(self, name, value)
        else:
            by_numpy.__set__(self, value)

    def read(self: Any) -> Any:
        if name == "flat" and self.flags.c_contiguous:
            return self.reshape(-1)  # which nodes can be written into
        return by_numpy.__get__(self)

    return property(read, write)


def _copying(name: str) -> Any:
    """A copying method of an array of the caller.

    The copy is of the kind that the present context needs: several threads may see the array in contexts of different kinds.
    """
    by_numpy = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = new_view(self, ndarray)
        made = by_numpy(plain, *args, **kwargs)
        return self if made is plain else _fresh(made)

    method.__name__ = name
    return method


for _name in ("copy", "__copy__", "astype", "flatten", "repeat"):
    for _kind in (Given, TangentGiven):
        setattr(_kind, _name, _copying(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _prefix in ("i", "", "r"):
        setattr(Promotable, f"__{_prefix}{_name}__", _operating(f"__{_prefix}{_name}__"))
for _name in ("dot", "clip", "choose", "searchsorted", "put"):
    setattr(Promotable, _name, _asking(_name))
for _name in ("real", "imag", "flat"):
    setattr(Promotable, _name, _part(_name))
