"""The equations of a step of a sweep: the chain rule in symbols and in numbers, and the names and numbers in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.values import ConstantNode, MultiOutput, Value
from compgraph.view import chosen_name, escape_unprintable, name_of, typeset_name

from .sweep_steps import Step, Sweep, names_in

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
# The tokens of the formula text of a rule (`Rule.with_formula`): a power, a transpose, a word, an operator, another character.
TOKENS = re.compile(r"\*\*(?:\(([^()]*)\)|(\w+))|\.T\b|(\w+)|(\s*[-+*/@>]\s*)|(.)")
SYMBOLS = {"*": " · ", "/": " / ", "-": " − ", "+": " + ", "@": " @ ", ">": " > "}


@dataclass(frozen=True)
class Token:
    """A token of an equation.

    Attributes
    ----------
    kind : {"text", "name", "partial", "exponent"}
        Plain text, the name of a node, the partial derivative of `text` with respect to `below`, or an exponent.
    text, below : str
        The text; `below` is used by "partial" only.
    """

    kind: str
    text: str
    below: str = ""

    def plain_text(self) -> str:
        """Return the token in one line of text."""
        if self.kind == "partial":
            return f"∂{self.text}/∂{self.below}"
        if self.kind == "exponent":
            return f"^{self.text}" if re.fullmatch(r"[\w.]+|\(.*\)", self.text) else f"^({self.text})"
        return self.text


Line = list[Token]


def plain_text(line: Iterable[Token]) -> str:
    """Return an equation in one line of text."""
    return "".join(token.plain_text() for token in line)


@dataclass(frozen=True)
class Writer:
    """Writes the equations of a `Sweep`.

    Attributes
    ----------
    names : dict
        The name of each node.
    letter : str
        The name of the differentiated result; in forward mode, of the parameter t by which all nodes are differentiated.
    mode : {"reverse", "forward"}
        The mode of the pass.
    """

    names: dict[Any, str]
    letter: str
    mode: str

    def derivative(self, node: Value) -> Token:
        """Return the symbol of the cotangent or tangent of a node."""
        name = self.names[node]
        return Token("partial", self.letter, name) if self.mode == "reverse" else Token("partial", name, self.letter)

    def step(self, step: Step) -> list[Line]:
        """Write the equations of a step: the chain rule with its numbers, the local derivative, the sum so far."""
        node, operand = step.node, step.operand
        is_reverse = self.mode == "reverse"
        target = operand if is_reverse else node
        partial_token = Token("partial", self.names[node], self.names[operand])
        derivative_token = self.derivative(node if is_reverse else operand)
        symbols, numbers = _product(step, partial_token, derivative_token, is_reverse)
        lines = [
            [self.derivative(target), _text(" += "), *symbols, *numbers, _text(" = "), _text(format_result(step.contribution))]
        ]
        formula = self._formula(step, partial_token, derivative_token)
        if formula:
            lines.append(formula)
        if not isinstance(node, MultiOutput) and not isinstance(operand, MultiOutput) and (node.ndim or operand.ndim):
            lines.append([_text(_shapes_text(step, is_reverse))])
        if step.previous_total is not None:
            terms = f"{format_result(step.previous_total)} + {format_operand(step.contribution)}"
            lines.append([self.derivative(target), _text(f" = {terms} = {format_result(step.total)}")])
        return lines

    def _formula(self, step: Step, partial_token: Token, derivative_token: Token) -> Line:
        """Write ``with ∂y/∂x = ...``: the formula of the rule with names and, for scalars, with numbers."""
        if not step.text:
            return []
        used = names_in(step.text)
        operands = [a.raw_value if isinstance(a, Value) else a for a in step.node.args]
        count = np.size(operands[0]) / max(step.node.size, 1)
        names = [Token("name", self.names[a]) if isinstance(a, Value) else _text(format_operand(a)) for a in step.node.args]
        tokens = {"y": Token("name", self.names[step.node]), "g": derivative_token, "n": _text(f"{count:g}")}
        tokens |= dict(zip("abc", names, strict=False))
        line = [
            _text("with "),
            *([derivative_token, _text(" @ ")] if "g" in used else []),
            partial_token,
            _text(" = "),
            *typeset_formula(step.text, tokens),
        ]
        if step.local_derivative is None and "g" not in used:
            return [*line, _text(" for each element")]
        if step.local_derivative is None or not used:
            return line
        value_tokens = [_text(format_result(step.local_derivative))]
        if not any(map(np.ndim, (step.node, *operands))):
            values = {"y": _text(format_operand(step.node.raw_value))} | {
                x: _text(format_operand(v)) for x, v in zip("abc", operands, strict=False)
            }
            number_tokens = typeset_formula(step.text, tokens | values)
            if len(number_tokens) > 1:  # one token alone is the value itself, which `value_tokens` writes
                return [*line, _text(" = "), *number_tokens, _text(" = "), *value_tokens]
        ends_with_value = line[-1].kind == "text" and line[-1].text == format_operand(step.local_derivative)
        return line if ends_with_value else [*line, _text(" = "), *value_tokens]

    def describe(self, step: Step) -> str:
        """Describe a step in a sentence."""
        node, operand = self.names[step.node], self.names[step.operand]
        if isinstance(step.node.function, ops.Output):
            which = f"result {step.node.function.index + 1} of {operand}"
            return (
                f"{node}, {which}, passes its cotangent back" if self.mode == "reverse" else f"{node} takes its tangent, {which}"
            )
        position_text = (
            f"its {ORDINALS[step.position]} operand, " if len(step.node.args) > 1 and step.position < len(ORDINALS) else ""
        )
        if self.mode == "reverse":
            return f"{node} passes its cotangent back to {position_text}{operand}"
        return f"{node} takes the tangent of {position_text}{operand}"

    def start(self, sweep: Sweep) -> Line:
        """Write the equation of the start."""
        ((node, seed),) = sweep.start.items()
        return [self.derivative(node), _text(f" = {format_result(seed)}")]

    def result(self, sweep: Sweep) -> list[Line]:
        """Write the equations of the results."""
        return [[self.derivative(node), _text(f" = {format_result(value)}")] for node, value in sweep.result.items()]


def _text(words: str) -> Token:
    return Token("text", words)


def _product(step: Step, partial_token: Token, derivative_token: Token, is_reverse: bool) -> tuple[Line, Line]:
    """Write the chain rule of a step in symbols and in numbers; no numbers unless the step is a product of two arrays."""
    is_scalar = (
        not isinstance(step.node, MultiOutput)
        and not isinstance(step.operand, MultiOutput)
        and not (step.node.ndim or step.operand.ndim)
    )
    if isinstance(step.node.function, ops.Output):
        return [derivative_token], []
    first, second = (derivative_token, partial_token) if is_reverse else (partial_token, derivative_token)
    if step.local_derivative is None:
        # The derivative of complex numbers may not be a factor: conj has a Jacobian of real and imaginary parts.
        symbol = " · " if is_scalar and not np.iscomplexobj(step.incoming) else " @ "
        return [first, _text(symbol), second], []
    symbol, times = (" · ", " × ") if is_scalar else (" ⊙ ", " ⊙ ")
    left_factor, right_factor = (step.incoming, step.local_derivative) if is_reverse else (step.local_derivative, step.incoming)
    left_text = format_operand(left_factor) if np.iscomplexobj(left_factor) else format_result(left_factor)
    symbols, numbers = (
        [first, _text(symbol), second],
        [_text(f"{left_text}{times}{format_operand(right_factor)}")],
    )
    if is_reverse and np.shape(step.contribution) != step.node.shape:
        symbols, numbers = [_text("sum("), *symbols, _text(")")], [_text("sum("), *numbers, _text(")")]
    elif np.iscomplexobj(step.incoming * step.local_derivative) and not np.iscomplexobj(step.contribution):
        symbols, numbers = [_text("Re("), *symbols, _text(")")], [_text("Re("), *numbers, _text(")")]
    return symbols, [_text(" = "), *numbers]


def _shapes_text(step: Step, is_reverse: bool) -> str:
    """Write the shapes of the vector form of the chain rule: cotangent @ Jacobian, or Jacobian @ tangent."""
    node, operand = format_shape(step.node.raw_value), format_shape(step.operand.raw_value)
    jacobian = f"Jacobian ({node}, {operand}){', diagonal' if step.local_derivative is not None and node == operand else ''}"
    return f"cotangent ({node}) @ {jacobian} → ({operand})" if is_reverse else f"{jacobian} @ tangent ({operand}) → ({node})"


def typeset_formula(text: str, tokens: Mapping[str, Token]) -> Line:
    """Return the formula text of a rule as mathematics, with each name in `tokens` replaced by its token."""
    line: Line = []
    for power, exponent, word, symbol, other in TOKENS.findall(text):
        if power or exponent:
            line.append(Token("exponent", plain_text(typeset_formula(power or exponent, tokens))))
        elif word:
            line.append(tokens.get(word) or _text("π" if word == "pi" else word))
        elif symbol:
            is_unary = not line or line[-1].text.endswith("(")
            line.append(_text("−" if is_unary and "-" in symbol else SYMBOLS[symbol.strip()]))
        else:
            line.append(_text(other or "ᵀ"))
    return line


# -------------------------------------------------------------------------------------- names and numbers

MAX_NAME_LENGTH = 24


def unique_names(nodes: Sequence[Any]) -> dict[Any, str]:
    """Return a unique name for each node; scalar constants without a name share the text of their number."""
    names: dict[Any, str] = {}
    used_names: set[str] = set()
    # Automatic names are numbered on first use: in the order of computation, the oldest first.
    for node in sorted(nodes, key=lambda node: node.sequence_number):
        if isinstance(node, ConstantNode) and chosen_name(node) is None and node.ndim == 0:
            names[node] = format_number(node.raw_value)
            continue
        name = node.opname if isinstance(node, MultiOutput) else name_of(node) or node.name
        name = truncate(typeset_name(escape_unprintable(name).replace("\n", " ")) or "“”")
        count = 1
        while name + "′" * (count - 1) in used_names:
            count += 1
        names[node] = name + "′" * (count - 1)
        used_names.add(names[node])
    return names


def has_chosen_name(node: Any) -> bool:
    """Whether the user named an operation (``y``); automatic names are its opname and a number (``mul_0``)."""
    return bool(node.opname) and not isinstance(node, MultiOutput) and chosen_name(node) is not None


def unused_letter(preferred: str, names: dict[Any, str]) -> str:
    """Return a letter that is not the name of a node: `preferred` if possible."""
    return next(x for x in (preferred, "F", "φ", "τ", *(f"{preferred}{k}" for k in range(len(names)))) if x not in names.values())


def truncate(text: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Cut a text to a length, with ``…`` for the rest."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def format_number(value: Any, digits: int = 5) -> str:
    """Return a number as text."""
    value = np.asarray(value)[()]
    if isinstance(value, np.complexfloating):
        return f"{format_number(value.real, digits)}{'' if np.signbit(value.imag) else '+'}{format_number(value.imag, digits)}i"
    text = f"{float(value):.{digits}g}" if value.dtype.kind == "f" else str(value)
    return text.replace("-", "−")


def format_operand(value: Operand) -> str:
    """Return a value as an operand in an equation: a number, in parentheses if it has a sign; an array; a tuple of these."""
    if isinstance(value, tuple):
        return "(" + ", ".join("–" if v is None else format_operand(v) for v in value) + ")"
    value = np.asarray(value)
    if value.ndim == 0:
        text = format_number(value)
        return f"({text})" if text.startswith("−") or text.endswith("i") else text
    return format_rows(value, 3, 4)


def format_result(value: Array) -> str:
    """Return a value at the end of an equation: as `format_operand`, but without parentheses around a number."""
    return format_number(value) if not isinstance(value, tuple) and np.ndim(value) == 0 else format_operand(value)


def format_rows(value: Any, max_length: int, digits: int) -> str:
    """Return an array as text, without the middle of axes longer than ``max_length + 1``."""
    if value.ndim == 0:
        return format_number(value, digits)
    length = len(value)
    positions = range(length) if length <= max_length + 1 else [*range(max_length - 1), -1]
    words = [format_rows(value[k], max_length, digits) for k in positions]
    if len(words) < length:
        words.insert(-1, "…")
    return "[" + " ".join(words) + "]"


def format_shape(value: Any) -> str:
    """Return the shape of an array, ``2×3``, or the shapes of a tuple of arrays."""
    if isinstance(value, tuple):
        return ", ".join(map(format_shape, (v for v in value if v is not None)))
    return "×".join(map(str, np.shape(value))) or "1"


def node_text(value: Array) -> str:
    """Return the text of a value on a node: a number, a short array, or its shape."""
    if isinstance(value, tuple):
        return truncate(f"{len(value)} results")
    text = format_number(value) if np.ndim(value) == 0 else format_rows(np.asarray(value), 3, 3)
    return text if len(text) <= 20 else f"array {format_shape(value)}"
