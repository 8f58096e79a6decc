"""Calls of ``float(x)``, ``np.float64(x)`` and ``plain.dot(x)`` in the Python code of installed packages.

Packages convert their arguments to check them: ``self.rate = float(rate)``, ``dtype(a)``. ``float`` returns a float, so a tracer
would lose its derivative; methods of plain arrays do not dispatch. When a tracer reaches such a call for the first time, the
calls in that module are replaced, in the code of its functions, by calls of `convert`, which returns tracers. Then the operator
traces the function from its beginning. The same is done where a package raises after a check of ``type(x)``, which is then the
class of the value that a tracer represents. In the user's code a conversion warns, and returns a number.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np

from ..frames import callee, expression, method_called, source_lines
from ..guards import loses_derivative
from ..tracing import ERROR_RETRACERS, RETRACERS, RetraceError, is_compiling, is_retraceable, is_tracing
from ..values import Value, mark_python_number
from .code_patches import replace_code
from .introspection import PATCHES

_NAMES = frozenset({"float", "float64", "double", "type"})  # the names of calls that are always replaced
traced_type = PATCHES["type"]
_CONVERT = "__compgraph_convert__"  # the name of `convert` in the builtins, which the new code looks up
_EXCLUDED_PACKAGES = frozenset({"numpy", "scipy", "matplotlib", "mpl_toolkits", "numba", "dask", "llvmlite", "pytest", "_pytest"})
# By file, line and column of a call that a tracer has reached: whether it was replaced.
_reached_calls: dict[tuple[str, int, int], bool] = {}


@functools.cache
def is_replaceable(filename: str) -> bool:
    """Whether calls in a file are replaced: it belongs to an installed package, except those that only read numbers."""
    if source_lines.is_in_packages(filename):
        return False
    for folder in {sysconfig.get_path(name) for name in ("purelib", "platlib")}:
        if filename.startswith(folder + os.sep):
            return filename[len(folder) + 1 :].partition(os.sep)[0] not in _EXCLUDED_PACKAGES
    return False


def convert(function: Any, value: object) -> Any:
    """Call a conversion to floating numbers, or a method of a plain array; a tracer with a derivative remains a tracer."""
    if function is type:
        return traced_type(value)
    if not isinstance(value, Value):
        return function(value)
    if is_tracing() and not is_compiling() and loses_derivative(value) and value.dtype.kind == "f":
        if function is np.float64:
            return value.astype(np.float64)
        if function is float and value.ndim == 0:
            return mark_python_number(value.astype(np.float64)[()])
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ndarray) and getattr(function, "__name__", "") == "dot":
            return np.dot(owner, value)
    return function(value)


def _retrace(frame: FrameType) -> None:
    """Replace the call that a frame executes, and raise a `RetraceError`; return if it cannot be replaced."""
    if not is_retraceable() or is_compiling() or not is_replaceable(frame.f_code.co_filename):
        return
    call = expression(frame.f_code, frame.f_lasti)
    if not isinstance(call, ast.Call) or not _has_one_argument(call):
        return
    if callee(frame) not in (float, np.float64) and method_called(frame) != "dot":
        return
    location = frame.f_code.co_filename, call.lineno, call.col_offset
    if location not in _reached_calls:
        _reached_calls[location] = True  # before the calls are replaced, this one among them
        _reached_calls[location] = _replace_calls(frame.f_code, location)
    if _reached_calls[location] and _CONVERT not in frame.f_code.co_names:
        raise RetraceError  # again for ``np.float64(x)``, which catches the error of ``__float__`` and calls ``__array__``


def _repair(error: Exception) -> bool:
    """Replace the calls in the module that raised an error, if its function checks ``type(x)``; return whether it did."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    code = next((code for code in reversed(codes) if not source_lines.is_in_packages(code.co_filename)), None)
    if code is None or "type" not in code.co_names or _CONVERT in code.co_names or is_compiling():
        return False
    location = code.co_filename, code.co_firstlineno, -1
    if location in _reached_calls or not is_replaceable(code.co_filename):
        return False
    _reached_calls[location] = _replace_calls(code, location)
    return _reached_calls[location]


RETRACERS.append(_retrace)
ERROR_RETRACERS.append(_repair)


def _has_one_argument(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)


class _CallReplacer(ast.NodeTransformer):
    """Replaces the calls of conversions, by their names or because a tracer was converted there."""

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace one call."""
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        if not _has_one_argument(node) or (
            name not in _NAMES and (self.filename, node.lineno, node.col_offset) not in _reached_calls
        ):
            return node
        function = ast.copy_location(ast.Name(_CONVERT, ast.Load()), node.func)
        return ast.copy_location(ast.Call(function, [node.func, *node.args], []), node)


def _replace_calls(code: CodeType, location: tuple[str, int, int]) -> bool:
    """Replace the conversions in the functions of a module; return whether those with the given code are among them."""
    filename = location[0]
    source = "".join(linecache.getlines(filename))
    compile_module = functools.partial(compile, filename=filename, mode="exec", dont_inherit=True)
    old_codes = dict(_codes_by_location(compile_module(source)))
    new_codes = dict(_codes_by_location(compile_module(_CallReplacer(filename).visit(ast.parse(source)))))
    setattr(builtins, _CONVERT, convert)
    is_replaced = False
    for function in _functions(filename):
        old_code = function.__code__
        key = old_code.co_qualname, old_code.co_firstlineno
        # The codes are equal, unless the file was changed after its import.
        if old_code.co_filename == filename and old_code == old_codes.get(key) and old_code != new_codes[key]:
            replace_code(function, new_codes[key])
            is_replaced = is_replaced or old_code is code
    return is_replaced


def _functions(filename: str) -> list[FunctionType]:
    """All functions that the garbage collector lists; after ``gc.freeze``, those that the module of a file names, or wraps."""
    functions = [value for value in gc.get_objects() if type(value) is FunctionType]
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == filename:
            for value in list(vars(module).values()):
                for member in list(vars(value).values()) if isinstance(value, type) else [value]:
                    function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                    while type(function) is FunctionType:
                        functions.append(function)
                        function = function.__dict__.get("__wrapped__")
    return functions


def _codes_by_location(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The codes of the functions in some code, with their names and first lines."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _codes_by_location(constant)
