"""The equations of a step of a sweep: the chain rule in symbols, and with its numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.values import MultiOutput, Value

from .names import inner, outer, shape
from .steps import Pass, Step, letters

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
# The pieces of a rule's text (what `Rule.said` wrote): a power, a transpose, a word, an operator, another character.
PIECES = re.compile(r"\*\*(?:\(([^()]*)\)|(\w+))|\.T\b|(\w+)|(\s*[-+*/@>]\s*)|(.)")
SIGNS = {"*": " · ", "/": " / ", "-": " − ", "+": " + ", "@": " @ ", ">": " > "}


@dataclass(frozen=True)
class Token:
    """A piece of an equation.

    Attributes
    ----------
    kind : {"text", "name", "partial", "up"}
        Plain text, the name of a node, the partial derivative of `text` by `below`, or an exponent.
    text, below : str
        What is written; `below` is used by "partial" only.
    """

    kind: str
    text: str
    below: str = ""

    def plain(self) -> str:
        """The token in one line of text."""
        if self.kind == "partial":
            return f"∂{self.text}/∂{self.below}"
        return (
            self.text
            if self.kind != "up"
            else f"^{self.text}"
            if re.fullmatch(r"[\w.]+|\(.*\)", self.text)
            else f"^({self.text})"
        )

    def html(self) -> str:
        """The token in HTML."""
        words = html.escape(self.text)
        if self.kind == "partial":
            below = html.escape(self.below)
            return f'<span class="fraction"><span>∂<i>{words}</i></span><span>∂<i>{below}</i></span></span>'
        tag = {"text": "span", "name": "i", "up": "sup"}[self.kind]
        return f"<{tag}>{words}</{tag}>"


Line = list[Token]


def plain(line: Iterable[Token]) -> str:
    """An equation in one line of text."""
    return "".join(token.plain() for token in line)


@dataclass(frozen=True)
class Writer:
    """Writes the equations of a `Pass`.

    Attributes
    ----------
    names : dict
        The name of each node.
    letter : str
        The name of what is differentiated; in forward mode, of the parameter t by which all nodes are differentiated.
    mode : {"reverse", "forward"}
        The mode of the pass.
    """

    names: dict[Any, str]
    letter: str
    mode: str

    def derivative(self, node: Any) -> Token:
        """The symbol for the adjoint or tangent of a node."""
        name = self.names[node]
        return Token("partial", self.letter, name) if self.mode == "reverse" else Token("partial", name, self.letter)

    def step(self, step: Step) -> list[Line]:
        """The equations of a step: the chain rule with its numbers, the local derivative, the sum so far."""
        node, operand = step.node, step.operand
        back = self.mode == "reverse"
        target = operand if back else node
        local = Token("partial", self.names[node], self.names[operand])
        given = self.derivative(node if back else operand)
        symbols, numbers = _product(step, local, given, back)
        lines = [[self.derivative(target), _text(" += "), *symbols, *numbers, _text(" = "), _text(outer(step.part))]]
        said = self._said(step, local, given)
        if said:
            lines.append(said)
        if not isinstance(node, MultiOutput) and not isinstance(operand, MultiOutput) and (node.ndim or operand.ndim):
            lines.append([_text(_shapes(step, back))])
        if step.before is not None:
            lines.append([self.derivative(target), _text(f" = {outer(step.before)} + {inner(step.part)} = {outer(step.total)}")])
        return lines

    def _said(self, step: Step, local: Token, given: Token) -> Line:
        """The line ``with ∂y/∂x = ...``: the rule's text with the names of the nodes and, for scalars, with their numbers."""
        if not step.text:
            return []
        used = letters(step.text)
        operands = [a.raw_value if isinstance(a, Value) else a for a in step.node.args]
        count = np.size(operands[0]) / max(step.node.size, 1)
        names = [Token("name", self.names[a]) if isinstance(a, Value) else _text(inner(a)) for a in step.node.args]
        known = {"y": Token("name", self.names[step.node]), "g": given, "n": _text(f"{count:g}")}
        known |= dict(zip("abc", names, strict=False))
        line = [_text("with "), *([given, _text(" @ ")] if "g" in used else []), local, _text(" = "), *written(step.text, known)]
        if step.local is None and "g" not in used:
            return [*line, _text(" for each element")]
        if step.local is None or not used:
            return line
        ends = [_text(outer(step.local))]
        if not any(map(np.ndim, (step.node, *operands))):
            values = {"y": _text(inner(step.node.raw_value))} | {
                x: _text(inner(v)) for x, v in zip("abc", operands, strict=False)
            }
            filled = written(step.text, known | values)
            if len(filled) > 1:  # one token alone is the value itself, which `ends` writes
                return [*line, _text(" = "), *filled, _text(" = "), *ends]
        return line if line[-1].kind == "text" and line[-1].text == inner(step.local) else [*line, _text(" = "), *ends]

    def words(self, step: Step) -> str:
        """What happens in a step, in a sentence."""
        node, operand = self.names[step.node], self.names[step.operand]
        if isinstance(step.node.function, ops.Output):
            which = f"result {step.node.function.index + 1} of {operand}"
            return f"{node}, {which}, hands its adjoint over" if self.mode == "reverse" else f"{node} takes its tangent, {which}"
        place = f"its {ORDINALS[step.position]} operand, " if len(step.node.args) > 1 and step.position < len(ORDINALS) else ""
        if self.mode == "reverse":
            return f"{node} passes its adjoint back to {place}{operand}"
        return f"{node} takes the tangent of {place}{operand}"

    def start(self, sweep: Pass) -> Line:
        """The line that says what the sweep starts from."""
        ((node, seed),) = sweep.start.items()
        return [self.derivative(node), _text(f" = {outer(seed)}")]

    def result(self, sweep: Pass) -> list[Line]:
        """The lines that say what the sweep has found."""
        return [[self.derivative(node), _text(f" = {outer(value)}")] for node, value in sweep.result.items()]


def _text(words: str) -> Token:
    return Token("text", words)


def _product(step: Step, local: Token, given: Token, back: bool) -> tuple[Line, Line]:
    """The chain rule of a step in symbols, and in numbers; no numbers where the step is no product of two arrays."""
    scalar = (
        not isinstance(step.node, MultiOutput)
        and not isinstance(step.operand, MultiOutput)
        and not (step.node.ndim or step.operand.ndim)
    )
    if isinstance(step.node.function, ops.Output):
        return [given], []
    if step.local is None:
        # Of complex numbers the derivative may be no factor: that of conj is a Jacobian of real and imaginary parts.
        sign = " · " if scalar and not np.iscomplexobj(step.given) else " @ "
        return ([given, _text(sign), local] if back else [local, _text(sign), given]), []
    sign, times = (" · ", " × ") if scalar else (" ⊙ ", " ⊙ ")
    first, second = (given, local) if back else (local, given)
    one, two = (step.given, step.local) if back else (step.local, step.given)
    symbols, numbers = (
        [first, _text(sign), second],
        [_text(f"{inner(one) if np.iscomplexobj(one) else outer(one)}{times}{inner(two)}")],
    )
    if back and np.shape(step.part) != step.node.shape:
        symbols, numbers = [_text("sum("), *symbols, _text(")")], [_text("sum("), *numbers, _text(")")]
    elif np.iscomplexobj(step.given * step.local) and not np.iscomplexobj(step.part):
        symbols, numbers = [_text("Re("), *symbols, _text(")")], [_text("Re("), *numbers, _text(")")]
    return symbols, [_text(" = "), *numbers]


def _shapes(step: Step, back: bool) -> str:
    """The shapes in the vector form of the chain rule: adjoint @ Jacobian, or Jacobian @ tangent."""
    node, operand = shape(step.node.raw_value), shape(step.operand.raw_value)
    jacobian = f"Jacobian ({node}, {operand}){', diagonal' if step.local is not None and node == operand else ''}"
    return f"adjoint ({node}) @ {jacobian} → ({operand})" if back else f"{jacobian} @ tangent ({operand}) → ({node})"


def written(text: str, known: dict[str, Token]) -> Line:
    """A rule's text as mathematics, with each letter of `known` replaced by its token."""
    line: Line = []
    for power, exponent, word, sign, other in PIECES.findall(text):
        if power or exponent:
            line.append(Token("up", plain(written(power or exponent, known))))
        elif word:
            line.append(known.get(word) or _text("π" if word == "pi" else word))
        elif sign:
            unary = not line or line[-1].text.endswith("(")
            line.append(_text("−" if unary and "-" in sign else SIGNS[sign.strip()]))
        else:
            line.append(_text(other or "ᵀ"))
    return line
