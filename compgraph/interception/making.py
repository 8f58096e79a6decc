"""What names such as ``np.zeros``, ``math.sin`` and ``np.random.normal`` mean within a function that is differentiated."""

from __future__ import annotations

import cmath
import functools
import hashlib
import importlib
import itertools
import math
import operator
import os
import zlib
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from .. import arrays
from ..frames import frame_up, is_internal, source_lines
from ..graph import stack_nested
from ..guards import guarded_errors, note_points, note_taken
from ..inplace import contains_node
from ..storage import address_of, owner_of
from ..tracing import has_compiled_code, is_tracing, leak_error
from ..values import (
    NUMERIC,
    TRACEABLE,
    Value,
    as_buffer,
    describe,
    is_tracer,
    new_view,
    require_unbatched,
    unwrap_buffer,
    unwrap_buffers,
    wrap_result,
)
from .draws import ANSWERS, Generator, asking, following
from .elements import Joining, enumerated, from_iterable, gathered_iterable
from .exchanged import PLAIN
from .libraries import is_library
from .records import Records
from .toplevel import opened, records_lists

ndarray = np.ndarray
Function = Callable[..., Any]
_IDLE = frozenset({"subok", "device", "like"})  # options that change nothing for a node


_SCIPY = f"{os.sep}scipy{os.sep}"


class _Users(dict[str, bool]):
    """By filename: whether calls from this file get our functions.

    Not those from our own packages; nor from NumPy, except for its polynomials, which work on nodes; nor from SciPy.
    """

    def __missing__(self, filename: str) -> bool:
        if filename.startswith("<frozen"):  # the import of a compiled module, which runs C code
            self[filename] = False
            return False
        own = is_internal(filename) and "polynomial" not in filename and not filename.endswith("functools.py")
        self[filename] = answer = not own and not (_SCIPY in filename and is_library(filename))
        return answer


_users = _Users()


class _TakesBuffers(dict[str, bool]):
    """By filename: whether all new arrays for code of this file are buffers.

    Libraries with compiled code, such as pandas, hand their arrays to C code that reads memory. For these, arrays are buffers
    only where the function that makes them works on tracers (see `_works_on_tracers`).
    """

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = "polynomial" in filename or not has_compiled_code(filename)
        return answer


_takes_buffers = _TakesBuffers()


def _works_on_tracers(frame: FrameType) -> bool:
    """Whether a variable of a running function, or of those of libraries that called it, holds a tracer.

    Operations of this package that convert an operand, by its ``__array__``, hold tracers but do not call on their behalf.
    """
    around: FrameType | None = frame
    while (
        around is not None
        and is_library(around.f_code.co_filename)
        and not source_lines.is_package_code(around.f_code.co_filename)
    ):
        if any(map(contains_node, around.f_locals.values())):
            return True
        around = around.f_back
    return False


def _arange(*args: Any, **kwargs: Any) -> Any:
    """``numpy.arange`` of nodes: ``start + k * step``, where the number of elements is plain."""
    given = dict(zip(("start", "stop", "step"), args, strict=False)) | kwargs
    if "stop" not in given:
        given = {**given, "start": 0, "stop": given.get("start", 0)}
    start, step = given.get("start", 0), given.get("step", 1)
    require_unbatched("np.arange", start, given["stop"], step)
    numbers = [v.raw_value if isinstance(v, Value) else v for v in (start, given["stop"], step)]
    note_points(start, given["stop"], step)
    count = as_buffer(np.arange(len(np.arange(*numbers))))
    found = start + count * step
    return found if given.get("dtype") is None else found.astype(given["dtype"])


# NumPy functions that make arrays, and the function of ours that runs for nodes. None: NumPy asks the nodes itself, and only
# arrays that are made without nodes are made promotable.
MAKING: dict[str, Function | None] = {
    **{name: getattr(arrays, name) for name in ("array", "asarray", "asanyarray", "asarray_chkfinite", "full", "require")},
    **{name: getattr(arrays, name) for name in ("ascontiguousarray", "asfortranarray")},
    "arange": _arange,
    **dict.fromkeys(
        (
            "zeros", "ones", "empty", "eye", "identity", "tri", "linspace", "logspace", "geomspace", "zeros_like", "ones_like",
            "empty_like", "full_like", "copy", "diag", "diagflat", "tile", "repeat", "outer", "where", "concatenate", "stack",
            "hstack", "vstack", "dstack", "column_stack", "kron", "cumsum", "cumprod", "meshgrid", "vander", "loadtxt",
            "genfromtxt", "dot", "tril", "triu", "block", "pad", "roll", "flip", "convolve", "interp", "gradient",
            "hanning", "hamming", "blackman", "bartlett", "kaiser", "indices", "fromfunction", "fromstring", "fromfile", "load",
        )
    ),
}  # fmt: skip
# The same in NumPy's submodules.
_MAKING_IN: dict[str, tuple[str, ...]] = {
    "numpy.fft": ("fftfreq", "rfftfreq"),
    **{
        f"numpy.polynomial.{family}": (f"{short}gauss",)
        for family, short in {
            "legendre": "leg", "chebyshev": "cheb", "hermite": "herm", "hermite_e": "herme", "laguerre": "lag",
        }.items()
    },
}  # fmt: skip


# Functions that convert lists without calling a protocol. At the top level, too, they record a list that holds nodes. If the
# value is True, they also record a node that is passed by itself; the others make a plain array of it.
GATHERING = {
    **dict.fromkeys(
        ("array", "asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "require"), False
    ),
    **dict.fromkeys(("full", "arange"), True),
}


_CONVERTING = frozenset({np.array, np.asarray, np.asanyarray})
_PASSING = frozenset({np.asanyarray, np.require})  # which let subclasses of arrays pass


def _making(original: Function, ours: Function | None, takes_nodes: bool | None = None) -> Function:
    """Wrap a function that makes arrays, for user code within a function that is differentiated.

    At the top level the original is called, unless the function is one of `GATHERING`, whose value is then `takes_nodes`.
    """

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if not opened and len(args) == 1 and not kwargs and (type(args[0]) in PLAIN or _is_plain(args[0])):
            return original(args[0])
        if not opened or not is_tracing():
            if takes_nodes is None or (len(args) == 1 and not kwargs and _is_plain(args[0])):
                return original(*args, **kwargs)
            return _at_top_level(frame_up(1), make, ours, args, kwargs)
        if not _users[frame_up(1).f_code.co_filename]:
            return original(*args, **kwargs)
        like = kwargs.get("like")
        if isinstance(like, Value):  # NumPy would hand the node this function, which no table knows
            return like.__array_function__(original, (type(like),), args, {k: v for k, v in kwargs.items() if k != "like"})
        for value in (*args, *kwargs.values()):
            if contains_node(value):
                if ours is None:  # NumPy calls the node's protocol
                    return fresh(original(*args, **kwargs), args)
                if original in _CONVERTING and _is_object(kwargs.get("dtype", args[1] if len(args) > 1 else None)):
                    return _objects_of(args[0])
                return ours(*args, **{key: value for key, value in kwargs.items() if key not in _IDLE})
        if takes_nodes is not None and any(type(value) in TRACEABLE for value in (*args, *kwargs.values())):
            # NumPy's function takes the memory from where Python exposes it, which differs with the version.
            sources = (*args, *kwargs.values())
            made, args = original(*unwrap_buffers(args), **unwrap_buffers(kwargs)), sources
        else:
            made = original(*args, **kwargs)
        frame = frame_up(1)
        is_filled = _takes_buffers[frame.f_code.co_filename] or _works_on_tracers(frame)
        return fresh(made, args) if is_filled else made

    return make


def _is_plain(value: Any) -> bool:
    """Whether a value has a class that holds no nodes, or is a list, or nested list, of such values: the common calls."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind not in _LISTS:
        return False
    if PLAIN.issuperset(map(type, value)):
        return True
    return _LISTS.issuperset(map(type, value)) and PLAIN.issuperset(map(type, itertools.chain.from_iterable(value)))


_LISTS = frozenset({list, tuple})


def _at_top_level(frame: Any, make: Any, ours: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `make`, one of `GATHERING`, outside of operators: a list that holds nodes is recorded."""
    original = make.__wrapped__
    if PLAIN.issuperset(map(type, args)) and PLAIN.issuperset(map(type, kwargs.values())):
        return original(*args, **kwargs)
    like: Any = kwargs.get("like")
    if hasattr(like, "__array_function__") and type(like) is not ndarray:
        return like.__array_function__(original, (type(like),), args, {k: v for k, v in kwargs.items() if k != "like"})
    filename, takes_nodes = frame.f_code.co_filename, GATHERING[original.__name__]
    if takes_nodes or "polynomial" in filename:
        converted: Any = [list(args), list(kwargs.values())]
    else:
        converted = args[:1] or [kwargs.get("object", kwargs.get("a"))]
    if is_tracing() and original in _PASSING and isinstance(converted[0], Value):
        return ours(*args, **{key: value for key, value in kwargs.items() if key not in _IDLE})
    if not records_lists(filename, converted):
        made = original(*args, **kwargs)
        if isinstance(converted[0], Value) and not isinstance(made, Value) and not is_library(filename):
            note_taken(converted[0], f"np.{original.__name__}()", frame)
        return made
    if _is_object(kwargs.get("dtype", args[1] if len(args) > 1 and not takes_nodes else None)):
        return _objects(original(*args, **kwargs), args)
    return ours(*args, **{key: value for key, value in kwargs.items() if key not in _IDLE})


def _objects(made: Any, args: tuple[Any, ...]) -> Any:
    """An array of objects that NumPy made of a list that holds nodes; nodes that it split are replaced by their elements."""
    node = stack_nested(args[0]) if args and not any(isinstance(v, Value) for v in made.ravel().tolist()) else None
    return _objects_of(node) if isinstance(node, Value) and node.shape == made.shape else made


def _objects_of(values: Any) -> Any:
    """Nested lists with nodes in them as an array of objects, in which nodes and their elements are nodes."""
    made = np.empty(np.array(_without_nodes(values), object).shape, object)
    for index in np.ndindex(made.shape):
        made[index] = functools.reduce(operator.getitem, index, values)
    return made


def _without_nodes(values: Any) -> Any:
    """Nested lists with arrays in place of the nodes."""
    if isinstance(values, Value):
        return np.zeros(values.shape)
    return list(map(_without_nodes, values)) if isinstance(values, (list, tuple)) else values


def _is_object(dtype: Any) -> bool:
    return dtype is object or (dtype is not None and dtype == np.dtype(object))


def fresh(made: Any, args: tuple[Any, ...]) -> Any:
    """A result as a buffer, which becomes a tracer once a tracer is written into it.

    Lists and tuples of results likewise; structured arrays as `Records`. Views of a buffer are views of it; those of another
    argument are returned unchanged.
    """
    if type(made) is not ndarray:
        return type(made)([fresh(part, args) for part in made]) if type(made) in (list, tuple) else made
    if made.dtype.names is not None and made.base is None:
        return new_view(made, Records)
    if made.dtype.kind not in NUMERIC:
        return made
    owner = owner_of(made)
    for value in args:
        if isinstance(value, ndarray) and owner_of(value) is owner:
            if type(value) not in TRACEABLE:
                return made
            is_whole = made.shape == value.shape and made.strides == value.strides and made.dtype == value.dtype
            return value if is_whole and address_of(made) == address_of(unwrap_buffer(value)) else wrap_result(made, (value,))
    return as_buffer(made)


def _remainder(x: Any, y: Any) -> Any:
    """``math.remainder``: the difference of x and the nearest multiple of y; of two equally near, the even one."""
    left, size = np.fmod(x, y), np.abs(y)
    doubled = 2 * np.abs(left)
    is_over = (doubled > size) | ((doubled == size) & (np.fmod(np.abs(x), 2 * size) >= size))
    return np.where(is_over, left - np.copysign(size, left), left)[()]


_MATH: dict[str, Function] = {
    **{
        name: getattr(np, name)
        for name in (
            "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "exp2", "log2", "log10", "log1p", "sqrt", "cbrt", "fabs",
            "degrees", "radians", "copysign", "fmod", "pow",
        )
    },
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{name: lambda x, f=f: int(f(x)) for name, f in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.items()},
    **{name: lambda x, f=f: bool(f(x)) for name, f in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items()},
    "isclose": lambda a, b, *, rel_tol=1e-9, abs_tol=0.0: bool(
        (a == b) | (np.abs(a - b) <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol))
    ),
    "hypot": lambda *xs: functools.reduce(np.hypot, xs) if len(xs) > 1 else np.abs(*xs),
    "remainder": _remainder,
    "modf": np.modf,
    "frexp": lambda x: (np.ldexp(x, -(exponent := int(np.frexp(x)[1]))), exponent),
    "ldexp": lambda x, i: x * 2.0**i,
    "log": lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base),
    "fsum": lambda xs: np.sum(stack_nested(list(xs))),
    "sumprod": lambda p, q: np.sum(np.multiply(stack_nested(list(p)), stack_nested(list(q)))),
    "prod": lambda xs, *, start=1: functools.reduce(operator.mul, xs, start),
    "dist": lambda p, q: np.sqrt(np.sum(np.square(np.subtract(stack_nested(list(p)), stack_nested(list(q)))))),
    **{name: lambda x, special=special: _special(special)(x) for name, special in (
        ("erf", "erf"), ("erfc", "erfc"), ("gamma", "gamma"), ("lgamma", "gammaln"))},
}  # fmt: skip


# The functions of `cmath`, of which real numbers become complex.
_COMPLEX: dict[str, Function] = {
    **{
        name: lambda z, f=f: f(z + 0j)
        for name, f in {
            **{name: getattr(np, name) for name in ("exp", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
            **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
        }.items()
    },
    "log": lambda z, base=None: np.log(z + 0j) if base is None else np.log(z + 0j) / np.log(base + 0j),
    "phase": np.angle,
    "polar": lambda z: (np.abs(z), np.angle(z)),
    "rect": lambda r, phi: r * np.exp(1j * phi),
}  # fmt: skip


# Functions that read the memory of an array.
_READING = {
    np: ("frombuffer",),
    hashlib: (*sorted(hashlib.algorithms_guaranteed & vars(hashlib).keys()), "new"),
    zlib: ("crc32", "adler32"),
}


def _reading(original: Function) -> Function:
    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if isinstance(value, Value) and is_tracer(value):
                raise leak_error(frame_up(1), f"the {describe(value)}")
        return original(*args, **kwargs)

    return read


def _spread(function: Any, ddof: int) -> Function:
    """A variance or standard deviation of `statistics`, about a mean that may be given."""

    def spread(xs: Any, center: Any = None) -> Any:
        if center is None:
            return function(xs, ddof=ddof)
        variance = np.sum(np.square(xs - center)) / (len(xs) - ddof)
        return np.sqrt(variance) if function is np.std else variance

    return spread


# The functions of `statistics`, of the values as one node.
_STATISTICS: dict[str, Function] = {
    "mean": np.mean,
    "fmean": lambda xs, weights=None: np.mean(xs) if weights is None else np.average(xs, weights=stack_nested(list(weights))),
    "geometric_mean": lambda xs: np.exp(np.mean(np.log(xs))),
    "median": np.median,
    "median_low": lambda xs: np.sort(xs)[(len(xs) - 1) // 2],
    "median_high": lambda xs: np.sort(xs)[len(xs) // 2],
    "pvariance": _spread(np.var, 0),
    "variance": _spread(np.var, 1),
    "pstdev": _spread(np.std, 0),
    "stdev": _spread(np.std, 1),
}


def _statistical(original: Function, ours: Function) -> Function:
    @functools.wraps(original)
    def call(data: Any, *args: Any, **kwargs: Any) -> Any:
        values = data if isinstance(data, Value) else list(data)
        if not contains_node(values):
            return original(values, *args, **kwargs)
        if len(values) < 2:
            original([0.0] * len(values), *args, **kwargs)  # raises where two are needed
        return ours(stack_nested(values), *args, **{_CENTERS.get(name, name): value for name, value in kwargs.items()})

    return call


_CENTERS = {"mu": "center", "xbar": "center"}


def _special(name: str) -> Function:
    import scipy.special

    function: Function = getattr(scipy.special, name)
    return function


def _mathematical(original: Function, ours: Function) -> Function:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(contains_node, args)):  # also in a thread that the differentiated function has started
            guarded_errors.require_possible(original, args)
            return ours(*args, **kwargs)
        return original(*args, **kwargs)

    return call


def _enumerating(original: Function) -> Function:
    @functools.wraps(original, updated=())
    def enumerate_array(array: Any) -> Any:
        array = stack_nested(array) if is_tracing() else array
        return enumerated(array) if isinstance(array, Value) else original(array)

    return enumerate_array


def _from_iterable(original: Function) -> Function:
    @functools.wraps(original)
    def fromiter(*args: Any, **kwargs: Any) -> Any:
        filename = frame_up(1).f_code.co_filename
        if not is_tracing() or not opened:
            return gathered_iterable(filename, original, args, kwargs)
        if not _users[filename]:
            return original(*args, **kwargs)
        return from_iterable(*args, **kwargs)

    return fromiter


def _seeding(original: Function) -> Function:
    @functools.wraps(original)
    def default_rng(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if not is_tracing() or isinstance(made, Generator) or is_internal(frame_up(1).f_code.co_filename):
            return made
        seed = args[0] if args else kwargs.get("seed")
        return following(made, seed is not None and not isinstance(seed, np.random.Generator | np.random.BitGenerator))

    return default_rng


def _drawing(name: str, answer: Any, original: Any) -> Any:
    drawn = asking(name, answer(name, original))
    drawn.for_compiled = asking(name, original)
    return drawn


def _marked(answer: Any, original: Any) -> Any:
    """An answer with a mark, by which `patched_numpy` tells it from NumPy's own function, and with what compiled modules see."""
    if isinstance(answer, FunctionType):
        answer.is_answering = True  # type: ignore[attr-defined]
    answer.for_compiled = getattr(answer, "for_compiled", original)
    return answer


def gathering_names() -> list[tuple[dict[str, Any], str, Any]]:
    """The names that are exchanged from the first variable on, in the format of `answers`."""
    numpy = vars(np)
    ours: dict[str, Callable[[Any], Any]] = {
        name: functools.partial(_making, ours=MAKING[name], takes_nodes=takes) for name, takes in GATHERING.items()
    }
    originals = arrays.without_patches(numpy)
    ours["fromiter"] = _from_iterable
    return [(numpy, name, _marked(answer(originals[name]), _noting(originals[name]))) for name, answer in ours.items()]


def _noting(original: Function) -> Function:
    """A function that converts lists as compiled modules see it: NumPy's own, which notes the nodes whose numbers it takes."""

    @functools.wraps(original)
    def take(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if args and isinstance(args[0], Value) and not isinstance(made, Value):
            frame = frame_up(1)
            if not is_library(frame.f_code.co_filename):
                note_taken(args[0], f"np.{original.__name__}()", frame)
        return made

    return take


def answers() -> list[tuple[dict[str, Any], str, Any]]:
    """The names that are exchanged: namespace, name, and what it means within a function that is differentiated."""
    numpy, mathematics, random = vars(np), vars(math), vars(np.random)
    found: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}

    def enter(space: dict[str, Any], name: str, answer: Callable[[Any], Any]) -> None:
        if name in space:
            original = arrays.without_patches(space)[name]
            found[id(space), name] = space, name, _marked(answer(original), original)

    for name, ours in MAKING.items():
        if name not in GATHERING:
            enter(numpy, name, functools.partial(_making, ours=ours))
    for home, names in _MAKING_IN.items():
        for name in names:
            enter(vars(importlib.import_module(home)), name, functools.partial(_making, ours=None))
    for name in ("mgrid", "ogrid"):
        enter(numpy, name, lambda original: Joining(original, None))
    enter(numpy, "ndenumerate", _enumerating)
    enter(numpy, "r_", lambda original: Joining(original, arrays.r_))
    enter(numpy, "c_", lambda original: Joining(original, arrays.c_))
    for name, ours in _MATH.items():
        enter(mathematics, name, functools.partial(_mathematical, ours=ours))
    for name, ours in _COMPLEX.items():
        enter(vars(cmath), name, functools.partial(_mathematical, ours=ours))
    for name, ours in _STATISTICS.items():
        enter(vars(importlib.import_module("statistics")), name, functools.partial(_statistical, ours=ours))
    for module, names in _READING.items():
        for name in names:
            enter(vars(module), name, _reading)
    enter(vars(np.lib.stride_tricks), "as_strided", functools.partial(_making, ours=arrays.as_strided))
    enter(random, "default_rng", _seeding)
    for name, answer in ANSWERS.items():
        enter(random, name, functools.partial(_drawing, name, answer))
    return list(found.values())
