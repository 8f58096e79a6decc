"""What is said where code that does not know of the graph takes the numbers of a node: which, where, and what to do.

A `hollow.Refusal` raises at the place. NumPy and SciPy often notice first that a body is no array of floats, and raise
errors of their own ("object arrays are not supported"); `explained` tells those, which are then raised again in our words.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ...operations import METHODS_MODULE, implementation
from ..context import layered
from ..interpreter import assigns, callee, frame_up, is_raised_by, keep_for_ever, method_called, outwards, source_lines, unknown
from . import copies

OBJECT = np.dtype(object)
WORDS = "the numbers of a compgraph node"  # the name of the field in bodies of narrow numbers, so that NumPy's errors tell
# Python's own modules, and what is installed beside NumPy; code elsewhere is the user's.
_STANDARD, _INSTALLED = sysconfig.get_path("stdlib") + os.sep, str(Path(np.__file__).parent.parent) + os.sep
# What NumPy and SciPy say of arrays of objects, and what is said of other things as well. A class of Python's that lacks an
# attribute is an "object" too, and none of these.
_OF_OBJECTS = re.compile(
    rf"{WORDS}|Refusal|\bobjects?\b|Object arrays|dtype\('O'\)|'O'|holds references|of references|has no callable|safely coerced"
    r"|structured|'tuple'|[Vv]oid|'\w+Node'|from \w+Node to"
)
_OF_MEMORY = re.compile(
    r"(?<!destination is )read-only|contiguous|No matching signature|data types? (not|in)|Rational instance|string to"
    r"|element with a sequence\.$|format O|[Uu]nsupported type|array of floats|not a float|input type"
)
_OF_PYTHON = re.compile(r"'(?!Refusal)[\w.]+' objects?\b")
_NAME = re.compile(r"[^\W\d]\w*")
_COMPILED = (".pyx", ".pxd", ".pxi")  # Cython shows these files in frames
_SHOWN = 3  # how many nodes a message names
# Where the counterpart of a SciPy function has another name, or is no function of NumPy's.
COUNTERPARTS = {
    "brentq": "autodiff.root", "bisect": "autodiff.root", "newton": "autodiff.root", "fsolve": "autodiff.root",
    "root": "autodiff.root", "root_scalar": "autodiff.root", "ridder": "autodiff.root", "toms748": "autodiff.root",
    "minimize": "autodiff.minimize", "minimize_scalar": "autodiff.minimize", "least_squares": "autodiff.minimize",
    "fixed_point": "autodiff.fixed_point", "odeint": "autodiff.odeint", "solve_ivp": "autodiff.odeint",
    "log_softmax": "cg.log_softmax", "logsumexp": "cg.logsumexp", "softmax": "cg.softmax",
    "trapezoid": "np.trapezoid", "cumulative_trapezoid": "np.cumsum", "interp1d": "np.interp",
    "expm": "autodiff.odeint, or powers and sums of the matrix", "fftconvolve": "np.convolve, cg.conv",
    "convolve": "np.convolve, cg.conv", "convolve1d": "np.convolve, cg.conv", "convolve2d": "cg.conv",
    "correlate": "np.correlate, cg.cross_correlate", "correlate2d": "cg.cross_correlate",
    "gamma": "scipy.special.gamma", "lgamma": "scipy.special.gammaln", "erf": "scipy.special.erf",
    "erfc": "scipy.special.erfc", "fsum": "np.sum", "dist": "np.linalg.norm", "pow": "np.power", "asin": "np.arcsin",
    "acos": "np.arccos", "atan": "np.arctan", "atan2": "np.arctan2", "asinh": "np.arcsinh", "acosh": "np.arccosh",
    "atanh": "np.arctanh", "fmean": "np.mean", "phase": "np.angle", "arange": "np.linspace, or x + np.arange(n)",
    "euclidean": "np.linalg.norm", "toeplitz": "indices: x[abs(i - j)]", "simpson": "np.trapezoid, or weights @ x",
    "frombuffer": "x", "fill_diagonal": "np.diag(x), or cg.zeros(shape) as the target", "nditer": "x.flat",
    "ndenumerate": "np.ndindex(x.shape)", "fill": "cg.full, or cg.zeros(shape) as the target", "dot": "a @ x, np.dot(a, x)",
}  # fmt: skip
# Functions that make arrays of what they are given, and what to use for each.
MAKING = frozenset({"array", "asarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "fromiter"})


COPY = "an array that NumPy made of a node"


class EscapeError(TypeError):
    """The numbers of a node were asked for by code that does not know of its graph; a derivative would have been lost."""

    __module__ = "compgraph"  # as users know it, in a traceback

    place: tuple[Any, int] | None = None  # where the user's code was, which C code may tell by an error of its own


class Refusal:
    """The one element of all hollow arrays: it raises an EscapeError whatever is done with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<number of a node>"


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Refusal, *args: Any, **kwargs: Any) -> Any:
        raise refused(frame_up(1))

    method.__name__ = name
    return method


# What NumPy's loops over objects, casts and comparisons, and C code ask an object for.
_SPECIAL = (
    "float int complex index bool hash add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod "
    "pow rpow matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne "
    "round trunc floor ceil format reduce reduce_ex iadd isub imul itruediv ifloordiv imod ipow"
)
_NAMED = "conjugate item tolist is_integer as_integer_ratio"
for _name in _SPECIAL.split():
    setattr(Refusal, f"__{_name}__", _refusing(f"__{_name}__"))
for _name in (*_NAMED.split(), *[name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]):
    setattr(Refusal, _name, _refusing(_name))
for _name in ("real", "imag"):
    setattr(Refusal, _name, property(_refusing(_name)))


def _number(self: Refusal) -> Any:
    """The number of an element, for a cast that will find its history again (see `copies`)."""
    frame = frame_up(1)
    if frame.f_code.co_filename == __file__:
        frame = frame_up(2)
    number = copies.number_for(frame)
    if number is None:
        raise refused(frame)
    return number


Refusal.__float__ = _number  # type: ignore[attr-defined]
Refusal.__complex__ = lambda self: complex(_number(self))  # type: ignore[attr-defined]
REFUSAL = Refusal()
keep_for_ever(REFUSAL)


def refused(frame: FrameType | None, which: str | None = None) -> EscapeError:
    """The error for a number of a node, in words if it is known which, that was asked for by C code, which a frame called."""
    frames = list(outwards(frame))
    error = EscapeError(_message(frames, which))
    if frames:
        users = frames[_position_of_user(frames)]
        error.place = users.f_code, users.f_lasti
    mine = MINE.get()
    for log in [reference() for reference in tuple(LOGS)] if mine is None else [mine]:  # a thread has a context of its own
        if log is not None:
            log.append(error)
    return error


def caught(refusals: list[EscapeError]) -> None:
    """Warn of refusals to code that caught the error and went on."""
    place = source_lines.users_frame(2)
    source_lines.warn_at(
        place, f"numbers were refused to code that caught the error; what it gave may lack a derivative: {refusals[0]}"
    )


class Log(list["EscapeError"]):
    """The refusals within one context."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


MINE: ContextVar[Log | None] = layered("refusals", None)
# Those of all contexts that are open, in all threads. What an interrupt keeps from being closed goes when it is dropped.
LOGS: set[weakref.ref[Log]] = set()


def explained(error: Exception, log: list[EscapeError]) -> EscapeError | None:
    """The error in our words, if it came of the body of a node; None if it is one of ours already, or has other reasons.

    The log is of the refusals there were: C code may have made an error of its own of one.
    """
    if isinstance(error, EscapeError):
        return None
    for cause in _causes(error):
        if isinstance(cause, EscapeError):
            return EscapeError(*cause.args)
    trace = _innermost(error)
    if trace is None:
        return None
    code = trace.tb_frame.f_code
    if not is_library(code.co_filename) and is_raised_by(code, trace.tb_lasti):  # the user's own
        return None
    places = set(_places_of_trace(error))
    for refusal in reversed(log):
        if refusal.place in places:
            return EscapeError(*refusal.args)
    said = _OF_PYTHON.sub("", str(error))
    frames = list(_of_trace(error))
    if _OF_OBJECTS.search(said):
        is_of_body = any(_holds_body(value) for frame in frames for value in frame.f_locals.values())
    else:
        is_of_body = (
            bool(_OF_MEMORY.search(said)) and not source_lines.is_ours(frames[0].f_code.co_filename) and _is_given_body(frames)
        )
    return EscapeError(_message(frames)) if is_of_body else None


def _is_given_body(frames: list[FrameType]) -> bool:
    """Whether the user's line names a hollow node, or a library that it calls holds one."""
    position = _position_of_user(frames)
    users = frames[position]
    named = set(_NAME.findall(source_lines.line_of(users) or ""))
    given = [value for name, value in users.f_locals.items() if name in named]
    inner = [value for frame in frames[:position] for value in frame.f_locals.values()]
    return any(value is REFUSAL or (isinstance(value, np.ndarray) and is_body(_plain_view(value))) for value in (*given, *inner))


def unused_copy(is_an_error: bool) -> EscapeError | None:
    """The error for a copy of a node that NumPy made, and that was used as an array of numbers; None if there is none."""
    place = copies.unused()
    if place is None or is_an_error:
        return None
    where = source_lines.described(*place)
    return EscapeError(
        f"a copy that np.asanyarray made of a node{'' if where is None else f' ({where})'} was used without its graph: the "
        "derivative would be lost. Use cg.asarray; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def is_body(array: Any) -> bool:
    """Whether a plain array is the body of a node, or a part or copy of one."""
    if array.dtype is OBJECT or array.dtype == OBJECT:
        return any(element is REFUSAL for element in array.ravel().tolist())
    return WORDS in (array.dtype.names or ())


# -------------------------------------------------------------------------------------------------- the story


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_trace(error: BaseException) -> Iterator[FrameType]:
    """The frames an error came through, innermost first, up to where it is caught."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return reversed(frames)


def _innermost(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _places_of_trace(error: BaseException) -> Iterator[tuple[Any, int]]:
    """The code and instruction of each frame an error came through."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lasti
        trace = trace.tb_next


def is_library(filename: str) -> bool:
    """Whether a file belongs to the packages, to Python, to what is installed beside NumPy, or is compiled."""
    return (
        source_lines.internal[filename] or filename.startswith((_INSTALLED, _STANDARD, "<frozen")) or filename.endswith(_COMPILED)
    )


def _position_of_user(frames: list[FrameType]) -> int:
    """Which of some frames, innermost first, is the user's."""
    position = next((k for k, f in enumerate(frames) if not is_library(f.f_code.co_filename)), None)
    if position is None:  # the user's code is a library too
        position = next((k for k, f in enumerate(frames) if not source_lines.internal[f.f_code.co_filename]), len(frames) - 1)
    return position


def _message(frames: list[FrameType], which: str | None = None) -> str:
    """Who took the numbers of which node where, and what to do; of frames, innermost first."""
    position = _position_of_user(frames)
    frame = frames[position]
    called = frames[position - 1] if position else None
    if called is not None and source_lines.is_ours(called.f_code.co_filename):
        called = None
    place = source_lines.line_of(frame)
    taken = f"the numbers of {which or _named_nodes(frames, frame)}"
    at = "" if place is None else f" ({place})"
    if called is None and assigns(frame):
        return (
            f"{taken} are assigned into a plain array, which keeps numbers and no graph{at}. Make the array of nodes from the "
            "start (cg.zeros(shape), np.zeros_like(node), np.empty_like(node)); where the numbers alone are meant, assign "
            "node.value, or float(loss)"
        )
    who = _name_of(frame, called)
    advice = _advice(who)
    if which is COPY or who == "an operator" or taken.endswith("object)"):
        advice = "NumPy made that array of a node, where it asks nobody: make it by cg.array, cg.asarray, cg.full or np.stack"
    return (
        f"{who or 'code outside the graph'} takes {taken} without asking for their graph{at}: the derivative would be lost. "
        f"{advice}; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def _name_of(frame: FrameType, called: FrameType | None) -> str:
    """What the user's frame called, as users write it; empty if it cannot be told."""
    found = callee(frame)
    is_told = found is not None and found is not unknown
    if called is not None and not (is_told and hasattr(found, "__name__")):
        module, name = called.f_globals.get("__name__") or "", called.f_code.co_qualname
        if found is None:
            return f"an operator of {module.partition('.')[0]}'s"
        if module == METHODS_MODULE:
            return f"ndarray.{name.removeprefix('_').replace('amax', 'max').replace('amin', 'min')}()"
    elif not is_told:
        method = method_called(frame)
        return f"ndarray.{method}()" if method is not None else "an operator" if found is None else ""
    else:
        owner = getattr(found, "__self__", None)
        module = str(getattr(found, "__module__", None) or "") or ("" if owner is None else type(owner).__module__)
        name = str(getattr(found, "__qualname__", None) or getattr(found, "__name__", ""))
    name = name.removeprefix(f"{module}.").replace("<locals>.", "").removesuffix(".__call__").removesuffix(".__init__")
    parts = [part for part in module.split(".") if not part.startswith("_") and part != "builtins"]
    parts = parts or [module.lstrip("_")] if module != "builtins" else []
    for length in range(1, len(parts)):  # the outermost module that has it: numpy.sum, not numpy.fromnumeric.sum
        public = getattr(sys.modules.get(".".join(parts[:length])), name.partition(".")[0], None)
        code = getattr(implementation(public), "__code__", None)
        if isinstance(public, type) or (callable(public) and (public is found or (called and code is called.f_code))):
            parts = parts[:length]
    return ".".join([*parts, name]) + "()" if name else ""


def _advice(who: str) -> str:
    """What to use instead of a function, or in general."""
    owner, _, name = who.rstrip("()").rpartition(".")
    if name in MAKING:
        return f"Use cg.{name if name != 'fromiter' else 'array'}, np.stack, or `with cg.patched_numpy():`"
    if owner in ("numpy.ndarray", "ndarray") and hasattr(np, name):
        return f"A method of a plain array asks nobody; use np.{name}" + (", or @" if name == "dot" else "")
    if who.startswith("an operator of scipy's"):
        return "Use plain arrays (sparse.toarray() @ x), or declare it by cg.primitive with a rule"
    if owner.startswith("numpy.random"):
        return "Draw numbers that do not depend on it, and shift and scale them: loc + scale * rng.normal()"
    if owner.startswith("numpy.polynomial"):
        return "Use np.polyval, which takes the highest power first"
    if owner == "numpy" and name in np.sctypeDict:
        return f"Use x.astype(np.{name})" if np.dtype(name).kind in "fc" else "Use int(x), which has no derivative"
    instead: str | None = COUNTERPARTS.get(name)
    if instead is None and owner in ("numpy", "numpy.linalg", "numpy.fft"):
        instead = _found(name, {f"cg{owner[5:]}": sys.modules.get(f"compgraph{owner[5:]}")})
    if instead is None and who.startswith(("scipy.", "math.", "cmath.", "statistics.")):
        instead = _found(name, {"np": np, "np.linalg": np.linalg, "np.fft": np.fft})
    if instead is not None:
        return f"Use {instead}"
    return (
        "Use functions of NumPy's, which keep the graph (cg.array for np.array, np.dot(a, x) for a.dot(x)), or declare it by "
        "cg.primitive with a rule"
    )


def _found(name: str, homes: Mapping[str, Any]) -> str | None:
    """The first of some modules that has a name, with it."""
    return next((f"{home}.{name}" for home, module in homes.items() if callable(getattr(module, name, None))), None)


def _named_nodes(frames: list[FrameType], users: FrameType) -> str:
    """The nodes whose numbers may be meant: those that the user's line names, else all that he has, else those further in."""
    line = source_lines.line_of(users) or ""
    in_line = set(_NAME.findall(line.partition(": ")[2]))
    of_user = _nodes_in(users.f_locals)
    inner = (_nodes_in(frame.f_locals) for frame in frames if not source_lines.internal[frame.f_code.co_filename])
    found = {name: said for name, said in of_user.items() if name in in_line} or of_user or next(filter(None, inner), {})
    if not found:
        return "a node"
    return " or ".join(list(found.values())[:_SHOWN]) + (" or others" if len(found) > _SHOWN else "")


def _nodes_in(variables: Mapping[str, Any]) -> dict[str, str]:
    """Each variable that is a floating node, or an array of objects, in words."""
    arrays = {name: value for name, value in variables.items() if isinstance(value, np.ndarray)}
    return {
        name: f"{name} (shape {value.shape}, {value.dtype})"
        for name, value in arrays.items()
        if (hasattr(value, "plain") and value.dtype.kind in "fc") or value.dtype == OBJECT
    }


def _holds_body(value: Any) -> bool:
    """Whether a variable is a node, or what is left of one."""
    if isinstance(value, np.ndarray):
        return hasattr(value, "plain") or is_body(value)
    return value is REFUSAL


def _plain_view(array: Any) -> Any:
    """An array as no subclass, so that a node shows what it is and not what it stands for."""
    return np.ndarray.view(array, np.ndarray)
