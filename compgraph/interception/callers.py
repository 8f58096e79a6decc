"""Classification of callers by file: user code, installed libraries, NumPy, `compgraph` and `autodiff`.

Patched functions look up the file of their caller in one of the tables below: a dictionary access after the first call.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType
from typing import Any

import numpy as np

from ..frames import is_in_library, is_internal, source_lines
from ..inplace import contains_node
from ..tracing import has_compiled_code, library_folders

_NUMPY = os.path.dirname(np.__file__) + os.sep
_POLYNOMIALS = os.path.join(_NUMPY, "polynomial")


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, to `compgraph` or to `autodiff`."""
    return is_internal(filename) or filename.startswith(library_folders()) or filename in sys.builtin_module_names


@functools.cache
def is_user_module(module: object) -> bool:
    """Whether the module of a name is the user's."""
    if not isinstance(module, str) or module.partition(".")[0] in ("builtins", "numpy", "scipy"):
        return False
    return not is_library(getattr(sys.modules.get(module), "__file__", None) or "")


# A function whose code belongs to no package: conversions in it count as those of the user, and names in it are patched.
_CALL = compile("lambda *args, **kwargs: function(*args, **kwargs)", "<call of a function in C>", "eval")


def as_python_function(f: Any) -> Any:
    """Return a function in Python that calls a function in C (``math.sin``, ``float``); others are returned unchanged.

    If this package called it with a tracer, the conversion of the tracer would be neither replaced nor reported.
    """
    if type(f) is functools.partial:
        inner = as_python_function(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    if type(f) is not BuiltinFunctionType and not (isinstance(f, type) and f.__module__ in ("builtins", "numpy")):
        return f
    call = eval(_CALL, {"__name__": "<call>", "function": f})
    call.__name__, call.__qualname__, call.__doc__ = f.__name__, f.__qualname__, f.__doc__
    return call


class _FileTable(dict[str, bool]):
    """A predicate of filenames, with its results cached."""

    def __init__(self, predicate: Callable[[str], bool]) -> None:
        self._predicate = predicate

    def __missing__(self, filename: str) -> bool:
        self[filename] = result = self._predicate(filename)
        return result


def runs_on_nodes(filename: str) -> bool:
    """Whether a file is one of NumPy's modules of polynomials, whose Python code runs on nodes."""
    return filename.startswith(_NUMPY) and "polynomial" in filename.removeprefix(_NUMPY)


def _receives_patches(filename: str) -> bool:
    if filename.startswith("<frozen"):  # the import of a compiled module, which runs C code
        return False
    is_own = is_internal(filename) and not runs_on_nodes(filename) and filename != functools.__file__
    return not is_own and not is_in_library(filename, "scipy")


# Whether calls from a file get the patched constructors: not from compgraph, autodiff, SciPy, or NumPy (except its
# polynomials, which run on nodes).
RECEIVES_PATCHES = _FileTable(_receives_patches)

# Whether code of a file gets buffers for all new arrays. Libraries with compiled code, such as pandas, pass arrays to C code
# that reads memory, so they get buffers only if the calling function handles tracers (see `works_on_tracers`).
RECEIVES_BUFFERS = _FileTable(lambda filename: runs_on_nodes(filename) or not has_compiled_code(filename))

# Whether lists with nodes in calls from a file are recorded outside of operators: user code, and NumPy's polynomials.
RECORDS_SEQUENCES = _FileTable(lambda filename: not is_library(filename) or filename.startswith(_POLYNOMIALS))


def works_on_tracers(frame: FrameType) -> bool:
    """Whether a variable of a running library function, or of the library functions that called it, holds a tracer.

    Frames of `compgraph` and `autodiff` are not inspected: they hold tracers while they convert an operand by ``__array__``.
    """
    caller: FrameType | None = frame
    while (
        caller is not None
        and is_library(caller.f_code.co_filename)
        and not source_lines.is_package_code(caller.f_code.co_filename)
    ):
        if any(map(contains_node, caller.f_locals.values())):
            return True
        caller = caller.f_back
    return False
