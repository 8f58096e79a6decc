"""LeakError: raised where code without graph support reads the values of a tracer.

A tracer raises when its values are requested. C code that accepts only arrays often rejects a tracer first, with an error of its
own that names the class. `explain_error` recognizes such errors by that name. The message states the code that reads the values,
the node, the user's line, and a replacement.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
import weakref
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib.machinery import EXTENSION_SUFFIXES
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ..context import layered_variable
from ..frames import callee, is_assigning, is_raised_by, method_called, source_lines, unknown, walk_frames, warn_user
from ..ops import METHODS_MODULE, UNDISPATCHED, implementation

NAME_PATTERN = re.compile(r"[^\W\d]\w*")
CYTHON_SUFFIXES = (".pyx", ".pxd", ".pxi")  # Cython shows these files in frames
# Prefixes of the file names of code that Cython generates.
_CYTHON_GENERATED = ("View.MemoryView", "stringsource", "<stringsource>", "__pyx_")
# Packages that support tracers, so that their errors have other causes.
_SUPPORTED_PACKAGES = sys.stdlib_module_names | {"numpy", "scipy"}
_FFI_MODULES = {"ctypes", "_ctypes"}  # packages that call C code, and raise for arguments that they cannot convert
_LOCAL = "<locals>."  # in the qualified names of nested functions
_MAX_NODES = 3  # nodes named in a message
# Replacements for functions of SciPy, Python and NumPy whose counterpart has a different name.
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
    "masked_invalid": "np.where(np.isfinite(x), x, number)", "masked_where": "np.where(condition, number, x)",
    "masked_equal": "np.where(x == value, number, x)",
    "ndenumerate": "np.ndindex(x.shape)", "fill": "cg.full, or cg.zeros(shape) as the target", "dot": "a @ x, np.dot(a, x)",
}  # fmt: skip
# Functions that convert their argument to an array; see `_advice` for replacements.
CONSTRUCTOR_NAMES = frozenset(spec.function.__name__ for spec in UNDISPATCHED if spec.converts == "lists")


def is_library(filename: str) -> bool:
    """Whether a file is not user code: it belongs to the packages, Python, the site packages, or Cython."""
    return (
        source_lines.internal[filename]
        or filename.startswith(library_folders())
        or filename.endswith(CYTHON_SUFFIXES)
        or filename.startswith(_CYTHON_GENERATED)
    )


@functools.cache
def has_compiled_code(filename: str) -> bool:
    """Whether a file belongs to an installed package with imported compiled modules."""
    package = next(iter(_installed_package(filename)), None)
    return package is not None and any(
        name.partition(".")[0] == package and (getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))
        for name, module in list(sys.modules.items())
    )


def _installed_package(filename: str) -> list[str]:
    """The name of the installed package of a file, as a list of one; empty for other files."""
    folders = {sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")}
    return [filename.removeprefix(path).split(os.sep)[0].removesuffix(".py") for path in folders if filename.startswith(path)]


@functools.cache  # evaluated at first use, which keeps `import compgraph` fast
def library_folders() -> tuple[str, ...]:
    """The directories of library code: Python's own, the site packages, and the one that contains NumPy."""
    import site

    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.path.dirname(np.__file__))}
    return *[folder + os.sep for folder in folders], "<frozen"


def user_frame_index(frames: list[FrameType]) -> int:
    """The position of the innermost user frame among frames given innermost first."""
    position = next((k for k, f in enumerate(frames) if not is_library(f.f_code.co_filename)), None)
    if position is None:  # the user's code is itself a library
        position = next((k for k, f in enumerate(frames) if not source_lines.internal[f.f_code.co_filename]), len(frames) - 1)
    return position


def format_locations(frames: list[FrameType]) -> str:
    """The user's line and the innermost line of a called package, in parentheses, for frames given innermost first.

    Lines of NumPy do not count. The second line is missing if the user's code called compiled code. Empty if no line is known.
    """
    position = user_frame_index(frames)
    inner = ((frame, frame.f_code.co_filename) for frame in frames[:position])
    others = [frame for frame, name in inner if not source_lines.internal[name] and not name.startswith(_CYTHON_GENERATED)]
    lines = [line for line in map(source_lines.format_frame, [frames[position], *others[:1]]) if line is not None]
    return f" ({'; requested at '.join(lines)})" if lines else ""


def cython_note(frames: list[FrameType], text: str) -> str | None:
    """A note with the Cython line that requested the values; it has no running frame when the error is made."""
    inner = frames[: user_frame_index(frames)]
    lines = (source_lines.format_frame(frame) for frame in inner if frame.f_code.co_filename.endswith(CYTHON_SUFFIXES))
    line = next(lines, None)
    return None if line is None or line in text else f"The numbers were requested at {line}."


def leak_message(frames: list[FrameType], description: str | None = None) -> str:
    """The message for values read in the first of some frames, innermost first; `description` describes the node, if known."""
    position = user_frame_index(frames)
    frame, called_frame = frames[position], _called_by_user(frames, position)
    subject, at = f"the numbers of {description or _named_nodes(frames, frame)}", format_locations(frames)
    if called_frame is None and is_assigning(frame):
        return (
            f"{subject} are assigned into a plain array, which keeps numbers and no graph{at}. Make the array of nodes from the "
            "start (cg.zeros(shape), np.zeros_like(node), np.empty_like(node)); where the numbers alone are meant, assign "
            "node.value, or float(loss)"
        )
    reader = _name_of(frame, called_frame)
    advice = _advice(reader)
    if reader == "an operator":
        advice = "NumPy made that array of a node without dispatch: make it by cg.array, cg.asarray, cg.full or np.stack"
    return (
        f"{reader or 'code outside the graph'} takes {subject} without recording the operation{at}: the derivative would be "
        f"lost. {advice}. If plain numbers are intended, write x.value or cg.stop_gradient(x)"
    )


def package_note(frames: list[FrameType], error_class: type[Exception]) -> str | None:
    """A note for an error, if other packages ran on a tracer in its frames, which are given innermost first."""
    position = user_frame_index(frames)
    user_frame, others = frames[position], [frame for frame in frames[:position] if _is_foreign_code(frame)]
    is_foreign = bool(others) or (position == 0 and error_class.__module__.partition(".")[0] in _FFI_MODULES)
    if not is_foreign or not (names_tracer(user_frame) or any(_nodes_in(frame.f_locals) for frame in others)):
        return None
    reader = _name_of(user_frame, _called_by_user(frames, position)) or "compiled code"
    return (
        f"{reader} got {_named_nodes(frames, user_frame)}, which is differentiated and exposes no numbers"
        f"{format_locations(frames)}, and this may have caused the error. {_advice(reader)}. If plain numbers are intended, "
        "write x.value"
    )


def _called_by_user(frames: list[FrameType], position: int) -> FrameType | None:
    """The frame of the function that the user called; None for compiled code or an operation on a node."""
    called_frame = frames[position - 1] if position else None
    return None if called_frame is None or source_lines.is_package_code(called_frame.f_code.co_filename) else called_frame


def _is_foreign_code(frame: FrameType) -> bool:
    """Whether a frame runs code of a package that does not support tracers; SciPy's functions do."""
    filename, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    return is_library(filename) and not source_lines.internal[filename] and module.partition(".")[0] not in _SUPPORTED_PACKAGES


def _name_of(frame: FrameType, called_frame: FrameType | None) -> str:
    """The public name of the callable that the user's frame called; empty if unknown."""
    call_target = callee(frame)
    # The called function may be a replacement for a library function.
    if called_frame is not None and source_lines.is_in_packages(called_frame.f_code.co_filename):
        call_target = called_frame.f_locals.get("original", call_target)
    is_known = call_target is not None and call_target is not unknown
    if called_frame is not None and not (is_known and hasattr(call_target, "__name__")):
        module, name = _origin_of(called_frame, frame)
        package, method = module.partition(".")[0], method_called(frame)
        if call_target is None:
            return f"an operator of {package}'s"
        if called_frame.f_code.co_filename.endswith(CYTHON_SUFFIXES) and method is not None and not name.endswith(f".{method}"):
            return f"the method {method}() of {package}"  # by a wrapper of Cython's
        if module == METHODS_MODULE:
            return f"ndarray.{name.removeprefix('_').replace('amax', 'max').replace('amin', 'min')}()"
    elif not is_known:
        method = method_called(frame)
        return f"ndarray.{method}()" if method is not None else "an operator" if call_target is None else ""
    else:
        owner = getattr(call_target, "__self__", None)
        cls = getattr(call_target, "__objclass__", type(owner))
        module = str(getattr(call_target, "__module__", None) or cls.__module__)
        name = str(getattr(call_target, "__qualname__", None) or getattr(call_target, "__name__", ""))
        if _LOCAL in name and owner is not None and (method := method_called(frame)):  # the wrapper that a decorator returned
            module, name = type(owner).__module__, f"{type(owner).__qualname__}.{method}"
    return _public_name(module, name, call_target, called_frame)


def _public_name(module: str, name: str, call_target: Any, called_frame: FrameType | None) -> str:
    """The name of a callable in the outermost module that has it, with parentheses; empty if `name` is."""
    name = name.removeprefix(f"{module}.").replace(_LOCAL, "").removesuffix(".__call__").removesuffix(".__init__")
    name = name.removeprefix("function ")  # a prefix that f2py adds
    parts = [part for part in module.split(".") if not part.startswith("_") and part != "builtins"]
    parts = parts or [module.lstrip("_")] if module not in ("builtins", "__main__", "") else []
    for length in range(1, len(parts)):  # the outermost module with the name: numpy.sum, not numpy.fromnumeric.sum
        public = getattr(sys.modules.get(".".join(parts[:length])), name.partition(".")[0], None)
        code = getattr(implementation(public), "__code__", None)
        if isinstance(public, type) or (
            callable(public) and (public is call_target or (called_frame and code is called_frame.f_code))
        ):
            parts = parts[:length]
    return ".".join([*parts, name]) + "()" if name else ""


def _origin_of(called_frame: FrameType, frame: FrameType) -> tuple[str, str]:
    """Module and name of a running function that a frame called; for a decorator's wrapper, those of the method."""
    code, method = called_frame.f_code, method_called(frame)
    if _LOCAL in code.co_qualname and method is not None and code.co_argcount:
        owner = type(called_frame.f_locals.get(code.co_varnames[0]))
        if hasattr(owner, method):
            return owner.__module__, f"{owner.__qualname__}.{method}"
    return called_frame.f_globals.get("__name__") or "", code.co_qualname


def _advice(reader: str) -> str:
    """The replacement for a function, or general advice."""
    owner, _, name = reader.rstrip("()").rpartition(".")
    if name in CONSTRUCTOR_NAMES:
        return f"Use cg.{name if name != 'fromiter' else 'array'}, np.stack, or `with cg.patched_numpy():`"
    if owner in ("numpy.ndarray", "ndarray") and hasattr(np, name):
        return f"A method of a plain array does not dispatch; use np.{name}" + (", or @" if name == "dot" else "")
    if reader.startswith("an operator of scipy's"):
        return "Use plain arrays (sparse.toarray() @ x), or declare it by cg.primitive with a rule"
    if owner.startswith("numpy.random"):
        return "Draw numbers that do not depend on it, and shift and scale them: loc + scale * rng.normal()"
    if owner.startswith("numpy.polynomial"):
        return "Use np.polyval, which takes the highest power first"
    if owner == "numpy" and name in np.sctypeDict:
        return f"Use x.astype(np.{name})" if np.dtype(name).kind in "fc" else "Use int(x), which has no derivative"
    replacement: str | None = COUNTERPARTS.get(name)
    if replacement is None and owner in ("numpy", "numpy.linalg", "numpy.fft"):
        replacement = _callable_in(name, {f"cg{owner[5:]}": sys.modules.get(f"compgraph{owner[5:]}")})
    if replacement is None and reader.startswith(("scipy.", "math.", "cmath.", "statistics.", "jax.", "torch.", "autograd.")):
        replacement = _callable_in(name, {"np": np, "np.linalg": np.linalg, "np.fft": np.fft})
    if replacement is not None:
        return f"Use {replacement}"
    return (
        "Use functions of NumPy's, which keep the graph (cg.array for np.array, np.dot(a, x) for a.dot(x)), or declare it by "
        "cg.primitive with a rule"
    )


def _callable_in(name: str, modules: Mapping[str, Any]) -> str | None:
    """The qualified name of a callable in the first module that has it; otherwise None."""
    return next((f"{path}.{name}" for path, module in modules.items() if callable(getattr(module, name, None))), None)


def _named_nodes(frames: list[FrameType], user_frame: FrameType) -> str:
    """Describe the nodes whose values may be read: those on the user's line, else in its frame, else in inner frames."""
    line = source_lines.format_frame(user_frame) or ""
    line_names = set(NAME_PATTERN.findall(line.partition(": ")[2]))
    user_nodes = _nodes_in(user_frame.f_locals)
    inner = (_nodes_in(frame.f_locals) for frame in frames if not source_lines.internal[frame.f_code.co_filename])
    descriptions = (
        {name: text for name, text in user_nodes.items() if name in line_names} or user_nodes or next(filter(None, inner), {})
    )
    if not descriptions:
        return "a node"
    return " or ".join(list(descriptions.values())[:_MAX_NODES]) + (" or others" if len(descriptions) > _MAX_NODES else "")


def variable_of(node: Any, frame: FrameType) -> str | None:
    """Describe a node by the variable that holds it in the innermost user frame at or above `frame`; None if none does."""
    outer: FrameType | None = frame
    while outer is not None and is_library(outer.f_code.co_filename):
        outer = outer.f_back
    names = [] if outer is None else [name for name, value in outer.f_locals.items() if value is node]
    return f"{names[0]} (shape {node.shape}, {node.dtype})" if names else None


def names_tracer(user_frame: FrameType) -> bool:
    """Whether the user's line names a variable that holds a floating tracer."""
    line = source_lines.format_frame(user_frame) or ""
    return any(name in _nodes_in(user_frame.f_locals) for name in NAME_PATTERN.findall(line.partition(": ")[2]))


def _nodes_in(variables: Mapping[str, Any]) -> dict[str, str]:
    """Describe each variable that is a floating node."""
    nodes = {name: value for name, value in variables.items() if hasattr(type(value), "opname") and hasattr(value, "raw_value")}
    return {name: f"{name} (shape {node.shape}, {node.dtype})" for name, node in nodes.items() if node.dtype.kind in "fc"}


_CYTHON_MISMATCH = "No matching signature found"  # a Cython function with fused types received no array
OPAQUE_CLASSES: set[str] = set()  # names of the classes of tracers and buffers, which errors of C code contain


class LeakError(TypeError):
    """Code without graph support requested the values of a node, which would lose the derivative."""

    __module__ = "compgraph"  # the public module, for tracebacks

    # The user's code and instruction. C code may replace this error by one of its own there; see `explain_error`.
    location: tuple[Any, int] | None = None

    def __reduce__(self) -> Any:
        return type(self), self.args  # without the location, which cannot be pickled


class LeakWarning(RuntimeWarning):
    """Numbers of a node left its graph, so results computed from them lack a derivative.

    It is issued for ``float(x)`` and similar conversions within an operator; by `autodiff.reverse.gradient` and other operators,
    if constants of the graph seem to come from such numbers; and where code caught a `LeakError`. Compute with the node itself.
    If a constant is intended, write ``x.value`` or ``cg.stop_gradient(x)``, which do not warn.

    Examples
    --------
    >>> import warnings
    >>> import compgraph as cg
    >>> with warnings.catch_warnings(), cg.strict():
    ...     warnings.filterwarnings("ignore", category=cg.errors.LeakWarning)
    ...     float(cg.variable(2.0))
    2.0
    """

    __module__ = "compgraph.errors"  # the public module


def make_leak_error(frame: FrameType | None, description: str | None = None, message: str | None = None) -> LeakError:
    """Create and log the error for a request of a node's value by C code that `frame` called.

    `description` describes the node, if it is known; `message` replaces the standard message. The error is appended to the log
    of the context, or to all logs if the thread has none of its own.
    """
    frames = list(walk_frames(frame))
    error = LeakError(message or leak_message(frames, description))
    if frames:
        user_frame = frames[user_frame_index(frames)]
        error.location = user_frame.f_code, user_frame.f_lasti
    own_log = OWN_LOG.get()
    for log in [reference() for reference in tuple(LOGS)] if own_log is None else [own_log]:  # threads have contexts of their own
        if log is not None:
            log.append(error)
    return error


def warn_caught(errors: list[LeakError]) -> None:
    """Warn that code caught a LeakError and continued."""
    warn_user(f"code caught the error of a conversion to numbers; its result may lack a derivative: {errors[0]}", LeakWarning)


class LeakLog(list["LeakError"]):
    """The leak errors raised within one context."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


OWN_LOG: ContextVar[LeakLog | None] = layered_variable("leak_log", None)
# The logs of all open contexts of all threads; weak references, because an interrupt may prevent the closing of a context.
LOGS: set[weakref.ref[LeakLog]] = set()


def explain_error(error: Exception, log: list[LeakError]) -> LeakError | None:
    """Return the LeakError that explains an error caused by a tracer; None if it is a LeakError, or has another cause.

    `log` holds the leak errors so far, because C code may replace one by an error of its own.
    """
    if isinstance(error, LeakError):
        return None
    for cause in _iterate_causes(error):
        if isinstance(cause, LeakError):
            return LeakError(*cause.args)
    trace = _traceback_entries(error)
    if not trace:
        return None
    frames = [part.tb_frame for part in trace]
    code = frames[0].f_code
    if source_lines.is_in_packages(code.co_filename) or (
        not is_library(code.co_filename) and is_raised_by(code, trace[0].tb_lasti)
    ):
        return None  # an error of this package, or raised by the user's code
    locations = {(part.tb_frame.f_code, part.tb_lasti) for part in trace}
    for leak in reversed(log):
        if leak.location in locations:
            return LeakError(*leak.args)
    if isinstance(error, AttributeError) and hasattr(type(error.obj), "opname"):
        return None  # the user accessed an attribute that arrays lack
    message = str(error)
    # Messages that begin with the class are Python's own: "'OperationalTracer' object is not callable". They are kept.
    names_class = any(name in message and not message.startswith(f"'{name}' object") for name in OPAQUE_CLASSES)
    is_cython_error = message == _CYTHON_MISMATCH or (type(error) is ValueError and code.co_filename.endswith(CYTHON_SUFFIXES))
    is_tracer_error = names_class or (is_cython_error and names_tracer(frames[user_frame_index(frames)]))
    return LeakError(leak_message(frames)) if is_tracer_error else None


def annotate_error(error: Exception) -> None:
    """Add a note to an error of another package that handled a tracer, or that passed through Cython code."""
    frames = [part.tb_frame for part in _traceback_entries(error)]
    if not frames:
        return
    note = cython_note(frames, str(error)) if isinstance(error, LeakError) else package_note(frames, type(error))
    if note is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _traceback_entries(error: BaseException) -> list[TracebackType]:
    """The traceback of an error, innermost entry first, up to where it is caught."""
    entries, trace = [], error.__traceback__
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries[::-1]


def user_line_of(error: BaseException) -> str | None:
    """Return the innermost user line that an error passed through; None if it passed through none."""
    frames = [part.tb_frame for part in _traceback_entries(error)]
    frame = frames[user_frame_index(frames)] if frames else None
    return None if frame is None or source_lines.internal[frame.f_code.co_filename] else source_lines.format_frame(frame)
