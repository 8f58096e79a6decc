"""Builder of LLVM IR: types, values, and the instructions of functions, as text.

A `Type` has lanes, and an operation on values of eight lanes is a vector operation. Code for `n` lanes also works for one lane.
Each method of `IRBuilder` appends an instruction and returns its result.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value: a scalar type, or a vector with several lanes.

    Attributes
    ----------
    scalar : str
        LLVM's name of the scalar type: ``"double"``, ``"float"``, ``"i64"``, ``"i1"``, ``"ptr"``.
    lanes : int
        The number of lanes; 1 for a scalar.
    """

    scalar: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @property
    def mangled(self) -> str:
        """The type as it appears in names of LLVM intrinsics: ``v8f64``."""
        name = {"double": "f64", "float": "f32", "ptr": "p0"}.get(self.scalar, self.scalar)
        return name if self.lanes == 1 else f"v{self.lanes}{name}"

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point type."""
        return self.scalar in ("double", "float")

    @property
    def itemsize(self) -> int:
        """The bytes of one lane of a floating-point type."""
        return {"double": 8, "float": 4}[self.scalar]

    def with_lanes(self, lanes: int) -> Type:
        """Return this type with a different number of lanes."""
        return Type(self.scalar, lanes)


DOUBLE, FLOAT, LONG, INT, BIT, BYTE, POINTER = map(Type, ("double", "float", "i64", "i32", "i1", "i8", "ptr"))


class Value(NamedTuple):
    """The result of an instruction, or a constant: its text in IR, and its type."""

    text: str
    type: Type

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


__all__ = [
    "BAILOUT", "BIT", "BYTE", "DOUBLE", "FLAGS", "FLOAT", "INT", "LONG", "POINTER", "UNDERFLOW", "IRBuilder", "Loop", "Module",
    "Type", "Value",
]  # fmt: skip

# Processor flags: invalid, division by zero and overflow together, and underflow (FE_INVALID ... of C's fenv.h).
FLAGS, UNDERFLOW = (7, 8) if platform.machine().lower() in ("aarch64", "arm64") else (13, 16)
BAILOUT = 1 << 16  # the bit of a returned status that makes the program run as NumPy
MAX_INLINED_CALLS = 2  # calls of a mathematical function up to which it is inlined; a call takes a tenth of the time of exp


class Module:
    """Functions that are compiled together.

    Attributes
    ----------
    text : str
        The IR of the module.
    """

    def __init__(self) -> None:
        self._declared: dict[str, str] = {}
        self._builders: dict[str, IRBuilder] = {}
        self._calls: dict[str, int] = {}

    @property
    def text(self) -> str:
        """The IR of the module."""
        return "\n".join([*self._declared.values(), *(code.text for code in self._builders.values())]) + "\n"

    def declare(self, name: str, result: Type | None, operands: Sequence[Type]) -> str:
        """Declare an external function, an LLVM intrinsic or a C function, and return its name."""
        if name not in self._declared:
            self._declared[name] = f"declare {result or 'void'} @{name}({', '.join(map(str, operands))})"
        return name

    def constant(self, value: Value) -> Value:
        """Return the address of a constant, for functions with pointer arguments, such as Fortran's."""
        name = f"@.{value.type.scalar}.{value.text.removeprefix('-').replace('-', 'm')}"
        self._declared[name] = f"{name} = internal constant {value}"
        return Value(name, POINTER)

    def function(self, name: str, result: Type | None, operands: Sequence[Type], attributes: str = "") -> IRBuilder:
        """Start a new function. Names that begin with ``"."`` are internal to the module."""
        code = self._builders[name] = IRBuilder(self, name, result, operands, attributes)
        return code

    def define_once(self, name: str, make: Callable[[], Any]) -> str:
        """Return the name of a function, which `make` defines on first use."""
        if name not in self._builders:
            make()
        return name

    def define_shared(self, name: str, make: Callable[[], Any]) -> str:
        """As `define_once`, for a function that is inlined unless it has many calls, because each copy is compiled."""
        self._calls[name] = self._calls.get(name, 0) + 1
        self.define_once(name, make)
        self._builders[name].attributes = "alwaysinline" if self._calls[name] <= MAX_INLINED_CALLS else "noinline"
        return name


class IRBuilder:
    """Builds a function.

    Parameters
    ----------
    module : Module
        The module of the function.
    name : str
        Its name.
    result : Type or None
        Its return type.
    operands : sequence of Type
        Its parameter types. Pointers are ``noalias``.
    attributes : str
        LLVM attributes, such as ``"alwaysinline"``.
    """

    def __init__(self, module: Module, name: str, result: Type | None, operands: Sequence[Type], attributes: str = "") -> None:
        self.module, self.name, self.result = module, name, result
        self.operands = [Value(f"%a{k}", t) for k, t in enumerate(operands)]
        self.attributes = attributes
        self._lines, self._variables = list[str](), list[str]()
        self.bailout: Value | None = None  # the variable that `bail_out_if` sets
        self._count, self._block = 0, "entry"

    @property
    def text(self) -> str:
        """The IR of the function."""
        parameters = ", ".join(f"{v.type} noalias {v.text}" if v.type == POINTER else str(v) for v in self.operands)
        linkage = "internal " if self.name.startswith(".") else ""
        head = f"define {linkage}{self.result or 'void'} @{self.name}({parameters}) {self.attributes} {{\nentry:"
        return "\n".join([head, *self._variables, *self._lines, "}"])

    # ------------------------------------------------------------------------------------------ bailing out

    def bail_out_if(self, bits: Value) -> None:
        """Make the program fall back to NumPy if a bit is set in some lane."""
        if self.bailout is None:
            self.bailout = self.variable(INT, 0)
        flag = self.select(self.any(bits), self.number(BAILOUT, INT), self.number(0, INT))
        self.store(self.binary("or", self.load(self.bailout, INT, 4), flag), self.bailout, 4)

    def status(self, exceptions: Value) -> Value:
        """Return the status of the function: floating-point exceptions, and the bit `BAILOUT`."""
        return exceptions if self.bailout is None else self.binary("or", exceptions, self.load(self.bailout, INT, 4))

    def exceptions(self) -> Value:
        """Return the floating-point exceptions since they were cleared."""
        self.module.declare("fetestexcept", INT, [INT])
        return self.call("fetestexcept", INT, self.number(FLAGS | UNDERFLOW, INT))

    def clear_exceptions(self, exclude: Value | None = None) -> None:
        """Clear the floating-point exceptions, except those in `exclude`."""
        self.module.declare("feclearexcept", INT, [INT])
        exceptions = self.number(FLAGS | UNDERFLOW, INT)
        self.call("feclearexcept", INT, exceptions if exclude is None else self.binary("xor", exceptions, exclude))

    # ------------------------------------------------------------------------------------------ one instruction

    def emit(self, instruction: str, type: Type) -> Value:
        """Append an instruction with a result of a type."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"{name} = {instruction}")
        return Value(name, type)

    def number(self, x: float, type: Type) -> Value:
        """Return a constant, in each lane of a type."""
        if type.is_float:
            rounded = np.float32(x) if type.scalar == "float" else x  # LLVM writes both types as doubles
            text = f"0x{struct.unpack('>Q', struct.pack('>d', float(rounded)))[0]:016X}"
        else:
            text = str(int(x))
        return Value(text if type.lanes == 1 else f"splat ({type.scalar} {text})", type)

    def double_like(self, x: float, like: Value) -> Value:
        """Return a double constant with as many lanes as another value."""
        return self.number(x, DOUBLE.with_lanes(like.type.lanes))

    def long_like(self, x: int, like: Value) -> Value:
        """Return a 64-bit integer constant with as many lanes as another value."""
        return self.number(x, LONG.with_lanes(like.type.lanes))

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """Append a binary operation: ``fadd``, ``fsub``, ``fmul``, ``fdiv``, ``add``, ``and``, ``shl`` ..."""
        return self.emit(f"{name} {a}, {b.text}", a.type)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """Append a comparison: ``oeq``, ``une``, ``olt``, ``uno`` ... of floats; ``eq``, ``slt``, ``ult`` ... of integers."""
        operation = "fcmp" if a.type.is_float else "icmp"
        return self.emit(f"{operation} {name} {a}, {b.text}", BIT.with_lanes(a.type.lanes))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Select `a` in each lane where a condition holds, else `b`."""
        return self.emit(f"select {condition}, {a}, {b}", a.type)

    def neg(self, a: Value) -> Value:
        """Append ``-a`` of a float."""
        return self.emit(f"fneg {a}", a.type)

    def cast(self, name: str, a: Value, type: Type) -> Value:
        """Append a conversion: ``fptosi``, ``sitofp``, ``fpext``, ``fptrunc``, ``zext``, ``sext``, ``trunc``, ``bitcast``."""
        type = type.with_lanes(a.type.lanes)
        return self.emit(f"{name} {a} to {type}", type)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call an LLVM intrinsic of values of one type: ``fma``, ``sqrt``, ``fabs``, ``rint``, ``copysign``, ``smin`` ..."""
        mangled = f"llvm.{name}.{operands[0].type.mangled}"
        self.module.declare(mangled, operands[0].type, [v.type for v in operands])
        return self.call(mangled, operands[0].type, *operands)

    def call_void(self, name: str, *operands: Value) -> None:
        """Call a function without a result."""
        self._lines.append(f"call void @{name}({', '.join(map(str, operands))})")

    def call(self, name: str, result: Type, *operands: Value) -> Value:
        """Call a function and return its result."""
        return self.emit(f"call {result} @{name}({', '.join(map(str, operands))})", result)

    def call_pointer(self, function: Value, result: Type, *operands: Value) -> Value:
        """Call the function at an address and return its result."""
        return self.emit(f"call {result} {function.text}({', '.join(map(str, operands))})", result)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Append ``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    # ------------------------------------------------------------------------------------------ lanes

    def splat(self, a: Value, lanes: int) -> Value:
        """Broadcast a scalar to several lanes."""
        if lanes == 1:
            return a
        type = a.type.with_lanes(lanes)
        first = self.emit(f"insertelement {type} poison, {a}, i32 0", type)
        return self.emit(f"shufflevector {first}, {type} poison, <{lanes} x i32> zeroinitializer", type)

    def lane(self, a: Value, k: Value | int) -> Value:
        """Extract the scalar of one lane."""
        index = f"i32 {k}" if isinstance(k, int) else str(k)
        return a if a.type.lanes == 1 else self.emit(f"extractelement {a}, {index}", a.type.with_lanes(1))

    def insert(self, a: Value, number: Value, k: Value | int) -> Value:
        """Replace the scalar of one lane of `a`."""
        index = f"i32 {k}" if isinstance(k, int) else str(k)
        return number if a.type.lanes == 1 else self.emit(f"insertelement {a}, {number}, {index}", a.type)

    def select_lanes(self, a: Value, lanes: Sequence[int]) -> Value:
        """Return a vector of the lanes of `a` at some positions."""
        type = a.type.with_lanes(len(lanes))
        mask = ", ".join(f"i32 {k}" for k in lanes)
        return self.emit(f"shufflevector {a}, {a.type} poison, <{len(lanes)} x i32> <{mask}>", type)

    def all(self, bits: Value) -> Value:
        """Return whether a condition holds in every lane."""
        return bits if bits.type.lanes == 1 else self._reduce_lanes("and", bits)

    def any(self, bits: Value) -> Value:
        """Return whether a condition holds in some lane."""
        return bits if bits.type.lanes == 1 else self._reduce_lanes("or", bits)

    def _reduce_lanes(self, name: str, a: Value) -> Value:
        mangled, scalar = f"llvm.vector.reduce.{name}.{a.type.mangled}", a.type.with_lanes(1)
        self.module.declare(mangled, scalar, [a.type])
        return self.call(mangled, scalar, a)

    # ------------------------------------------------------------------------------------------ memory

    def element_address(self, base: Value, index: Value | int, type: Type) -> Value:
        """Return the address of an element of an array of a type that begins at `base`."""
        operand = f"i64 {index}" if isinstance(index, int) else str(index)
        return base if operand == "i64 0" else self.emit(f"getelementptr {type.scalar}, {base}, {operand}", POINTER)

    def byte_address(self, base: Value, offset: Value | int) -> Value:
        """Return the address some bytes after `base`."""
        return self.element_address(base, offset, BYTE)

    def array_variable(self, type: Type, count: int) -> Value:
        """Return the address of a local array."""
        name = f"%m{len(self._variables)}"
        self._variables.append(f"{name} = alloca [{count} x {type}], align 8")
        return Value(name, POINTER)

    def variable(self, type: Type, start: int | None = None) -> Value:
        """Return the address of a local variable, which LLVM promotes to a register if it can."""
        name = f"%m{len(self._variables)}"
        self._variables.append(f"{name} = alloca {type}, align 8")
        if start is not None:
            self._variables.append(f"store {type} {start}, ptr {name}")
        return Value(name, POINTER)

    def load(self, address: Value, type: Type, align: int) -> Value:
        """Load a value from an address aligned to `align` bytes."""
        return self.emit(f"load {type}, {address}, align {align}", type)

    def store(self, value: Value, address: Value, align: int) -> None:
        """Store a value at an address."""
        self._lines.append(f"store {value}, {address}, align {align}")

    # ------------------------------------------------------------------------------------------ control flow

    def label(self) -> str:
        """Return a new block name."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, block: str) -> None:
        """Begin a block."""
        self._lines.append(f"{block}:")
        self._block = block

    def jump(self, block: str) -> None:
        """End a block with an unconditional branch."""
        self._lines.append(f"br label %{block}")

    def branch(self, condition: Value, then: str, other: str) -> None:
        """End a block with a conditional branch."""
        self._lines.append(f"br {condition}, label %{then}, label %{other}")

    @contextmanager
    def loop(self, start: Value | int, stop: Value | int, step: int = 1, carried: Sequence[Value] = ()) -> Iterator[Loop]:
        """Build a loop that runs at least once; its body is built within the ``with`` statement.

        Parameters
        ----------
        start, stop, step : Value or int
            The range of the loop's `index`.
        carried : sequence of Value
            Initial values of loop-carried variables. `Loop.current` has their values at the beginning of the body; the body
            sets `Loop.next`. After the loop, `Loop.next` has their final values.
        """
        first, bound = (self.number(x, LONG) if isinstance(x, int) else x for x in (start, stop))
        preheader, header = self._block, self.label()
        self.jump(header)
        self.begin(header)
        loop = Loop(self.emit("", LONG), [self.emit("", value.type) for value in carried])
        first_phi = len(self._lines) - 1 - len(carried)  # completed below, when the values of the next iteration exist
        yield loop
        next_index = self.binary("add", loop.index, self.number(step, LONG))
        latch, exit_block = self._block, self.label()
        phis = [(loop.index, first, next_index), *zip(loop.current, carried, loop.next, strict=True)]
        for k, (phi, initial, following) in enumerate(phis):
            incoming = f"[ {initial.text}, %{preheader} ], [ {following.text}, %{latch} ]"
            self._lines[first_phi + k] = f"{phi.text} = phi {phi.type} {incoming}"
        self.branch(self.compare("slt", next_index, bound), header, exit_block)
        self.begin(exit_block)

    def address_loop(self, first: Value, end: Value, advance: Callable[[Value], Value]) -> None:
        """Build a loop over addresses from `first` until `end`; `advance` emits the body and returns the next address."""
        preheader, header, exit_block = self._block, self.label(), self.label()
        self.jump(header)
        self.begin(header)
        position = len(self._lines)
        current = self.emit("", first.type)
        following = advance(current)
        incoming = f"[ {first.text}, %{preheader} ], [ {following.text}, %{self._block} ]"
        self._lines[position] = f"{current.text} = phi {first.type} {incoming}"
        self.branch(self.compare("ult", following, end), header, exit_block)
        self.begin(exit_block)

    @contextmanager
    def branch_if(self, condition: Value, values: Sequence[Value]) -> Iterator[list[Value]]:
        """Build a block that runs only if a bit is set.

        It yields a list of `values`, which the body may replace. After the block, the list has the merged values: the
        replacements if the body ran, otherwise `values`.
        """
        predecessor, then_block, merge_block = self._block, self.label(), self.label()
        self.branch(condition, then_block, merge_block)
        self.begin(then_block)
        replacements = list(values)
        yield replacements
        then_end = self._block
        self.jump(merge_block)
        self.begin(merge_block)
        for k, (value, replacement) in enumerate(zip(values, replacements, strict=True)):
            incoming = f"[ {value.text}, %{predecessor} ], [ {replacement.text}, %{then_end} ]"
            replacements[k] = self.emit(f"phi {value.type} {incoming}", value.type)

    @contextmanager
    def branch_if_unlikely(self, condition: Value, value: Value) -> Iterator[list[Value]]:
        """As `branch_if` of one value, for rare cases."""
        with self.branch_if(condition, [value]) as replacements:
            branch = len(self._lines) - 2
            self._lines[branch] += ', !prof !{!"branch_weights", i32 1, i32 100000}'
            yield replacements

    def ret(self, value: Value | None = None) -> None:
        """Return from the function."""
        self._lines.append("ret void" if value is None else f"ret {value}")


@dataclass
class Loop:
    """A loop under construction; see `IRBuilder.loop`."""

    index: Value
    current: list[Value]

    def __post_init__(self) -> None:
        self.next = list(self.current)
