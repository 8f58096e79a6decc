"""What the code of functions does outside of itself, as far as its instructions tell: names it reads, effects it has."""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from ..graph.interpreter import is_internal

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# Builtins whose effect, or answer, a program would not have again; and those by which something is reached that no name tells.
_EFFECTS = {"print": "prints", "input": "asks for input", "open": "opens files", "breakpoint": "stops in the debugger"}
_HIDDEN = {"eval": "runs text", "exec": "runs text", "globals": "reads globals()", "__import__": "imports by name"}
# By these, floating-point errors or warnings raise, which those of programs do not, unless all they are told is harmless.
_SETTINGS = frozenset({"errstate", "seterr", "filterwarnings", "simplefilter"})
_HARMFUL = {"raise", "call", "error"}
_HARMLESS = {"ignore", "warn", "print", "log", "default", "always", "module", "once"}
# Functions of NumPy that give plain answers about values, which no guard asks again.
_UNASKED = frozenset({"ix_", "ravel_multi_index", "array2string", "array_repr", "array_str", "min_scalar_type"})
# Families of SciPy whose functions, on nodes, choose by plain values which steps they record, and are not asked again.
_CHOOSING = frozenset({"interpolate", "sparse", "integrate", "optimize", "ndimage", "spatial", "stats"})
# Modules whose functions give another answer each time, or are called for their effects.
_IMPURE = {
    **dict.fromkeys(("time", "datetime"), "asks for the time"),
    **dict.fromkeys(("logging",), "writes a log"),
    **dict.fromkeys(("uuid", "secrets"), "asks for unpredictable numbers"),
    **dict.fromkeys(("socket", "subprocess"), "talks to other programs"),
}
_ATTRIBUTES_BY_NAME = frozenset({"getattr", "setattr", "vars", "__dict__", "__getattribute__", "attrgetter"})


class Code(NamedTuple):
    """What stands in the code of a function, and of those that are defined in it.

    Attributes
    ----------
    named : frozenset of str
        Names of globals and builtins that it reads.
    attributes : frozenset of str
        Names of attributes that it reads or sets.
    is_by_name : bool
        Whether it may read attributes by names that it computes.
    effects : tuple of str
        What it does that a program would not do again, and where.
    """

    named: frozenset[str]
    attributes: frozenset[str]
    is_by_name: bool
    effects: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def code_of(code: CodeType) -> Code:
    """What stands in a code object."""
    named, attributes, effects = set[str](), set[str](), []
    outer = frozenset(code.co_freevars)
    for inner in codes(code):
        line = inner.co_firstlineno
        for step in dis.get_instructions(inner):
            line = _line(step, line)
            place = f'File "{inner.co_filename}", line {line}, in {inner.co_name}'
            name = step.argval
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                named.add(name)
            elif step.opname in _ATTRIBUTES:
                attributes.add(name)
            elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                effects.append(f"it assigns the global {name!r} ({place})")
            elif step.opname in ("STORE_DEREF", "DELETE_DEREF") and name in outer:
                effects.append(f"it assigns the nonlocal {name!r} ({place})")
            elif step.opname == "IMPORT_NAME":
                attributes.add(name)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in _EFFECTS:
                effects.append(f"it {_EFFECTS[name]} ({place})")
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in _HIDDEN:
                effects.append(f"it {_HIDDEN[name]}, so that what it reaches is not known ({place})")
            elif name in _UNASKED and step.opname in (*_ATTRIBUTES, "LOAD_GLOBAL"):
                effects.append(f"it asks np.{name} about values, which would not be asked again ({place})")
            elif name in _SETTINGS and step.opname in (*_ATTRIBUTES, "LOAD_GLOBAL") and _may_raise(inner):
                effects.append(f"it has floating-point errors or warnings raise, by {name} ({place})")
            elif name == "no_graph" and step.opname in (*_ATTRIBUTES, "LOAD_GLOBAL"):
                effects.append(f"it computes within no_graph, unseen ({place})")
    is_by_name = bool((named | attributes) & _ATTRIBUTES_BY_NAME)
    return Code(frozenset(named), frozenset(attributes), is_by_name, tuple(effects))


_ATTRIBUTES = frozenset(
    {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR", "LOAD_ZERO_SUPER_ATTR"}
)


def _may_raise(code: CodeType) -> bool:
    """Whether the words in a code object may have floating-point errors or warnings raise."""
    words = {constant for constant in code.co_consts if isinstance(constant, str)}
    return bool(words & _HARMFUL) or not words & _HARMLESS


def _line(step: Any, line: int) -> int:
    """The line of an instruction; where it has none, that of the one before."""
    positions = getattr(step, "positions", None)
    return line if positions is None or positions.lineno is None else int(positions.lineno)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def impure(value: Any) -> str | None:
    """What a module, or a function of one, does that a program would not do again; None if nothing is known of it."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    top, _, rest = home.partition(".") if isinstance(home, str) else ("", "", "")
    family = rest.partition(".")[0]
    if top == "scipy" and family in _CHOOSING:
        return f"calls scipy.{family}, whose functions choose their steps by values that are not asked again"
    return _IMPURE.get(top)


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to the two packages here."""
    return is_internal(filename) or filename.startswith((*_LIBRARIES, "<frozen")) or filename in sys.builtin_module_names


@functools.cache
def is_users(module: Any) -> bool:
    """Whether a module, by its name, is a user's."""
    if not isinstance(module, str) or module.partition(".")[0] in ("builtins", "numpy", "scipy", "compgraph", "autodiff"):
        return False
    if module.partition(".")[0] in sys.stdlib_module_names:
        return module == "__main__"
    found = sys.modules.get(module)
    return found is not None and not is_library(getattr(found, "__file__", None) or "")
