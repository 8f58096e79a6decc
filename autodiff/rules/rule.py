"""What a rule is, and how it is found.

A rule says, for each operand, how the adjoint of the output becomes a contribution to the operand's adjoint::

    formula(adjoint, out, *operands, **options) -> contribution

Formulas are pure mathematics on arrays (or on nodes, for higher orders). They do not undo broadcasting, and do
not convert dtypes; `broadcasting.conform` does both, once, for all of them. A formula of None says that the
derivative is zero. Declare one by its kind; see `kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.ops import keep, kept
from compgraph.values import INERT, Node

from .broadcasting import as_adjoint, conform
from .lazy_cotangents import DEFERRED, Parts
from .variadic_formulas import Formula, Shared, Variadic
from .written_buffers import plain_operands, plain_result


class Rule:
    """The derivative of one operation.

    Attributes
    ----------
    opname : str
        The operation.
    kind : str
        One of the kinds; see `kinds`.
    formulas : sequence
        For each operand, its formula, or None where the derivative is zero.
    tangents : sequence
        For each operand, ``(tangent, out, *operands, **options) -> tangent of the output``.
    weights : sequence
        Of a reduction, for each operand what gives its partial derivatives.
    initial : int or None
        Of a reduction, the position of the number it begins with.
    positions : callable or None
        Of a gather, where in the first operand each element comes from.
    batch : tuple of callables or None
        How the rule takes a batch of adjoints, and of tangents; see `batched`.
    is_batchable : bool
        Whether formulas take batched adjoints and tangents, as functions within `vmap` do: they take no decision by their
        numbers.
    texts : sequence of str
        For each operand, its derivative in words of mathematics; see `said`.
    carries, begins, part : bool or callable, bool or callable, callable or None
        How supports of adjoints pass; see `moving` and `selecting`.
    """

    weights: Sequence[Formula | None] = ()
    initial: int | None = None
    positions: Formula | None = None
    batch: tuple[Formula | None, Formula | None] = (None, None)
    is_batchable: bool = False
    texts: Sequence[str] = ()
    carries: bool | Callable[..., bool] = False
    begins: bool | Callable[[Any], bool] = False
    part: Formula | None = None

    def __init__(self, opname: str, kind: str, formulas: Sequence[Formula | None], tangents: Sequence[Formula | None]) -> None:
        self.opname = opname
        self.kind = kind
        self.formulas = formulas
        self.tangents = tangents

    def __repr__(self) -> str:
        return f"<{self.kind} rule of {self.opname}>"

    def __call__(self, adjoint: Any, node: Node) -> list[Any]:
        """Return the adjoints of all operands of `node`, given its own; of a unary one ``[adjoint, None]``.

        Parameters
        ----------
        adjoint : array_like
            The adjoint of `node`: a number, a list or an array that broadcasts to it.
        node : Node
            A node of this operation.

        Returns
        -------
        list
            An array of the shape and dtype of each operand, None for constants and those without a derivative.

        Raises
        ------
        TypeError
            If the adjoint is complex and the node real, or it is no number.
        ValueError
            If the node is of another operation, or the adjoint does not broadcast to it.
        """
        made_by: Any = node
        adjoint = as_adjoint(adjoint, node)
        if isinstance(node.function, ops.Output):
            made_by = node.args[0]
            adjoint = Parts({node.function.index: adjoint}).settle(made_by)
        if made_by.function is None or by_function[made_by.function].opname != self.opname:
            raise ValueError(f"{self.opname}_grad was given a node of {node.opname or 'no operation'}")
        formulas = by_function[made_by.function].formulas
        values, out = plain_operands(made_by), plain_result(made_by)
        found: list[Any] = [None] * ops.operand_count(made_by.function, len(values))
        for position in made_by.parent_argnums[: len(found)]:
            operand = made_by.args[position]
            formula = None if type(operand) in INERT else formulas[position]
            if formula is not None:
                contribution = formula(adjoint, out, *values, **made_by.options)
                if type(contribution) in DEFERRED:
                    contribution = contribution.settle(operand)
                found[position] = conform(contribution, operand.raw_value)
        return found if len(found) > 1 else [*found, None]

    def tangent(self, *formulas: Formula | None) -> Rule:
        """Give the tangent formulas of a general rule; returns the rule."""
        self.tangents = formulas
        return self

    def batched(self, pull: Formula | None = None, push: Formula | None = None) -> Rule:
        """Declare how the rule takes a batch of adjoints, or of tangents, whose axis comes first; returns the rule.

        It is for rules that batched values do not serve: `vmap` has no entry for an operation in their formulas, or they take
        a batch unless their result has equal values.

        Parameters
        ----------
        pull : callable
            ``(position, adjoints, out, *operands, **options)`` returns the contributions to the adjoints of one operand.
        push : callable
            ``(tangents, out, *operands, **options)`` returns the tangents of the output; `tangents` has an entry for each
            operand, None where it is zero.

        Returns
        -------
        Rule
            Both may be None, or return NotImplemented: as if nothing were said.
        """
        self.batch = (pull, push)
        return self

    def batchable(self) -> Rule:
        """Declare that formulas take batched adjoints and tangents; returns the rule."""
        self.is_batchable = True
        return self

    def one_by_one(self) -> Rule:
        """Declare that formulas depend on the numbers of the adjoint or tangent: they are called for each; returns the rule."""
        self.is_batchable = False
        return self

    def moving(self, when: bool | Callable[..., bool] = True) -> Rule:
        """Say that formulas move or add up the elements of the adjoint, and subtract none; returns the rule.

        Where the adjoint has structural zeros (see `structural_zeros`), the formulas themselves tell where contributions do.

        Parameters
        ----------
        when : bool or callable
            Of the options, whether they do so.
        """
        self.carries = when
        return self

    def selecting(self, part: Formula | None = None, begins: bool | Callable[[Any], bool] = True) -> Rule:
        """Say that some elements may pass nothing on, since they are not chosen: structural zeros; returns the rule.

        Parameters
        ----------
        part : callable, optional
            ``(*operands, **options)`` returns which elements of the first operand take part. Without it formulas tell,
            which are then `moving`.
        begins : bool or callable
            Of a node, whether it leaves out any.

        Returns
        -------
        Rule
        """
        self.carries, self.begins, self.part = part is None, begins, part
        return self

    def said(self, *texts: str) -> Rule:
        """Say the derivative as one would write it, for those who look at a sweep; returns the rule.

        Parameters
        ----------
        *texts : str
            For each operand, an expression in NumPy's functions and these letters: ``a``, ``b``, ``c`` for the operands,
            ``y`` for the result, ``n`` for how many elements of the first operand each element of the result is made of.
            It is the factor at the adjoint, ``"cos(a)"``, or, where ``g``, the adjoint, stands in it, the whole
            contribution, ``"g @ b.T"``.

        Returns
        -------
        Rule
            Nothing is computed with the texts, and one is shown only where it gives the number that the formula gives.
        """
        self.texts = texts
        return self


# --------------------------------------------------------------------------------------------- look-up

rules: dict[str, Rule] = {}  # by opname
makers: dict[type, Callable[[Any], Rule]] = {}  # for kinds of callable of which each has a rule of its own
users: dict[Callable[..., Any], Rule] = {}  # of users' callables that cannot keep them; see `ops.attached`


def declare(rule: Rule, function: Callable[..., Any] | None = None) -> Rule:
    """Enter a rule under its opname; one of a user's function is for that function alone, which keeps it."""
    if function is None:
        rules[rule.opname] = rule
    elif not keep(function, "rule", rule):
        users[function] = rule
    by_function.clear()
    return rule


ops.KNOWN_ELSEWHERE["rule"] = users.get, lambda function, rule: declare(rule, function)


class ByFunction(dict[Any, Rule]):
    """Rules by the function a node carries, found by opname the first time."""

    def __missing__(self, function: Any) -> Rule:
        own = kept(function, "rule")
        if own is not None:
            return own  # type: ignore[no-any-return]  # and do not hold it
        if type(function) in makers:
            rule = makers[type(function)](function)
        else:
            opname = ops.opname_of(function)
            found = users.get(function) or rules.get(opname)
            if found is None:
                raise TypeError(
                    f"{opname} has no derivative rule; declare one with autodiff.rule, or keep the derivative from "
                    "passing with cg.stop_gradient"
                )
            rule = found
        self[function] = rule
        return rule


by_function = ByFunction()


def push(rule: Rule, tangents: Sequence[Any], out: Any, function: Any, primals: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The tangent of an operation's output, from those of its operands (None where zero), by the rule's kind."""
    if rule.kind == "linear":
        count = len(primals) - len(function.counts) if isinstance(function, ops.Keyworded) else len(primals)
        moved = [_or_zeros(t, x) for t, x in zip(tangents[:count], primals[:count], strict=True)]
        return bind(function, (*moved, *primals[count:]), options)
    if type(rule.tangents) is Shared:
        return rule.tangents.formula(tangents, out, *primals, **options)
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if rule.kind == "multilinear":
            part = bind(function, (*primals[:position], tangent, *primals[position + 1 :]), options)
        else:
            if not len(rule.tangents):
                raise TypeError(f"{rule.opname} has no tangent rule; declare one with autodiff.rule(..., tangents=...)")
            formula = rule.tangents[position]
            if formula is None:
                continue
            part = formula(tangent, out, *primals, **options)
        total = part if total is None else _add(total, part)
    return total


def _or_zeros(tangent: Any, primal: Any) -> Any:
    return np.zeros(np.shape(primal), np.result_type(primal, np.float16)) if tangent is None else tangent


def _add(a: Any, b: Any) -> Any:
    """The sum of two tangents; of an operation with several outputs, part by part."""
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))
    return a + b


def with_keywords(rule: Rule, function: ops.Keyworded) -> Rule:
    """The rule of a call whose last operands were given by keyword; those are options to the formulas."""
    parameters = ops.operand_names(function.function)

    def among(formulas: Sequence[Formula | None]) -> Sequence[Formula | None]:
        def call(position: int, adjoint: Any, out: Any, *operands: Any, **options: Any) -> Any:
            cut = len(operands) - len(function.names)
            name = function.names[position - cut] if position >= cut else ""
            place = parameters.index(name) if name in parameters else position
            formula = formulas[place] if place < len(formulas) and (not name or name in parameters) else None
            if formula is None and position >= cut:
                raise TypeError(f"{rule.opname}: the derivative with respect to {name} is not known; give a plain value")
            if formula is None:
                return np.zeros_like(out if formulas is rule.tangents else operands[position])
            return formula(adjoint, out, *operands[:cut], **function.named(operands[cut:]), **options)

        return Variadic(call)

    made = Rule(rule.opname, rule.kind, among(rule.formulas), among(rule.tangents) if len(rule.tangents) else ())
    made.carries, made.begins, made.part = rule.carries, rule.begins, rule.part
    return made.batchable() if rule.is_batchable else made


def _output_rule(function: ops.Output) -> Rule:
    """The rule of one output of several: its adjoint is stack_nested with those of the others."""
    index = function.index
    rule = Rule("output", "linear", [lambda adjoint, out, outputs: Parts({index: adjoint})], ()).moving()
    return rule.batched(lambda position, g, out, outputs: Parts({index: g}), lambda tangents, out, outputs: tangents[0][index])


makers[ops.Configured] = lambda function: by_function[function.function]
makers[ops.Keyworded] = lambda function: with_keywords(by_function[function.function], function)
makers[ops.Output] = _output_rule
