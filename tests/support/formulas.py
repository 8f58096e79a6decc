"""What tests share to compute formulas: expressions with arrays, and LaTeX of scalars with numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import compgraph as cg
from compgraph.printing import Reader
from compgraph.printing.expressions import Expression
from compgraph.values import Node

# ------------------------------------------------------------------------------------------- expressions


def computed(x: Expression, values: dict[str, Any]) -> Any:
    """The value of an expression, given those of its symbols."""
    if x.head == "symbol":
        return values[x.data]
    if x.head == "number":
        return np.full(x.shape, float(x.data) if isinstance(x.data, Fraction) else x.data)
    args = [computed(arg, values) for arg in x.args]
    found = _called(x, args) if x.head == "call" else HEADS[x.head](x, args)
    return found if isinstance(found, (tuple, list, slice, str, type(None), type(...))) else np.broadcast_to(found, x.shape)


def _power(x: Expression, args: list[Any]) -> Any:
    exponent = x.args[1]
    is_whole = exponent.head == "number" and isinstance(exponent.data, int)
    return (args[0] * 1.0) ** (exponent.data if is_whole else args[1])


def _product(x: Expression, args: list[Any]) -> Any:
    found = args[0]
    for arg in args[1:]:
        found = found @ arg
    return found


HEADS: dict[str, Callable[[Expression, list[Any]], Any]] = {
    "add": lambda x, args: sum(args[1:], args[0]),
    "mul": lambda x, args: math.prod(args[1:], start=args[0]),
    "pow": _power,
    "matmul": _product,
    "transpose": lambda x, args: np.swapaxes(args[0], -1, -2),
    "column": lambda x, args: args[0][:, None],
    "row": lambda x, args: args[0][None],
    "sum": lambda x, args: np.sum(args[0], axis=x.data[0], keepdims=x.data[1]),
}


def _called(x: Expression, args: list[Any]) -> Any:
    what = x.data
    if what.opname == "getitem":
        index = what.options["index"]
        parts = [_plain(part) for part in index] if isinstance(index, tuple) else _plain(index)
        return args[0][tuple(parts) if isinstance(index, tuple) else parts]
    if what.opname == "option":
        return what.options["value"]
    if what.opname == "component":
        return args[0][what.said[0]]
    if what.opname == "identity":
        return np.eye(x.shape[0])
    if what.opname == "unit":
        return np.eye(x.shape[0])[what.said[0]]
    if what.opname.endswith("_back"):  # which adds into an array like its first argument
        args = [arg * 1.0 if np.asarray(arg).dtype.kind == "i" else arg for arg in args]
    return what.function(*args, **what.options)


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, Node) else value


def values_of(reader: Reader, nodes: list[Any]) -> dict[str, Any]:
    """The values of all symbols that a reader of some nodes uses."""
    values = {n.name: n.value for n in cg.topological_order(nodes) if isinstance(n, Node) and not n.args}
    for (shape, content, dtype), found in reader._constants.items():
        if found.head == "symbol":
            values[found.data] = np.frombuffer(content, dtype).reshape(shape)
    for name, line in reader.lines.items():
        values[name] = computed(line, values)
    return values


# ------------------------------------------------------------------------------------------------- LaTeX

TOKENS = re.compile(r"\\text\{(?:if|else)\}|\\left.|\\right.|\\[A-Za-z]+|\\[,;]|\d+\.?\d*|[A-Za-z]|[^\s]")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": math.log, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "sinh": math.sinh, "cosh": math.cosh,
    "arcsin": math.asin, "arctan": math.atan, "arctan2": math.atan2, "max": max, "min": min,
    "sigma": lambda x: 1 / (1 + math.exp(-x)), "sign": np.sign, "softplus": lambda x: math.log1p(math.exp(x)),
}  # fmt: skip
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, "=": lambda a, b: a == b, "\\geq": lambda a, b: a >= b,
    "\\leq": lambda a, b: a <= b, "\\neq": lambda a, b: a != b,
}  # fmt: skip
ENDS = {"", "}", "\\right)", "\\right|", "\\right]", "\\;", ",", "+", "-", "\\wedge", *RELATIONS}


class Latex:
    """Computes LaTeX of scalars, as it is read on paper: what stands side by side is multiplied."""

    def __init__(self, text: str, values: dict[str, float]) -> None:
        self.tokens = TOKENS.findall(text)
        self.values = values

    def value(self) -> float:
        """The number."""
        found = self.sum()
        assert not self.tokens, self.tokens
        return found

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, wanted: str | None = None) -> str:
        assert self.tokens, "the end"
        token = self.tokens.pop(0)
        assert wanted in (None, token), (wanted, token, self.tokens)
        return token

    def sum(self) -> Any:
        sign = -1 if self.peek() == "-" and self.take() else 1
        total = sign * self.product()
        while self.peek() in ("+", "-"):
            total += self.product() if self.take() == "+" else -self.product()
        if self.peek() in RELATIONS:
            return RELATIONS[self.take()](total, self.sum())
        return total

    def condition(self) -> Any:
        found = self.sum()
        while self.peek() == "\\wedge":
            self.take()
            found = self.sum() and found
        return found

    def product(self) -> Any:
        found: Any = 1
        while self.peek() not in ENDS:
            if self.peek() in ("\\,", "\\cdot"):
                self.take()
            else:
                found *= self.power()
        return found

    def power(self) -> Any:
        base = self.atom()
        return base ** self.group() if self.peek() == "^" and self.take() else base

    def group(self) -> Any:
        self.take("{")
        found = self.sum()
        self.take("}")
        return found

    def atom(self) -> Any:
        token = self.take()
        if token[0].isdigit():
            return float(token)
        if token == "e" and self.peek() == "^":
            return math.e
        if token == "\\frac":
            return self.group() / self.group()
        if token == "\\sqrt":
            return math.sqrt(self.group())
        if token == "\\left(":
            return self.parentheses()
        if token in ("\\left|", "\\left["):
            found = self.sum()
            self.take(token.replace("left", "right").replace("[", "]"))
            return abs(found) if token == "\\left|" else float(found)
        if token == "\\operatorname":
            self.take("{")
            word = ""
            while self.peek() != "}":
                word += self.take()
            self.take("}")
            return self.function(word)
        return self.function(token[1:]) if token[1:] in FUNCTIONS else self.symbol(token)

    def parentheses(self) -> Any:
        found = self.sum()
        if self.peek() == "\\;":
            for wanted in ("\\;", "\\text{if}", "\\;"):
                self.take(wanted)
            chosen = self.condition()
            for wanted in ("\\;", "\\text{else}", "\\;"):
                self.take(wanted)
            other = self.sum()
            found = found if chosen else other
        self.take("\\right)")
        return found

    def function(self, word: str) -> Any:
        exponent = self.group() if self.peek() == "^" and self.take() else 1
        self.take("\\left(")
        args = [self.sum()]
        while self.peek() == ",":
            self.take()
            args.append(self.sum())
        self.take("\\right)")
        return FUNCTIONS[word](*args) ** exponent

    def symbol(self, token: str) -> float:
        name = token.removeprefix("\\")
        if self.peek() == "_":
            self.take()
            self.take("{")
            name += "_" + self.take()
            self.take("}")
        return self.values.get(name, math.pi) if name == "pi" else self.values[name]
