"""What is said where code that does not know of the graph takes the numbers of a node: which, where, and what to do.

A `hollow.Refusal` raises at the place. NumPy and SciPy often notice first that a body is no array of floats, and raise
errors of their own ("object arrays are not supported"); `explained` tells those, which are then raised again in our words.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from . import copies, interpreter, lines

OBJECT = np.dtype(object)
WORDS = "the numbers of a compgraph node"  # the name of the field in bodies of narrow numbers, so that NumPy's errors tell
# Python's own modules, and what is installed beside NumPy; code elsewhere is the user's.
_STANDARD, _INSTALLED = sysconfig.get_path("stdlib") + os.sep, str(Path(np.__file__).parent.parent) + os.sep
_OF_OBJECTS = re.compile(
    rf"{WORDS}|Refusal|\bobject\b|[Oo]bject arrays|dtype\('O'\)|'O'|No matching signature|has no callable|data type|"
    r"safely coerced|structured|'tuple'|[Vv]oid|holds references|of references"
)
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
    "atanh": "np.arctanh", "fmean": "np.mean", "phase": "np.angle",
}  # fmt: skip
# Functions that make arrays of what they are given, and what to use for each.
MAKING = frozenset({"array", "asarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "fromiter"})


class EscapeError(TypeError):
    """The numbers of a node were asked for by code that does not know of its graph; a derivative would have been lost."""


class Refusal:
    """The one element of all hollow arrays: it raises an EscapeError whatever is done with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<number of a node>"


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Refusal, *args: Any, **kwargs: Any) -> Any:
        raise refused(sys._getframe(1))

    method.__name__ = name
    return method


# What NumPy's loops over objects, casts and comparisons, and C code ask an object for.
_SPECIAL = (
    "float int complex index bool hash add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod "
    "pow rpow matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne "
    "round trunc floor ceil format reduce reduce_ex iadd isub imul itruediv ifloordiv imod ipow"
)
_NAMED = "conjugate item tolist real imag is_integer as_integer_ratio"
for _name in _SPECIAL.split():
    setattr(Refusal, f"__{_name}__", _refusing(f"__{_name}__"))
for _name in (*_NAMED.split(), *[name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]):
    setattr(Refusal, _name, _refusing(_name))


def _number(self: Refusal) -> Any:
    """The number of an element, for a cast that will find its history again (see `copies`)."""
    frame = sys._getframe(1)
    if frame.f_code.co_filename == __file__:
        frame = sys._getframe(2)
    number = copies.number_for(frame)
    if number is None:
        raise refused(frame)
    return number


Refusal.__float__ = _number  # type: ignore[attr-defined]
Refusal.__complex__ = lambda self: complex(_number(self))  # type: ignore[attr-defined]
REFUSAL = Refusal()
interpreter.keep_for_ever(REFUSAL)


def refused(frame: FrameType | None, which: str | None = None) -> EscapeError:
    """The error for a number of a node, in words if it is known which, that was asked for by C code, which a frame called."""
    error = EscapeError(_message(list(_outwards(frame)), which))
    mine = _mine.get()
    for log in LOGS if mine is None else [mine]:  # a thread that was started within has a context of its own
        log.append(error)
    return error


class watching:  # noqa: N801  (a context, used as a function is)
    """Collect the refusals inside into a list, and warn of those that were caught when the context is left, if it tells."""

    __slots__ = ("_log", "_tells", "_token")

    def __init__(self, tells: bool) -> None:
        self._tells = tells

    def __enter__(self) -> None:
        self._log: list[EscapeError] = []
        self._token = _mine.set(self._log)
        LOGS.append(self._log)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _mine.reset(self._token)
        LOGS[:] = [log for log in LOGS if log is not self._log]
        if error is None and self._log and self._tells:
            lines.warn_at(
                lines.users_frame(2),
                f"numbers were refused to code that caught the error and went on; it may lack a derivative: {self._log[0]}",
            )


_mine: ContextVar[list[EscapeError] | None] = ContextVar("refusals", default=None)
LOGS: list[list[EscapeError]] = []  # those of all contexts that are open, in all threads


def explained(error: Exception) -> EscapeError | None:
    """The error in our words, if it came of the body of a node; None if it is one of ours already, or has other reasons."""
    if isinstance(error, EscapeError):
        return None
    for cause in _causes(error):
        if isinstance(cause, EscapeError):
            return EscapeError(*cause.args)
    if not isinstance(error, (TypeError, ValueError, AttributeError)) or not _OF_OBJECTS.search(str(error)):
        return None
    frames = list(_of_trace(error))
    if not any(_holds_body(value) for frame in frames for value in frame.f_locals.values()):
        return None
    return EscapeError(_message(frames))


def unused_copy(is_an_error: bool) -> EscapeError | None:
    """The error for a copy of a node that NumPy made, and that was used as an array of numbers; None if there is none."""
    place = copies.unused()
    if place is None or is_an_error:
        return None
    where = lines.described(*place)
    return EscapeError(
        f"a copy that np.asanyarray made of a node{'' if where is None else f' ({where})'} was used without its graph: the "
        "derivative would be lost. Use cg.asarray; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def refuse_body(array: Any) -> None:
    """Raise if a plain array is the body of a node, or holds elements of one."""
    if is_body(array):
        raise refused(lines.users_frame(2))


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


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _of_trace(error: BaseException) -> Iterator[FrameType]:
    """The frames an error came through, innermost first, up to where it is caught."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return reversed(frames)


def is_library(filename: str) -> bool:
    """Whether a file belongs to the packages, to Python, or to what is installed beside NumPy."""
    return lines.internal[filename] or filename.startswith((_INSTALLED, _STANDARD, "<frozen"))


def _message(frames: list[FrameType], which: str | None = None) -> str:
    """Who took the numbers of which node where, and what to do; of frames, innermost first."""
    position = next((k for k, f in enumerate(frames) if not is_library(f.f_code.co_filename)), None)
    if position is None:  # the user's code is a library too
        position = next((k for k, f in enumerate(frames) if not lines.internal[f.f_code.co_filename]), len(frames) - 1)
    frame = frames[position]
    called = frames[position - 1] if position else None
    if called is not None and lines.is_ours(called.f_code.co_filename):
        called = None
    place = lines.described(frame.f_code, frame.f_lasti)
    taken = f"the numbers of {which or _named_nodes(frames, frame)}"
    at = "" if place is None else f" ({place})"
    if called is None and interpreter.assigns(frame):
        return (
            f"{taken} are assigned into a plain array, which keeps numbers and no graph{at}. Make the array of nodes from the "
            "start (cg.zeros(shape), np.zeros_like(node), np.empty_like(node)); where the numbers alone are meant, assign "
            "node.value, or float(loss)"
        )
    who = _name_of(frame, called)
    return (
        f"{who or 'code outside the graph'} takes {taken} without asking for their graph{at}: the derivative would be lost. "
        f"{_advice(who)}; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def _name_of(frame: FrameType, called: FrameType | None) -> str:
    """What the user's frame called, as users write it; empty if it cannot be told."""
    found = interpreter.callee(frame)
    if called is not None:
        module, name = called.f_globals.get("__name__") or "", called.f_code.co_qualname
        if found is None:
            return f"an operator of {module.partition('.')[0]}'s"
        if module == "numpy._core._methods":
            return f"ndarray.{name.removeprefix('_').replace('amax', 'max').replace('amin', 'min')}()"
    elif found is None or found is interpreter.unknown:
        return ""
    else:
        owner = getattr(found, "__self__", None)
        module = str(getattr(found, "__module__", None) or "") or ("" if owner is None else type(owner).__module__)
        name = str(getattr(found, "__qualname__", None) or getattr(found, "__name__", ""))
    parts = [part for part in module.split(".") if not part.startswith("_") and part != "builtins"]
    return ".".join([*parts, name.replace("<locals>.", "")]) + "()" if name else ""


def _advice(who: str) -> str:
    """What to use instead of a function, or in general."""
    name = who.rstrip("()").rpartition(".")[2]
    if name in MAKING:
        return f"Use cg.{name if name != 'fromiter' else 'array'}, np.stack, or `with cg.patched_numpy():`"
    instead: str | None = COUNTERPARTS.get(name)
    if instead is None and who.startswith(("scipy.", "math.", "cmath.", "statistics.")):
        homes = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
        instead = next((f"{home}.{name}" for home, module in homes.items() if hasattr(module, name)), None)
    if instead is not None:
        return f"Use {instead}"
    return "Use functions of NumPy's, which keep the graph (cg.array for np.array), or declare it by cg.primitive with a rule"


def _named_nodes(frames: list[FrameType], users: FrameType) -> str:
    """The nodes whose numbers may be meant: those that the user's line names, else all that he has, else those further in."""
    line = lines.described(users.f_code, users.f_lasti) or ""
    in_line = set(re.findall(r"[^\W\d]\w*", line.partition(": ")[2]))
    of_user = _nodes_in(users.f_locals)
    inner = (_nodes_in(frame.f_locals) for frame in frames if not lines.internal[frame.f_code.co_filename])
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
