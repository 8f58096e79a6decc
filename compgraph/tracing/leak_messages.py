"""The message of a LeakError: the reader of the values, the node, the user's line, and a replacement."""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from types import FrameType
from typing import Any

import numpy as np

from ..frames import callee, is_assigning, method_called, source_lines, unknown
from ..ops import METHODS_MODULE, implementation

NAMES = re.compile(r"[^\W\d]\w*")
COMPILED = (".pyx", ".pxd", ".pxi")  # Cython shows these files in frames
_GENERATED = ("View.MemoryView", "stringsource", "<stringsource>", "__pyx_")  # how files of code that Cython adds begin
_KNOWN = sys.stdlib_module_names | {"numpy", "scipy"}  # packages whose errors have other causes
_CALLING = {"ctypes", "_ctypes"}  # packages that call C code, and raise for the arguments that they cannot convert
_LOCAL = "<locals>."  # in the names of functions that a function makes
_SHOWN = 3  # how many nodes a message names
# What to use instead of functions of SciPy's, Python's and NumPy's whose counterpart has another name.
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
# Functions that convert their argument to an array; see `_advice` for replacements.
MAKING = frozenset({"array", "asarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "fromiter"})


def is_library(filename: str) -> bool:
    """Whether a file is not user code: it belongs to the packages, Python, the site packages, or Cython."""
    return (
        source_lines.internal[filename]
        or filename.startswith(_of_others())
        or filename.endswith(COMPILED)
        or filename.startswith(_GENERATED)
    )


@functools.cache
def has_compiled_code(filename: str) -> bool:
    """Whether a file belongs to an installed package with imported compiled modules."""
    package = next(iter(_installed_in(filename)), None)
    return package is not None and any(
        name.partition(".")[0] == package and (getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))
        for name, module in list(sys.modules.items())
    )


def _installed_in(filename: str) -> list[str]:
    """The name of the installed package of a file, as a list of one; empty for other files."""
    homes = {sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")}
    return [filename.removeprefix(home).split(os.sep)[0].removesuffix(".py") for home in homes if filename.startswith(home)]


@functools.cache  # evaluated at first use, which keeps `import compgraph` fast
def _of_others() -> tuple[str, ...]:
    """The directories of library code: Python's own and the site packages."""
    beside = os.path.dirname(os.path.dirname(np.__file__))
    return sysconfig.get_path("stdlib") + os.sep, beside + os.sep, "<frozen"


def position_of_user(frames: list[FrameType]) -> int:
    """The position of the innermost user frame among frames given innermost first."""
    position = next((k for k, f in enumerate(frames) if not is_library(f.f_code.co_filename)), None)
    if position is None:  # the user's code is itself a library
        position = next((k for k, f in enumerate(frames) if not source_lines.internal[f.f_code.co_filename]), len(frames) - 1)
    return position


def format_places(frames: list[FrameType]) -> str:
    """The user's line and the innermost line of a called package, in parentheses, for frames given innermost first.

    Lines of NumPy do not count. The second line is missing if the user's code called compiled code. Empty if no line is known.
    """
    position = position_of_user(frames)
    called = ((frame, frame.f_code.co_filename) for frame in frames[:position])
    others = [frame for frame, name in called if not source_lines.internal[name] and not name.startswith(_GENERATED)]
    lines = [line for line in map(source_lines.format_frame, [frames[position], *others[:1]]) if line is not None]
    return f" ({'; requested at '.join(lines)})" if lines else ""


def note_of_cython(frames: list[FrameType], text: str) -> str | None:
    """A note with the Cython line that requested the values; it has no running frame when the error is made."""
    called = frames[: position_of_user(frames)]
    lines = (source_lines.format_frame(frame) for frame in called if frame.f_code.co_filename.endswith(COMPILED))
    line = next(lines, None)
    return None if line is None or line in text else f"The numbers were requested at {line}."


def leak_message(frames: list[FrameType], which: str | None = None) -> str:
    """The message for values read in the first of some frames, innermost first; `which` describes the node, if known."""
    position = position_of_user(frames)
    frame, called = frames[position], _called_by_user(frames, position)
    subject, at = f"the numbers of {which or _named_nodes(frames, frame)}", format_places(frames)
    if called is None and is_assigning(frame):
        return (
            f"{subject} are assigned into a plain array, which keeps numbers and no graph{at}. Make the array of nodes from the "
            "start (cg.zeros(shape), np.zeros_like(node), np.empty_like(node)); where the numbers alone are meant, assign "
            "node.value, or float(loss)"
        )
    who = _name_of(frame, called)
    advice = _advice(who)
    if who == "an operator":
        advice = "NumPy made that array of a node without dispatch: make it by cg.array, cg.asarray, cg.full or np.stack"
    return (
        f"{who or 'code outside the graph'} takes {subject} without asking for their graph{at}: the derivative would be lost. "
        f"{advice}; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def note_of_package(frames: list[FrameType], kind: type[Exception]) -> str | None:
    """A note for an error raised in frames given innermost first, if other packages ran there on a tracer."""
    position = position_of_user(frames)
    users, others = frames[position], [frame for frame in frames[:position] if _is_of_others(frame)]
    is_foreign = bool(others) or (position == 0 and kind.__module__.partition(".")[0] in _CALLING)
    if not is_foreign or not (names_tracer(users) or any(_nodes_in(frame.f_locals) for frame in others)):
        return None
    who = _name_of(users, _called_by_user(frames, position)) or "compiled code"
    return (
        f"{who} got {_named_nodes(frames, users)}, which is differentiated and exposes no numbers{format_places(frames)}. This "
        f"may be the cause of the error. {_advice(who)}; where the plain numbers are meant, give x.value"
    )


def _called_by_user(frames: list[FrameType], position: int) -> FrameType | None:
    """The frame of the function that the user called; None for compiled code or an operation on a node."""
    called = frames[position - 1] if position else None
    return None if called is None or source_lines.is_package_code(called.f_code.co_filename) else called


def _is_of_others(frame: FrameType) -> bool:
    """Whether a frame runs code of a package that does not support tracers; SciPy's functions do."""
    filename, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    return is_library(filename) and not source_lines.internal[filename] and module.partition(".")[0] not in _KNOWN


def _name_of(frame: FrameType, called: FrameType | None) -> str:
    """The public name of what the user's frame called; empty if unknown."""
    call_target = callee(frame)
    if called is not None and source_lines.is_packaged(called.f_code.co_filename):  # a replacement for a library function
        call_target = called.f_locals.get("original", call_target)
    is_told = call_target is not None and call_target is not unknown
    if called is not None and not (is_told and hasattr(call_target, "__name__")):
        module, name = _origin_of(called, frame)
        package, method = module.partition(".")[0], method_called(frame)
        if call_target is None:
            return f"an operator of {package}'s"
        if called.f_code.co_filename.endswith(COMPILED) and method is not None and not name.endswith(f".{method}"):
            return f"the method {method}() of {package}"  # by a wrapper of Cython's
        if module == METHODS_MODULE:
            return f"ndarray.{name.removeprefix('_').replace('amax', 'max').replace('amin', 'min')}()"
    elif not is_told:
        method = method_called(frame)
        return f"ndarray.{method}()" if method is not None else "an operator" if call_target is None else ""
    else:
        owner = getattr(call_target, "__self__", None)
        home = getattr(call_target, "__objclass__", type(owner))
        module = str(getattr(call_target, "__module__", None) or home.__module__)
        name = str(getattr(call_target, "__qualname__", None) or getattr(call_target, "__name__", ""))
        if _LOCAL in name and owner is not None and (method := method_called(frame)):  # the wrapper that a decorator returned
            module, name = type(owner).__module__, f"{type(owner).__qualname__}.{method}"
    name = name.removeprefix(f"{module}.").replace(_LOCAL, "").removesuffix(".__call__").removesuffix(".__init__")
    name = name.removeprefix("function ")  # in the names of functions made by f2py
    parts = [part for part in module.split(".") if not part.startswith("_") and part != "builtins"]
    parts = parts or [module.lstrip("_")] if module not in ("builtins", "__main__", "") else []
    for length in range(1, len(parts)):  # the outermost module with the name: numpy.sum, not numpy.fromnumeric.sum
        public = getattr(sys.modules.get(".".join(parts[:length])), name.partition(".")[0], None)
        code = getattr(implementation(public), "__code__", None)
        if isinstance(public, type) or (callable(public) and (public is call_target or (called and code is called.f_code))):
            parts = parts[:length]
    return ".".join([*parts, name]) + "()" if name else ""


def _origin_of(called: FrameType, frame: FrameType) -> tuple[str, str]:
    """Module and name of a running function that a frame called; for a decorator's wrapper, those of the method."""
    code, method = called.f_code, method_called(frame)
    if _LOCAL in code.co_qualname and method is not None and code.co_argcount:
        owner = type(called.f_locals.get(code.co_varnames[0]))
        if hasattr(owner, method):
            return owner.__module__, f"{owner.__qualname__}.{method}"
    return called.f_globals.get("__name__") or "", code.co_qualname


def _advice(who: str) -> str:
    """The replacement for a function, or general advice."""
    owner, _, name = who.rstrip("()").rpartition(".")
    if name in MAKING:
        return f"Use cg.{name if name != 'fromiter' else 'array'}, np.stack, or `with cg.patched_numpy():`"
    if owner in ("numpy.ndarray", "ndarray") and hasattr(np, name):
        return f"A method of a plain array does not dispatch; use np.{name}" + (", or @" if name == "dot" else "")
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
        instead = _callable_in(name, {f"cg{owner[5:]}": sys.modules.get(f"compgraph{owner[5:]}")})
    if instead is None and who.startswith(("scipy.", "math.", "cmath.", "statistics.", "jax.", "torch.", "autograd.")):
        instead = _callable_in(name, {"np": np, "np.linalg": np.linalg, "np.fft": np.fft})
    if instead is not None:
        return f"Use {instead}"
    return (
        "Use functions of NumPy's, which keep the graph (cg.array for np.array, np.dot(a, x) for a.dot(x)), or declare it by "
        "cg.primitive with a rule"
    )


def _callable_in(name: str, homes: Mapping[str, Any]) -> str | None:
    """``"home.name"`` of the first module that has a callable of that name; otherwise None."""
    return next((f"{home}.{name}" for home, module in homes.items() if callable(getattr(module, name, None))), None)


def _named_nodes(frames: list[FrameType], users: FrameType) -> str:
    """Describe the nodes whose values may be read: those on the user's line, else in its frame, else in inner frames."""
    line = source_lines.format_frame(users) or ""
    in_line = set(NAMES.findall(line.partition(": ")[2]))
    of_user = _nodes_in(users.f_locals)
    inner = (_nodes_in(frame.f_locals) for frame in frames if not source_lines.internal[frame.f_code.co_filename])
    descriptions = {name: text for name, text in of_user.items() if name in in_line} or of_user or next(filter(None, inner), {})
    if not descriptions:
        return "a node"
    return " or ".join(list(descriptions.values())[:_SHOWN]) + (" or others" if len(descriptions) > _SHOWN else "")


def variable_of(node: Any, frame: FrameType) -> str | None:
    """Describe a node by the variable that holds it in the innermost user frame at or above `frame`; None if none does."""
    around: FrameType | None = frame
    while around is not None and is_library(around.f_code.co_filename):
        around = around.f_back
    names = [] if around is None else [name for name, value in around.f_locals.items() if value is node]
    return f"{names[0]} (shape {node.shape}, {node.dtype})" if names else None


def names_tracer(users: FrameType) -> bool:
    """Whether the user's line names a variable that holds a floating tracer."""
    line = source_lines.format_frame(users) or ""
    return any(name in _nodes_in(users.f_locals) for name in NAMES.findall(line.partition(": ")[2]))


def _nodes_in(variables: Mapping[str, Any]) -> dict[str, str]:
    """Describe each variable that is a floating node."""
    nodes = {name: value for name, value in variables.items() if hasattr(type(value), "opname") and hasattr(value, "raw_value")}
    return {name: f"{name} (shape {node.shape}, {node.dtype})" for name, node in nodes.items() if node.dtype.kind in "fc"}
