"""Names that are exchanged while a function is differentiated, in the whole process.

No protocol reaches ``np.zeros``. So while a function is differentiated, and only then, the names by which arrays are made mean
functions of ours (`making`). These look who calls: for other threads, and for library code, they call NumPy's own. Names are
exchanged when the first such context opens and restored when the last closes, under a lock; a context that an interrupt kept
from being closed is closed when it is garbage-collected.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ..arrays import after_restore, is_compiled, keep_original, shield_compiled_modules, without_patches
from ..context import callbacks_lock
from ..frames import source_lines
from ..tracing import is_compiling, is_tracing
from ..values import Borrowed, Value, before_variables, borrow, unwrap_buffer
from .draws import draws, following
from .elements import polynomial, vectorized
from .exchanged import exchange, switch
from .holders import SINGLE, Exchange, Place, Search
from .lists import look_into_lists
from .making import answers, gathering_names
from .questions import bind_questions
from .questions import restore as restore_questions
from .reach import Held, Reach, bound_with, content_of, function_of, is_closed, namespace_of, reach_of
from .toplevel import opened as _open
from .toplevel import recorded
from .ufunc_methods import NUMPY, numpy_names

ndarray = np.ndarray
_given: list[tuple[Any, str | None, Any, Any]] = []  # variables that are exchanged for `given` arrays: place, name, before, now
_exchanges: dict[Any, Exchange] = {}  # attributes and items that are exchanged likewise
_places: dict[weakref.ref[Any], list[Exchange]] = {}  # the exchanges of each open context
_is_on = True
_has_asked = _has_variable = False


class _Namespace:
    """One namespace, and the names in it that are exchanged: those whose values are in `wrapped`."""

    __slots__ = ("is_ours", "length", "ours", "read", "space", "theirs", "values", "wrapped")

    def __init__(self, space: dict[str, Any], wrapped: dict[int, tuple[Any, Any]]) -> None:
        self.space, self.wrapped, self.length, self.is_ours = space, wrapped, -1, False
        self.look()

    def look(self) -> None:
        """Find the names to be exchanged; again if the number of names in the namespace has changed."""
        if self.length != len(self.space) and not self.is_ours:
            self.length = len(self.space)
            items = list(without_patches(self.space).items())  # a copy, because another thread may import into this module
            self.theirs = {name: value for name, value in items if _is_among(self.wrapped, value)}
            self.ours = {name: self.wrapped[id(value)][1] for name, value in self.theirs.items()}
            times = 2 if len(self.theirs) == 1 else 1  # of one name it gave no tuple
            self.read = itemgetter(*[*self.theirs] * times) if self.theirs else None
            self.values = {False: tuple(self.theirs.values()) * times, True: tuple(self.ours.values()) * times}

    def mean(self, is_ours: bool) -> None:
        """Let the names mean our functions, or the originals again."""
        if self.read is None or self.is_ours is is_ours:
            return
        now, before = (self.ours, self.theirs) if is_ours else (self.theirs, self.ours)
        if is_ours:
            self.is_ours = True
        try:
            is_whole = self.read(self.space) == self.values[not is_ours]
        except KeyError:
            is_whole = False
        if is_whole:
            self.space.update(now)
        else:
            for name, value in before.items():  # a name that somebody has rebound meanwhile stays as it is
                if self.space.get(name) is value:
                    self.space[name] = now[name]
        self.is_ours = is_ours


def _is_among(wrapped: dict[int, tuple[Any, Any]], value: Any) -> bool:
    found = wrapped.get(id(value))
    return found is not None and found[0] is value


class _Exchanged:
    """Names that are exchanged together, in all namespaces where they are known.

    Parameters
    ----------
    answers : callable
        Which they are: a function that returns namespace, name and our function for each.
    """

    def __init__(self, answers: Callable[[], list[tuple[dict[str, Any], str, Any]]]) -> None:
        self._answers = answers
        self._spaces: dict[int, _Namespace] = {}
        self._wrapped: dict[int, tuple[Any, Any]] = {}  # by the id of an original: the original, and our function for it
        self._modules = 0
        self._is_exchanged = False

    def exchange(self, namespaces: Iterable[dict[str, Any]]) -> None:
        """Exchange the names in all namespaces that are known, and in those given."""
        if not self._wrapped:
            self._prepare()
        self._is_exchanged = True  # first: an interrupt may leave a part of the names exchanged
        if len(sys.modules) != self._modules:
            self._scan()
        for namespace in namespaces:
            self._space(namespace).look()
        for space in self._spaces.values():
            space.mean(True)

    def restore(self) -> None:
        """Let all names mean what they meant."""
        if self._is_exchanged:
            for space in self._spaces.values():
                space.mean(False)
            self._is_exchanged = False

    def exchange_again(self) -> None:
        """Exchange the NumPy names again that `cg.patched_numpy` has restored, if they are exchanged now."""
        space = self._spaces.get(id(vars(np)))
        if space is not None and space.is_ours:
            space.is_ours = False
            space.mean(True)

    def _prepare(self) -> None:
        for space, name, ours in self._answers():
            original = without_patches(space)[name]
            self._wrapped[id(original)] = original, ours
            self._space(space)
            keep_original(space, name, getattr(ours, "for_compiled", ours))
        shield_compiled_modules()
        for known in self._spaces.values():
            known.length = -1
            known.look()

    def _space(self, space: dict[str, Any]) -> _Namespace:
        found = self._spaces.get(id(space))
        if found is None:
            found = self._spaces[id(space)] = _Namespace(space, self._wrapped)
        return found

    def _scan(self) -> None:
        """Find the names in modules that were imported since the last scan."""
        modules = list(sys.modules.items())
        for name, module in modules:
            top = name.partition(".")[0]
            namespace = getattr(module, "__dict__", None)
            if top in ("numpy", "compgraph", "autodiff") or name.startswith("scipy._lib") or namespace is None:
                continue
            if id(namespace) in self._spaces:
                continue
            if (top in sys.stdlib_module_names and top != "__main__") or is_compiled(module):
                continue
            if any(_is_among(self._wrapped, value) for value in list(namespace.values())):
                self._space(namespace)
        self._modules = len(modules)


_making, _drawing, _gathering = _Exchanged(answers), _Exchanged(draws), _Exchanged(gathering_names)
after_restore += [_making.exchange_again, _gathering.exchange_again]


class Interception:
    """A context, made by `intercepted`: names are exchanged until it is left or dropped.

    Attributes
    ----------
    is_closed : bool
        Whether all that runs in it is known, so that no names had to be exchanged; see `reach.is_closed`.
    captured : list of array
        The `given` arrays and the nodes that the function captures: by the names of variables, in closures and as default values.
    """

    __slots__ = ("__weakref__", "captured", "is_closed")

    def __init__(self) -> None:
        self.is_closed = False
        self.captured: list[Any] = []

    def __enter__(self) -> Interception:
        return self

    def __exit__(self, *exception: object) -> None:
        for reference in weakref.getweakrefs(self):
            _close(reference)


def intercepted(f: Any, arguments: Iterable[Any] = (), asks_for_draws: bool = False, kept: Sequence[Any] = ()) -> Interception:
    """A context in which `f` is to be called with `arguments`.

    In it nodes can be written into arrays that `f` makes, and arrays that `f` reaches by name (globals, closures, default
    values), or by attributes and items of objects that it reaches by name or receives unchanged (`kept`), are seen as `given`.
    With `asks_for_draws`, random functions of NumPy and Python are replaced as well.
    """
    opened = Interception()
    if not _is_on:
        return opened
    function = function_of(f)
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)  # noqa: B004  (of an object that can be called: its method)
    if not isinstance(function, FunctionType):
        function = None
    ask_functions()
    with callbacks_lock:
        reference = weakref.ref(opened, _close)
        _open.add(reference)
        groups = (_gathering, _making, _drawing) if asks_for_draws else (_gathering, _making)
        if function is None:
            for group in groups:
                group.exchange(())
            return opened
        held = Held(function)
        reached = [reach_of(known) for known in held.functions]
        bound = (f, *bound_with(f))
        arguments = (*arguments, *bound[1:])
        opened.is_closed = is_closed(held, reached, arguments)
        _bind_questions(held, reached, arguments, opened.is_closed)
        if not opened.is_closed:
            for group in groups:
                group.exchange(known.__globals__ for known in held.functions)
        if f is function and SINGLE.issuperset(map(type, kept)) and _is_alone(held, reached):
            return opened
        search = Search()
        _give_reached(held, reached, search, opened.captured)
        if not is_compiling():  # probably in another thread, while the caller still uses these objects
            search.look((*bound, *kept))
            own = _places[reference] = []
            _give_held(held, search, own, opened.captured, not asks_for_draws)
        _views.clear()  # an inner function may need views of another kind
    return opened


def _is_alone(held: Held, reached: list[Reach]) -> bool:
    """Whether a function holds nothing, and reaches by name nothing but modules and builtins."""
    if len(held.functions) > 1 or held.cells:
        return False
    function, reach = held.functions[0], reached[0]
    is_bare = not (function.__defaults__ or function.__kwdefaults__ or function.__dict__)
    return is_bare and not reach.variables and not reach.functions and not numpy_names(function)


def _give_held(held: Held, search: Search, own: list[Exchange], captured: list[Any], gives_generators: bool) -> None:
    """Replace values in attributes, lists and dictionaries by `lent` values.

    Without `gives_generators` random generators are left: they are replaced afterwards, if the caller records draws.
    """
    begun = 0
    search.run()
    while begun < len(search.functions):  # it grows by the functions that these hold
        known = search.functions[begun]
        begun += 1
        if all(known is not other for other in held.functions):
            inner = Held(known)
            reached = [reach_of(function) for function in inner.functions]
            _give_reached(inner, reached, search, captured, gives_generators)
            search.run()
    for place, value in search.places:
        if gives_generators or not isinstance(value, np.random.Generator):
            _give_place(place, value, own, captured)


def _give_reached(held: Held, reached: list[Reach], search: Search, captured: list[Any], gives_generators: bool = True) -> None:
    """Replace the values that some functions reach by name, and hold, by `lent` values; add them to `search`."""
    for known, reach in zip(held.functions, reached, strict=True):
        for function in (
            known,
            *[found for _, _, reference in reach.functions if (found := function_of(reference())) is not None],
        ):
            if isinstance(function, FunctionType) and not is_compiling():
                for name in numpy_names(function):
                    _given.append((function.__globals__, name, np, NUMPY))
                    function.__globals__[name] = NUMPY
        for home, name in reach.variables:
            namespace = namespace_of(home, known.__globals__)
            value = namespace.get(name)
            if gives_generators or not isinstance(value, np.random.Generator):
                _give(namespace, name, value, captured)
            search.look((value,))
        if known.__defaults__ or known.__kwdefaults__:
            _give_defaults(known, captured)
            search.look((*(known.__defaults__ or ()), *(known.__kwdefaults__ or {}).values()))
    for cell in held.cells:
        search.look((content_of(cell),))
        _give_cell(cell, captured)


def _bind_questions(held: Held, reached: list[Any], arguments: Iterable[Any], is_closed: bool) -> None:
    """Bind the functions of `questions` for the functions that are reached and for the classes of objects."""
    if is_closed and not any(reach.questions for reach in reached):
        return
    functions, values = list(held.functions), [*arguments, *map(content_of, held.cells)]
    for known, reach in zip(held.functions, reached, strict=True):
        for _, _, reference in reach.functions:
            found = function_of(reference())
            if isinstance(found, FunctionType):
                functions.append(found)
        values += [namespace_of(home, known.__globals__).get(name) for home, name in reach.variables]
        values += [*(known.__defaults__ or ()), *(known.__kwdefaults__ or {}).values()]
    bind_questions(functions, values)


def ask_functions() -> None:
    """Exchange, once, the Python functions of NumPy that have no protocol or do not look into lists."""
    global _has_asked
    if not _has_asked:
        look_into_lists()
        exchange(vars(np.vectorize)["__call__"], vectorized)
        exchange(vars(np.poly1d)["__init__"], polynomial)
        _has_asked = True


def record_lists() -> None:
    """Let NumPy's functions record lists that hold nodes, from the first variable on."""
    global _has_variable
    _has_variable = True
    if not recorded.is_on and _is_on:
        with callbacks_lock:
            ask_functions()
            frame = source_lines.user_frame(2)
            _gathering.exchange([] if frame.f_code is None else [frame.f_globals])
            recorded.is_on = True


before_variables.append(record_lists)


def _close(reference: weakref.ref[Any]) -> None:
    with callbacks_lock:
        if reference not in _open:
            return
        _restore_places(_places.pop(reference, []))
        if len(_open) > 1:
            _open.discard(reference)
            return
        _making.restore()
        _drawing.restore()
        if not recorded.is_on:
            _gathering.restore()
        restore_questions()
        while _given:
            place, name, before, seen = _given[-1]
            if name is None:
                if content_of(place) is seen:
                    place.cell_contents = before
            elif isinstance(place, FunctionType):
                if place.__defaults__ is seen:
                    place.__defaults__ = before
            elif place.get(name) is seen:
                place[name] = before
            _given.pop()
        _open.discard(reference)  # comes last: if an interrupt cuts this short, all is restored when the object is dropped


def _restore_places(exchanged: list[Exchange]) -> None:
    """Restore the caller's values in attributes and items, including places into which the function copied a view.

    When the last operator returns, buffers beside them become plain arrays, since no operator writes into them any more.
    """
    if not exchanged:
        return
    ended = []
    for one in exchanged:
        one.users -= 1
        if not one.users:
            del _exchanges[one.place.key]
            one.restore()
            ended.append(one)
    before = {id(one.seen): one.before for one in ended}
    holders = {one.place.key[0]: one.place for one in ended}
    for place, seen in [sibling for one in holders.values() for sibling in one.promotable_siblings()]:
        if (seen.is_borrowed or len(_open) <= 1) and place.key not in _exchanges:
            place.write(before.get(id(seen), unwrap_buffer(seen)))


def lent(value: Any) -> Any:
    """A value of the caller's, as a function that is differentiated sees it.

    An array as a `given` one, a random generator as one that takes nodes (`draws.Generator`), a tuple with its parts lent. A
    list or another mutable object is passed as it is, since the function may change it for the caller.
    """
    kind = type(value)
    if kind is ndarray:
        return borrow(value) if value.dtype.kind in "biufc" and _is_on and is_tracing() else value
    is_named = kind not in _LENT and issubclass(kind, tuple) and hasattr(kind, "_make")
    if is_named and any(isinstance(part, np.random.Generator) for part in value):  # generators are replaced afterwards
        return value
    if (kind not in _LENT and not is_named) or not _is_on or not is_tracing():
        return value
    if kind is tuple or is_named:
        parts = tuple(map(lent, value))
        if all(a is b for a, b in zip(value, parts, strict=True)):
            return value
        return kind._make(parts) if is_named else parts
    return following(value)


_LENT = frozenset({np.random.Generator, tuple})


_views: dict[int, tuple[Any, Any]] = {}  # by the id of an array: the array, and the view that replaces it for the function


def _seen(value: Any) -> Any:
    """The value that replaces another one in all places where a function reaches it."""
    if type(value) is not ndarray:
        return lent(value)
    known = _views.get(id(value))
    if known is None:
        known = _views[id(value)] = value, lent(value)
    return known[1]


def _capture(value: Any, captured: list[Any]) -> Any:
    """The replacement of a value that a function captures; an array or node is added to a list."""
    seen = _seen(value)
    if isinstance(seen, Value) or type(seen) is Borrowed:
        captured.append(seen)
    return seen


def _give(namespace: dict[str, Any], name: str, value: Any, captured: list[Any]) -> None:
    seen = _capture(value, captured)
    if seen is not value:
        _given.append((namespace, name, value, seen))
        namespace[name] = seen


def _give_defaults(function: FunctionType, captured: list[Any]) -> None:
    """Exchange the default values of a function for `lent` ones."""
    before = function.__defaults__
    seen = tuple([_capture(value, captured) for value in before]) if before else None
    if before is not None and seen is not None and any(a is not b for a, b in zip(before, seen, strict=True)):
        _given.append((function, "__defaults__", before, seen))
        function.__defaults__ = seen


def _give_cell(cell: CellType, captured: list[Any]) -> None:
    value = content_of(cell)
    seen = _capture(value, captured)
    if seen is not value:
        _given.append((cell, None, value, seen))
        cell.cell_contents = seen


def _give_place(place: Place, value: Any, own: list[Exchange], captured: list[Any]) -> None:
    key = place.key
    known = _exchanges.get(key)
    if known is not None and known.seen is value:  # exchanged by another thread, which may return first
        known.users += 1
        own.append(known)
        return
    seen = _capture(value, captured)
    if seen is not value:
        known = _exchanges[key] = Exchange(place, value, seen)
        own.append(known)
        place.write(seen)


def interception(on: bool = True) -> None:
    """Turn on or off that functions without a protocol, SciPy's above all, ask nodes. It is on by default.

    On: while a function is differentiated, ``np.zeros`` and other names by which arrays are made give arrays that nodes can be
    written into; and SciPy's Python functions ask the nodes among their arguments. Off: all of that is taken back at once, in
    the whole process; code that does not ask nodes then gets an error.

    Parameters
    ----------
    on : bool
        Whether it is turned on or off.

    Raises
    ------
    RuntimeError
        If it is turned off while a function is differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> import autodiff as ad
    >>> import compgraph as cg
    >>> def f(x):
    ...     y = np.zeros(2)
    ...     y[0] = x**2
    ...     return y.sum()
    >>> print(ad.grad(f)(3.0))
    6.0
    >>> cg.interception(False)
    >>> ad.grad(f)(3.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compgraph.LeakError: ...
    >>> cg.interception(True)
    """
    global _is_on
    with callbacks_lock:
        if _open and not on:
            raise RuntimeError("interception: a function is being differentiated; turn it off when that is done")
        _is_on = bool(on)
        if not on:
            recorded.is_on = False
            _gathering.restore()
    switch(_is_on)
    if _is_on and _has_variable:
        record_lists()
