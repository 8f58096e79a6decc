"""Code for the processor, as it is written here: types, values, arithmetic, loops and calls, that become the text of LLVM.

Numbers are handled several at a time: a `Type` has lanes, and an operation on values of eight lanes is eight operations. Code
that is written for `n` lanes is the same for one. Every method of `Code` writes one instruction, and gives what it computes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .values import BIT, BYTE, DOUBLE, FLOAT, INT, LONG, POINTER, Type, Value

__all__ = ["BIT", "BYTE", "DOUBLE", "FLOAT", "INT", "LONG", "POINTER", "Code", "Loop", "Module", "Type", "Value"]

FEW = 2  # calls of a function of mathematics that may be replaced by its text; a call takes a tenth of the time of exp


class Module:
    """Functions that are compiled together.

    Attributes
    ----------
    text : str
        All of them, in LLVM's language.
    """

    def __init__(self) -> None:
        self._declared: dict[str, str] = {}
        self._made: dict[str, Code] = {}
        self._calls: dict[str, int] = {}

    @property
    def text(self) -> str:
        """All functions, in LLVM's language."""
        return "\n".join([*self._declared.values(), *(code.text for code in self._made.values())]) + "\n"

    def declare(self, name: str, result: Type | None, operands: Sequence[Type]) -> str:
        """The name of a function that stands elsewhere: an intrinsic of LLVM's, or one of C's."""
        if name not in self._declared:
            self._declared[name] = f"declare {result or 'void'} @{name}({', '.join(map(str, operands))})"
        return name

    def constant(self, value: Value) -> Value:
        """The address of a constant, for functions that are given addresses, as Fortran's are."""
        name = f"@.{value.type.of}.{value.text.removeprefix('-').replace('-', 'm')}"
        self._declared[name] = f"{name} = internal constant {value}"
        return Value(name, POINTER)

    def function(self, name: str, result: Type | None, operands: Sequence[Type], attributes: str = "") -> Code:
        """A new function, to be written. A `name` that begins with ``"."`` is not seen from outside of the module."""
        code = self._made[name] = Code(self, name, result, operands, attributes)
        return code

    def made(self, name: str, make: Callable[[], Any]) -> str:
        """The name of a function of this module, which `make` writes if there is none of this name yet."""
        if name not in self._made:
            make()
        return name

    def shared(self, name: str, make: Callable[[], Any]) -> str:
        """As `made`, of a function that LLVM may put in place of a call: not if there are many, which would all be compiled."""
        self._calls[name] = self._calls.get(name, 0) + 1
        self.made(name, make)
        if self._calls[name] == FEW + 1:
            self._made[name].attributes += " noinline"
        return name


class Code:
    """A function being written.

    Parameters
    ----------
    module : Module
        Where it stands.
    name : str
        Its name.
    result : Type or None
        What it returns.
    operands : sequence of Type
        What it is given. Pointers are taken to point at memory that no other operand points at.
    attributes : str
        LLVM's, as ``"alwaysinline"``.
    """

    def __init__(self, module: Module, name: str, result: Type | None, operands: Sequence[Type], attributes: str = "") -> None:
        self.module, self.name, self.result = module, name, result
        self.operands = [Value(f"%a{k}", t) for k, t in enumerate(operands)]
        self.attributes = attributes
        self._lines, self._variables = list[str](), list[str]()
        self.refused: Value | None = None  # see `refusal`
        self._count, self._block = 0, "entry"

    @property
    def text(self) -> str:
        """The function, in LLVM's language."""
        given = ", ".join(f"{v.type} noalias {v.text}" if v.type == POINTER else str(v) for v in self.operands)
        hidden = "internal " if self.name.startswith(".") else ""
        head = f"define {hidden}{self.result or 'void'} @{self.name}({given}) {self.attributes} {{\nentry:"
        return "\n".join([head, *self._variables, *self._lines, "}"])

    # ------------------------------------------------------------------------------------------ one instruction

    def write(self, instruction: str, type: Type) -> Value:
        """An instruction that computes a value of a type."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"{name} = {instruction}")
        return Value(name, type)

    def number(self, x: Any, type: Type) -> Value:
        """A constant, in each lane of a type."""
        if type.is_float:
            one = np.float32(x) if type.of == "float" else x  # LLVM writes either kind as a double
            text = f"0x{struct.unpack('>Q', struct.pack('>d', float(one)))[0]:016X}"
        else:
            text = str(int(x))
        return Value(text if type.lanes == 1 else f"splat ({type.of} {text})", type)

    def double(self, x: float, like: Value) -> Value:
        """A double constant with as many lanes as another value."""
        return self.number(x, DOUBLE.with_lanes(like.type.lanes))

    def long(self, x: int, like: Value) -> Value:
        """A constant integer of 64 bits with as many lanes as another value."""
        return self.number(x, LONG.with_lanes(like.type.lanes))

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """An operation of two values of one type: ``fadd``, ``fsub``, ``fmul``, ``fdiv``, ``add``, ``and``, ``shl`` ..."""
        return self.write(f"{name} {a}, {b.text}", a.type)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """``oeq``, ``une``, ``olt``, ``uno`` ... of floating values, ``eq``, ``slt``, ``ult`` ... of integers: bits."""
        operation = "fcmp" if a.type.is_float else "icmp"
        return self.write(f"{operation} {name} {a}, {b.text}", BIT.with_lanes(a.type.lanes))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """In each lane `a` where a condition holds, else `b`."""
        return self.write(f"select {condition}, {a}, {b}", a.type)

    def negative(self, a: Value) -> Value:
        """``-a`` of a floating value."""
        return self.write(f"fneg {a}", a.type)

    def cast(self, name: str, a: Value, type: Type) -> Value:
        """A conversion: ``fptosi``, ``sitofp``, ``fpext``, ``fptrunc``, ``zext``, ``sext``, ``trunc``, ``bitcast``."""
        type = type.with_lanes(a.type.lanes)
        return self.write(f"{name} {a} to {type}", type)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """A function of LLVM's of values of one type: ``fma``, ``sqrt``, ``fabs``, ``rint``, ``copysign``, ``smin`` ..."""
        full = f"llvm.{name}.{operands[0].type.mangled}"
        self.module.declare(full, operands[0].type, [v.type for v in operands])
        return self.call(full, operands[0].type, *operands)

    def run(self, name: str, *operands: Value) -> None:
        """Call a function that gives nothing."""
        self._lines.append(f"call void @{name}({', '.join(map(str, operands))})")

    def call(self, name: str, result: Type, *operands: Value) -> Value:
        """What a function gives."""
        return self.write(f"call {result} @{name}({', '.join(map(str, operands))})", result)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    # ------------------------------------------------------------------------------------------ lanes

    def splat(self, a: Value, lanes: int) -> Value:
        """One number, in each of so many lanes."""
        if lanes == 1:
            return a
        type = a.type.with_lanes(lanes)
        first = self.write(f"insertelement {type} poison, {a}, i32 0", type)
        return self.write(f"shufflevector {first}, {type} poison, <{lanes} x i32> zeroinitializer", type)

    def lane(self, a: Value, k: Value | int) -> Value:
        """The number in one lane."""
        where = f"i32 {k}" if isinstance(k, int) else str(k)
        return a if a.type.lanes == 1 else self.write(f"extractelement {a}, {where}", a.type.with_lanes(1))

    def insert(self, a: Value, number: Value, k: Value | int) -> Value:
        """`a` with another number in one lane."""
        where = f"i32 {k}" if isinstance(k, int) else str(k)
        return number if a.type.lanes == 1 else self.write(f"insertelement {a}, {number}, {where}", a.type)

    def chosen(self, a: Value, lanes: Sequence[int]) -> Value:
        """Some lanes of a value, in an order."""
        type = a.type.with_lanes(len(lanes))
        mask = ", ".join(f"i32 {k}" for k in lanes)
        return self.write(f"shufflevector {a}, {a.type} poison, <{len(lanes)} x i32> <{mask}>", type)

    def all(self, bits: Value) -> Value:
        """Whether a condition holds in every lane."""
        return bits if bits.type.lanes == 1 else self._across("and", bits)

    def any(self, bits: Value) -> Value:
        """Whether a condition holds in some lane."""
        return bits if bits.type.lanes == 1 else self._across("or", bits)

    def _across(self, name: str, a: Value) -> Value:
        full, one = f"llvm.vector.reduce.{name}.{a.type.mangled}", a.type.with_lanes(1)
        self.module.declare(full, one, [a.type])
        return self.call(full, one, a)

    # ------------------------------------------------------------------------------------------ memory

    def at(self, base: Value, offset: Value | int, of: Type) -> Value:
        """The address of the `offset`-th number of a kind after `base`."""
        where = f"i64 {offset}" if isinstance(offset, int) else str(offset)
        return base if where == "i64 0" else self.write(f"getelementptr {of.of}, {base}, {where}", POINTER)

    def variable(self, type: Type, start: int | None = None) -> Value:
        """The address of memory for one value, which LLVM keeps in a register if it can; of an integer that it holds at first."""
        name = f"%m{len(self._variables)}"
        self._variables.append(f"{name} = alloca {type}, align 8")
        if start is not None:
            self._variables.append(f"store {type} {start}, ptr {name}")
        return Value(name, POINTER)

    def load(self, address: Value, type: Type, align: int) -> Value:
        """What stands at an address, that is a multiple of `align` bytes."""
        return self.write(f"load {type}, {address}, align {align}", type)

    def store(self, value: Value, address: Value, align: int) -> None:
        """Write a value to an address."""
        self._lines.append(f"store {value}, {address}, align {align}")

    # ------------------------------------------------------------------------------------------ order

    def label(self) -> str:
        """A new name of a block."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, block: str) -> None:
        """Go on in another block."""
        self._lines.append(f"{block}:")
        self._block = block

    def jump(self, block: str) -> None:
        """End a block."""
        self._lines.append(f"br label %{block}")

    def branch(self, condition: Value, then: str, other: str) -> None:
        """End a block: go to one of two by a bit."""
        self._lines.append(f"br {condition}, label %{then}, label %{other}")

    @contextmanager
    def loop(self, start: Value | int, stop: Value | int, step: int = 1, carried: Sequence[Value] = ()) -> Iterator[Loop]:
        """A loop that runs at least once; its body is written within the ``with`` statement.

        Parameters
        ----------
        start, stop, step : Value or int
            What the counter `index` of the loop goes through.
        carried : sequence of Value
            What goes from one run of the body to the next, as it is before the first. `Loop.now` has them at the beginning of the
            body; the body sets `Loop.then`. After the loop `Loop.then` is what the last run left.
        """
        first, last = (self.number(x, LONG) if isinstance(x, int) else x for x in (start, stop))
        before, head = self._block, self.label()
        self.jump(head)
        self.begin(head)
        made = Loop(self.write("", LONG), [self.write("", value.type) for value in carried])
        place = len(self._lines) - 1 - len(carried)
        yield made
        following = self.binary("add", made.index, self.number(step, LONG))
        end, done = self._block, self.label()
        pairs = [(made.index, first, following), *zip(made.now, carried, made.then, strict=True)]
        for k, (now, given, then) in enumerate(pairs):
            self._lines[place + k] = f"{now.text} = phi {now.type} [ {given.text}, %{before} ], [ {then.text}, %{end} ]"
        self.branch(self.compare("slt", following, last), head, done)
        self.begin(done)

    @contextmanager
    def where(self, condition: Value, values: Sequence[Value]) -> Iterator[list[Value]]:
        """A block that runs only where a bit is set.

        It yields a list of `values`; the body may put others in their places. After it the list holds `values`, or what the body
        has put there if it was run.
        """
        before, inside, after = self._block, self.label(), self.label()
        self.branch(condition, inside, after)
        self.begin(inside)
        found = list(values)
        yield found
        end = self._block
        self.jump(after)
        self.begin(after)
        for k, (first, then) in enumerate(zip(values, found, strict=True)):
            found[k] = self.write(f"phi {first.type} [ {first.text}, %{before} ], [ {then.text}, %{end} ]", first.type)

    @contextmanager
    def unlikely(self, condition: Value, value: Value) -> Iterator[list[Value]]:
        """As `where`, of one value, for what seldom happens."""
        with self.where(condition, [value]) as found:
            branch = len(self._lines) - 2
            self._lines[branch] += ', !prof !{!"branch_weights", i32 1, i32 100000}'
            yield found

    def give(self, value: Value | None = None) -> None:
        """Return from the function."""
        self._lines.append("ret void" if value is None else f"ret {value}")


@dataclass
class Loop:
    """A loop being written; see `Code.loop`."""

    index: Value
    now: list[Value]

    def __post_init__(self) -> None:
        self.then = list(self.now)
