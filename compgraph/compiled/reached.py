"""What the code of functions does outside of itself, as far as its instructions tell: names it reads, effects it has."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ..frames import is_internal

_STDLIB = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
# Builtins whose effect, or answer, a program would not have again; and those by which something is reached that no name tells.
_EFFECTS = {"print": "prints", "input": "asks for input", "open": "opens files", "breakpoint": "stops in the debugger"}
_HIDDEN = {"eval": "runs text", "exec": "runs text", "globals": "reads globals()", "__import__": "imports by name"}
# By these, floating-point errors or warnings raise, which those of programs do not, unless all they are told is harmless.
_SETTINGS = frozenset({"errstate", "seterr", "filterwarnings", "simplefilter"})
_HARMFUL = {"raise", "call", "error"}
_HARMLESS = {"ignore", "warn", "print", "log", "default", "always", "module", "once"}
# Functions of NumPy that give plain answers about values, which no guard asks again.
_UNASKED = frozenset({"ix_", "ravel_multi_index", "array2string", "array_repr", "array_str", "min_scalar_type"})
# Methods of arrays and functions that write elsewhere, or reach objects without a name in the code.
_OUTSIDE = frozenset(
    {"tofile", "dump", "ctypes", "setflags", "writeable", "f_globals", "f_locals", "gi_frame", "cr_frame", "tb_frame"}
)
# Special names that code may read: those of numbers, containers, arrays and classes.
_SPECIAL = frozenset(
    {
        *(name for kind in (int, complex, str, list, dict, set, frozenset) for name in dir(kind)),
        *("__call__", "__dict__", "__enter__", "__exit__", "__get__", "__set__", "__delete__", "__next__", "__name__"),
        *("__qualname__", "__getattr__", "__post_init__", "__set_name__", "__missing__"),
        *("__matmul__", "__rmatmul__", "__imatmul__"),
        *("__array__", "__array_priority__", "__array_ufunc__", "__array_function__", "__array_finalize__", "__array_wrap__"),
    }
) - {"__reduce__", "__reduce_ex__", "__subclasshook__", "__sizeof__", "__dir__", "__getstate__", "__doc__"}  # fmt: skip
# Families of SciPy whose functions, on nodes, choose by plain values which steps they record, and are not asked again.
_CHOOSING = frozenset({"interpolate", "sparse", "integrate", "optimize", "ndimage", "spatial", "stats"})
# Modules whose functions give another answer each time, or are called for their effects.
_IMPURE = {
    **dict.fromkeys(("time", "datetime"), "reads the clock"),
    **dict.fromkeys(("logging", "warnings"), "writes a log, or warns"),
    **dict.fromkeys(("uuid", "secrets"), "asks for unpredictable numbers"),
    **dict.fromkeys(("socket", "subprocess"), "talks to other programs"),
    "random": "draws random numbers",
}
_BY_NAME = frozenset(
    {"getattr", "setattr", "delattr", "hasattr", "vars", "__dict__", "__getattribute__", "attrgetter", "methodcaller"}
)
_SETTERS = frozenset({"__setattr__", "__delattr__"})
_TEXTS = frozenset({"str", "repr", "format", "ascii", "format_map", "__str__", "__repr__", "__format__"})


class Chain(NamedTuple):
    """A chain of attributes of a name in code: ``np.linalg.norm``.

    Attributes
    ----------
    kind : str
        The kind of the name: ``"global"``, ``"free"`` (a variable of an enclosing function), or ``"import"``.
    name : str
        The name; for an import, that of the module.
    level : int
        The number of dots of a relative import; else 0.
    attributes : tuple of str
        The names after it.
    """

    kind: str
    name: str
    level: int
    attributes: tuple[str, ...]


class Code(NamedTuple):
    """What stands in the code of a function, and of those that are defined in it.

    Attributes
    ----------
    chains : frozenset of Chain
        The globals, builtins, variables of enclosing functions and modules that it reads, with the attributes read of them.
    attributes : frozenset of str
        Names of attributes that it reads or sets of other values.
    stored : frozenset of str
        Names of attributes that it sets or deletes, of any value.
    texts : frozenset of str
        The texts in it that may be names of attributes.
    is_by_name : bool
        Whether it may read attributes by names that it computes.
    asks : bool
        Whether it may detect a missing attribute.
    makes : bool
        Whether it may create instances of the class of an object.
    writes_texts : bool
        Whether it may convert an object to text.
    effects : tuple of str
        Effects that a program does not repeat, and their lines.
    """

    chains: frozenset[Chain]
    attributes: frozenset[str]
    stored: frozenset[str]
    texts: frozenset[str]
    is_by_name: bool
    asks: bool
    makes: bool
    writes_texts: bool
    effects: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def code_of(code: CodeType) -> Code:
    """What stands in a code object."""
    read = _Reader(frozenset(code.co_freevars))
    for inner in codes(code):
        read.code(inner)
    names = read.attributes.union(*[(chain.name, *chain.attributes) for chain in read.chains])
    is_by_name = bool(names & _BY_NAME) or (bool(names & _SETTERS) and code.co_filename != "<string>") or read.matches
    texts = read.texts if is_by_name or names & _SETTERS else set[str]()
    return Code(
        chains=frozenset(read.chains),
        attributes=frozenset(read.attributes),
        stored=frozenset(read.stored),
        texts=frozenset(texts),
        is_by_name=is_by_name,
        asks=read.catches or is_by_name,
        makes=bool(names & {"type", "__class__", "__new__"}),
        writes_texts=read.formats or bool(names & _TEXTS),
        effects=tuple(read.effects),
    )


_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "LOAD_ZERO_SUPER_ATTR"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_FORMATS = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "BUILD_STRING"})


class _Reader:
    """The instructions of code objects, read one after the other."""

    def __init__(self, outer: frozenset[str]) -> None:
        self._outer = outer
        self.chains, self.effects = set[Chain](), list[str]()
        self.attributes, self.stored, self.texts = set[str](), set[str](), set[str]()
        self.catches = self.matches = self.formats = False

    def code(self, code: CodeType) -> None:
        """Read a code object."""
        steps = list(dis.get_instructions(code))
        imports, others = _imports(steps)
        self.chains |= others
        raised = entered = 0
        chain: Chain | None = None  # the top of the stack
        line = code.co_firstlineno
        for step in steps:
            line = _line(step, line)
            place = f'File "{code.co_filename}", line {line}, in {code.co_name}'
            name, opname = step.argval, step.opname
            if opname in ("STORE_ATTR", "DELETE_ATTR"):
                self.stored.add(name)
            if opname in _ATTRIBUTES and chain is not None and not step.is_jump_target:
                chain = chain._replace(attributes=(*chain.attributes, name))
                self._effects(name, code, place)
                continue
            if chain is not None:
                self.chains.add(chain)
            chain = self._begun(step, imports)
            if opname in _ATTRIBUTES:
                self.attributes.add(name)
                self._effects(name, code, place)
            elif opname in _GLOBALS and name != "__annotations__":
                if name in _EFFECTS:
                    self.effects.append(f"it {_EFFECTS[name]} ({place})")
                elif name in _HIDDEN:
                    self.effects.append(f"it {_HIDDEN[name]}, so the state that it reaches is unknown ({place})")
                self._effects(name, code, place)
            elif opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.effects.append(f"it assigns the global {name!r} ({place})")
            elif opname in ("STORE_DEREF", "DELETE_DEREF") and name in self._outer:
                self.effects.append(f"it assigns the nonlocal {name!r} ({place})")
            elif opname in _FORMATS or (
                opname == "BINARY_OP" and step.argrepr.startswith("%") and any(map(_is_format, code.co_consts))
            ):
                self.formats = True
            elif opname == "MATCH_CLASS":
                self.matches = True
            elif opname == "CHECK_EXC_MATCH":
                self.catches = True
            elif opname == "PUSH_EXC_INFO":
                raised += 1
            elif opname == "WITH_EXCEPT_START":
                entered += 1
        if chain is not None:
            self.chains.add(chain)
        self.catches = self.catches or raised > entered
        for constant in code.co_consts:
            for text in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
                if isinstance(text, str) and text.isidentifier():
                    self.texts.add(text)

    def _begun(self, step: Any, imports: dict[str, Chain]) -> Chain | None:
        """The chain that an instruction begins, which puts one value on the stack; None if it begins none."""
        name, opname = step.argval, step.opname
        if opname in _GLOBALS and not name.startswith("@"):  # as of the asserts that pytest has rewritten
            return Chain("global", name, 0, ())
        if opname in _FREE and name in self._outer:
            return Chain("free", name, 0, ())
        if opname.startswith("LOAD_FAST"):
            return imports.get(name[-1] if isinstance(name, tuple) else name)
        if opname.startswith("STORE_FAST_LOAD_FAST"):
            return imports.get(name[-1])
        return None

    def _effects(self, name: str, code: CodeType, place: str) -> None:
        """Note the effects that reading a name implies."""
        if name in _UNASKED:
            self.effects.append(f"it calls np.{name} on values, which is not repeated in a program ({place})")
        elif name in _SETTINGS and _may_raise(code):
            self.effects.append(f"it makes floating-point errors or warnings raise, by {name} ({place})")
        elif name == "seterr" or (name in ("simplefilter", "filterwarnings") and "catch_warnings" not in code.co_names):
            self.effects.append(f"it changes how errors or warnings are treated, by {name} ({place})")
        elif name == "no_graph":
            self.effects.append(f"it computes within no_graph, which is not recorded ({place})")
        elif name in _OUTSIDE:
            self.effects.append(f"it reads .{name}, through which unknown state is reached or written ({place})")
        elif name.startswith("__") and name.endswith("__") and name not in _SPECIAL and name not in _HIDDEN:
            self.effects.append(f"it reads {name}, through which unknown state is reached ({place})")


def _is_format(constant: Any) -> bool:
    """Whether a constant is a format string."""
    return isinstance(constant, str) and "%" in constant


def _imports(steps: list[Any]) -> tuple[dict[str, Chain], set[Chain]]:
    """The imports behind local names that nothing else assigns, and the imports that are assigned otherwise."""
    stored = [name for step in steps for name in _stored(step)]
    found, others = dict[str, Chain](), set[Chain]()
    whole = chain = None
    takes_names = False
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            takes_names = bool(steps[place - 1].argval)  # from a.b import c; else import a.b.c, perhaps with another name
            name = step.argval if takes_names else step.argval.partition(".")[0]
            whole = chain = Chain("import", name, steps[place - 2].argval or 0, ())
        elif chain is None or whole is None:
            continue
        elif step.opname == "IMPORT_FROM":
            before = whole if takes_names else chain
            chain = before._replace(attributes=(*before.attributes, step.argval))
        elif step.opname.startswith("STORE_"):
            names = _stored(step)
            if names and stored.count(names[0]) == 1:
                found[names[0]] = chain
            else:
                others.add(chain)
            chain = whole if takes_names else None
        elif step.opname not in ("SWAP", "POP_TOP", "COPY", "ROT_TWO") or (takes_names and step.opname == "POP_TOP"):
            chain = None
    return found, others


def _stored(step: Any) -> tuple[str, ...]:
    """The local names that an instruction assigns."""
    if not step.opname.startswith("STORE_FAST"):
        return ()
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return names[:1] if "LOAD" in step.opname else names


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
    """The effect of a module or its members that a program would not repeat, in words; None if there is no known one."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        home = value.__name__
    else:
        home = (value if issubclass(kind, (FunctionType, BuiltinFunctionType, type)) else kind).__module__
    top, _, rest = home.partition(".") if isinstance(home, str) else ("", "", "")
    family = rest.partition(".")[0]
    if top == "scipy" and family in _CHOOSING:
        return f"calls scipy.{family}, whose functions choose their steps by values that are not asked again"
    if top == "numpy" and family == "random":
        return "draws random numbers"
    return _IMPURE.get(top)


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to NumPy or SciPy, or to the two packages."""
    if filename.startswith(_PACKAGES):
        return is_internal(filename) or f"{os.sep}scipy{os.sep}" in filename
    return is_internal(filename) or filename.startswith((*_STDLIB, "<frozen")) or filename in sys.builtin_module_names
