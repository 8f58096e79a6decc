"""Bytecode analysis: the names that the code of a function reads, and its visible side effects."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from .. import ops
from ..frames import is_in_library, is_internal

_STDLIB = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
# Builtins with effects that a program does not repeat, and builtins that read state without naming it.
_EFFECTS = {"print": "prints", "input": "reads input", "open": "opens files", "breakpoint": "enters the debugger"}
_INDIRECT = {
    "eval": "evaluates a string",
    "exec": "executes a string",
    "globals": "reads globals()",
    "__import__": "imports by a computed name",
}
# Settings that may make floating-point errors or warnings raise, depending on their arguments.
_SETTINGS = frozenset({"errstate", "seterr", "filterwarnings", "simplefilter"})
_RAISING = {"raise", "call", "error"}
_NOT_RAISING = {"ignore", "warn", "print", "log", "default", "always", "module", "once"}
# NumPy functions that return plain values without a guard.
_UNGUARDED = frozenset(
    spec.function.__name__
    for spec in ops.OPERATIONS
    if spec.policy == "plain" and spec.reads == "values" and not spec.is_guarded and spec.external != "files"
)
# Attributes of arrays, functions and frames by which code reads or writes state that it does not name.
_UNKNOWN_STATE = frozenset(
    {"tofile", "dump", "ctypes", "setflags", "writeable", "f_globals", "f_locals", "gi_frame", "cr_frame", "tb_frame"}
)
# Special names that code may read: special methods of numbers, containers, arrays and classes.
_ALLOWED_SPECIAL = frozenset(
    {
        *(name for kind in (int, complex, str, list, dict, set, frozenset) for name in dir(kind)),
        *("__call__", "__dict__", "__enter__", "__exit__", "__get__", "__set__", "__delete__", "__next__", "__name__"),
        *("__qualname__", "__getattr__", "__post_init__", "__set_name__", "__missing__"),
        *("__matmul__", "__rmatmul__", "__imatmul__"),
        *("__array__", "__array_priority__", "__array_ufunc__", "__array_function__", "__array_finalize__", "__array_wrap__"),
    }
) - {"__reduce__", "__reduce_ex__", "__subclasshook__", "__sizeof__", "__dir__", "__getstate__", "__doc__"}  # fmt: skip
# SciPy families whose functions choose the recorded operations by plain values, without guards.
_VALUE_DEPENDENT = frozenset({"interpolate", "sparse", "integrate", "optimize", "ndimage", "spatial", "stats"})
# Modules whose functions return different values on each call, or are called for their effects.
_IMPURE = {
    **dict.fromkeys(("time", "datetime"), "reads the clock"),
    **dict.fromkeys(("logging", "warnings"), "logs or warns"),
    **dict.fromkeys(("uuid", "secrets"), "generates unpredictable numbers"),
    **dict.fromkeys(("socket", "subprocess"), "communicates with other programs"),
    "random": "draws random numbers",
}
_NAME_ACCESSORS = frozenset(
    {"getattr", "setattr", "delattr", "hasattr", "vars", "__dict__", "__getattribute__", "attrgetter", "methodcaller"}
)
_SETTERS = frozenset({"__setattr__", "__delattr__"})
_TEXT_FUNCTIONS = frozenset({"str", "repr", "format", "ascii", "format_map", "__str__", "__repr__", "__format__"})


class AttributeChain(NamedTuple):
    """A name in code with a chain of attributes: ``np.linalg.norm``.

    Attributes
    ----------
    kind : str
        The kind of the name: ``"global"``, ``"free"`` (a variable of an enclosing function), or ``"import"``.
    name : str
        The name; for an import, that of the module.
    level : int
        The number of dots of a relative import; else 0.
    attributes : tuple of str
        The attributes, in order.
    """

    kind: str
    name: str
    level: int
    attributes: tuple[str, ...]


class CodeSummary(NamedTuple):
    """Names that the code of a function, and of the functions defined in it, reads; and its side effects.

    Attributes
    ----------
    chains : frozenset of AttributeChain
        The globals, builtins, variables of enclosing functions and modules that it reads, with their attributes.
    attributes : frozenset of str
        Names of attributes that it reads or sets on other values.
    stored_attributes : frozenset of str
        Names of attributes that it sets or deletes, on any value.
    texts : frozenset of str
        String constants that may be attribute names.
    reads_by_name : bool
        Whether it may read attributes with computed names.
    detects_missing : bool
        Whether it may detect a missing attribute.
    instantiates : bool
        Whether it may create instances of the class of an object.
    formats_text : bool
        Whether it may convert an object to text.
    effects : tuple of str
        Side effects that a program does not repeat, with their lines.
    """

    chains: frozenset[AttributeChain]
    attributes: frozenset[str]
    stored_attributes: frozenset[str]
    texts: frozenset[str]
    reads_by_name: bool
    detects_missing: bool
    instantiates: bool
    formats_text: bool
    effects: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def analyze_code(code: CodeType) -> CodeSummary:
    """Summarize a code object."""
    reader = _BytecodeReader(frozenset(code.co_freevars))
    for inner in nested_codes(code):
        reader.read_code(inner)
    names = reader.attributes.union(*[(chain.name, *chain.attributes) for chain in reader.chains])
    is_generated = code.co_filename == "<string>"  # methods of `dataclasses` and `namedtuple` set attributes with known names
    reads_by_name = bool(names & _NAME_ACCESSORS) or reader.matches_classes or (bool(names & _SETTERS) and not is_generated)
    texts = reader.texts if reads_by_name or names & _SETTERS else set[str]()
    return CodeSummary(
        chains=frozenset(reader.chains),
        attributes=frozenset(reader.attributes),
        stored_attributes=frozenset(reader.stored_attributes),
        texts=frozenset(texts),
        reads_by_name=reads_by_name,
        detects_missing=reader.catches or reads_by_name,
        instantiates=bool(names & {"type", "__class__", "__new__"}),
        formats_text=reader.formats or bool(names & _TEXT_FUNCTIONS),
        effects=tuple(reader.effects),
    )


_ATTRIBUTE_OPNAMES = frozenset(
    {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "LOAD_ZERO_SUPER_ATTR"}
)
_GLOBAL_OPNAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE_OPNAMES = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_FORMAT_OPNAMES = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "BUILD_STRING"})


class _BytecodeReader:
    """Reads the instructions of code objects one after the other."""

    def __init__(self, outer: frozenset[str]) -> None:
        self._outer = outer
        self.chains, self.effects = set[AttributeChain](), list[str]()
        self.attributes, self.stored_attributes, self.texts = set[str](), set[str](), set[str]()
        self.catches = self.matches_classes = self.formats = False

    def read_code(self, code: CodeType) -> None:
        """Read a code object."""
        instructions = list(dis.get_instructions(code))
        imports, other_imports = _find_imports(instructions)
        self.chains |= other_imports
        handlers = with_handlers = 0
        chain: AttributeChain | None = None  # the top of the stack
        line = code.co_firstlineno
        for instruction in instructions:
            line = _line_number(instruction, line)
            location = f'File "{code.co_filename}", line {line}, in {code.co_name}'
            name, opname = instruction.argval, instruction.opname
            if opname in ("STORE_ATTR", "DELETE_ATTR"):
                self.stored_attributes.add(name)
            if opname in _ATTRIBUTE_OPNAMES and chain is not None and not instruction.is_jump_target:
                chain = chain._replace(attributes=(*chain.attributes, name))
                self._collect_effects(name, code, location)
                continue
            if chain is not None:
                self.chains.add(chain)
            chain = self._new_chain(instruction, imports)
            self._read_instruction(instruction, code, location)
            handlers += opname == "PUSH_EXC_INFO"
            with_handlers += opname == "WITH_EXCEPT_START"
        if chain is not None:
            self.chains.add(chain)
        self.catches = self.catches or handlers > with_handlers
        for constant in code.co_consts:
            for text in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
                if isinstance(text, str) and text.isidentifier():
                    self.texts.add(text)

    def _read_instruction(self, instruction: Any, code: CodeType, location: str) -> None:
        """Collect the attribute that an instruction reads, its side effects, and the features of the language that it uses."""
        name, opname = instruction.argval, instruction.opname
        if opname in _ATTRIBUTE_OPNAMES:
            self.attributes.add(name)
            self._collect_effects(name, code, location)
        elif opname in _GLOBAL_OPNAMES and name != "__annotations__":
            if name in _EFFECTS:
                self.effects.append(f"it {_EFFECTS[name]} ({location})")
            elif name in _INDIRECT:
                self.effects.append(f"it {_INDIRECT[name]}, so the state that it reads is unknown ({location})")
            self._collect_effects(name, code, location)
        elif opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            self.effects.append(f"it assigns the global {name!r} ({location})")
        elif opname in ("STORE_DEREF", "DELETE_DEREF") and name in self._outer:
            self.effects.append(f"it assigns the nonlocal {name!r} ({location})")
        elif opname in _FORMAT_OPNAMES or (
            opname == "BINARY_OP" and instruction.argrepr.startswith("%") and any(map(_is_format, code.co_consts))
        ):
            self.formats = True
        elif opname == "MATCH_CLASS":
            self.matches_classes = True
        elif opname == "CHECK_EXC_MATCH":
            self.catches = True

    def _new_chain(self, instruction: Any, imports: dict[str, AttributeChain]) -> AttributeChain | None:
        """Return the chain that starts with the value an instruction pushes, or None."""
        name, opname = instruction.argval, instruction.opname
        if opname in _GLOBAL_OPNAMES and not name.startswith("@"):  # not names in asserts rewritten by pytest
            return AttributeChain("global", name, 0, ())
        if opname in _FREE_OPNAMES and name in self._outer:
            return AttributeChain("free", name, 0, ())
        if opname.startswith("LOAD_FAST"):
            return imports.get(name[-1] if isinstance(name, tuple) else name)
        if opname.startswith("STORE_FAST_LOAD_FAST"):
            return imports.get(name[-1])
        return None

    def _collect_effects(self, name: str, code: CodeType, location: str) -> None:
        """Collect the side effects that reading a name implies."""
        if name in _UNGUARDED:
            self.effects.append(f"it calls np.{name} on values, which is not repeated in a program ({location})")
        elif name in _SETTINGS and _may_raise(code):
            self.effects.append(f"it makes floating-point errors or warnings raise, by {name} ({location})")
        elif name == "seterr" or (name in ("simplefilter", "filterwarnings") and "catch_warnings" not in code.co_names):
            self.effects.append(f"it changes how errors or warnings are treated, by {name} ({location})")
        elif name == "no_graph":
            self.effects.append(f"it computes within no_graph, which is not recorded ({location})")
        elif name in _UNKNOWN_STATE:
            self.effects.append(f"it reads .{name}, through which unknown state is read or written ({location})")
        elif name.startswith("__") and name.endswith("__") and name not in _ALLOWED_SPECIAL and name not in _INDIRECT:
            self.effects.append(f"it reads {name}, through which unknown state is read ({location})")


def _is_format(constant: object) -> bool:
    """Return whether a constant is a format string."""
    return isinstance(constant, str) and "%" in constant


def _find_imports(instructions: list[Any]) -> tuple[dict[str, AttributeChain], set[AttributeChain]]:
    """Return the imports bound to local names that nothing else assigns, and the other imports."""
    assigned = [name for instruction in instructions for name in _assigned_names(instruction)]
    local_imports, other_imports = dict[str, AttributeChain](), set[AttributeChain]()
    module = chain = None  # the imported module, and the part of it at the top of the stack
    is_from_import = False
    for position, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            is_from_import = bool(instructions[position - 1].argval)  # from a.b import c
            name = instruction.argval if is_from_import else instruction.argval.partition(".")[0]
            module = chain = AttributeChain("import", name, instructions[position - 2].argval or 0, ())
        elif chain is None or module is None:
            continue
        elif instruction.opname == "IMPORT_FROM":
            parent = module if is_from_import else chain  # import a.b as c
            chain = parent._replace(attributes=(*parent.attributes, instruction.argval))
        elif instruction.opname.startswith("STORE_"):
            names = _assigned_names(instruction)
            if names and assigned.count(names[0]) == 1:
                local_imports[names[0]] = chain
            else:
                other_imports.add(chain)
            chain = module if is_from_import else None
        elif instruction.opname not in ("SWAP", "POP_TOP", "COPY", "ROT_TWO") or (
            is_from_import and instruction.opname == "POP_TOP"
        ):
            chain = None
    return local_imports, other_imports


def _assigned_names(instruction: Any) -> tuple[str, ...]:
    """Return the local names that an instruction assigns."""
    if not instruction.opname.startswith("STORE_FAST"):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return names[:1] if "LOAD" in instruction.opname else names


def _may_raise(code: CodeType) -> bool:
    """Return whether string constants in code may make floating-point errors or warnings raise."""
    words = {constant for constant in code.co_consts if isinstance(constant, str)}
    return bool(words & _RAISING) or not words & _NOT_RAISING


def _line_number(instruction: object, line: int) -> int:
    """Return the line of an instruction, or `line`, the line of the previous one."""
    positions = getattr(instruction, "positions", None)
    return line if positions is None or positions.lineno is None else int(positions.lineno)


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and the code objects of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def impurity_of(value: Any) -> str | None:
    """Describe why a module, or a function or class of one, is impure; return None if it is not known to be."""
    cls = type(value)
    if issubclass(cls, ModuleType):
        module = value.__name__
    else:
        module = (value if issubclass(cls, (FunctionType, BuiltinFunctionType, type)) else cls).__module__
    package, _, rest = module.partition(".") if isinstance(module, str) else ("", "", "")
    family = rest.partition(".")[0]
    if package == "scipy" and family in _VALUE_DEPENDENT:
        return f"calls scipy.{family}, whose functions branch on values without guards"
    if package == "numpy" and family == "random":
        return "draws random numbers"
    return _IMPURE.get(package)


@functools.cache
def is_library_file(filename: str) -> bool:
    """Return whether a file belongs to Python, NumPy, SciPy or the two packages."""
    if filename.startswith(_PACKAGES):
        return is_internal(filename) or is_in_library(filename, "scipy")
    return is_internal(filename) or filename.startswith((*_STDLIB, "<frozen")) or filename in sys.builtin_module_names
