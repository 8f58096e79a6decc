"""The class `Rule`, its application to cotangents and tangents, and the lookup of rules.

For each operand, a rule has a formula that maps the cotangent of the output to a contribution to the operand's cotangent::

    formula(cotangent, out, *operands, **options) -> contribution

Formulas are pure mathematics on arrays, or on nodes for higher orders. They neither undo broadcasting nor convert dtypes:
`broadcasting.conform` does both for all of them. A formula of None means that the derivative is zero. Operations with any number
of operands have `VariadicFormulas`. See `rule_kinds` for the declaration of rules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.ops import get_attached, set_attached
from compgraph.values import INERT, Node

from .broadcasting import as_cotangent, conform
from .lazy_cotangents import LAZY_COTANGENTS, OutputCotangents
from .written_buffers import plain_operands, plain_result

Formula = Callable[..., Any]


class VariadicFormulas(Sequence[Formula | None]):
    """Formulas of an operation with any number of operands, derived from one that also takes the position.

    Parameters
    ----------
    formula : callable
        ``(position, cotangent, out, *operands, **options)`` returns one contribution.
    fixed : int
        The number of leading operands without a derivative.
    """

    def __init__(self, formula: Formula, fixed: int = 0) -> None:
        self.formula = formula
        self.fixed = fixed

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda cotangent, out, *operands, **options: self.formula(position, cotangent, out, *operands, **options)


class SharedFormulas(VariadicFormulas):
    """Formulas of an operation with any number of operands, derived from one that handles several operands per call.

    One call per operand would take n * n steps for n operands, because each call receives all of them.

    Parameters
    ----------
    formula : callable
        ``(positions, cotangent, out, *operands, **options)`` returns a list with a contribution per position. As a
        tangent formula, ``(tangents, out, *operands, **options)`` returns the tangent of the output; see `push`.
    fixed : int
        The number of leading operands without a derivative.
    batched : bool
        Whether the formula accepts cotangents with a batch axis.
    """

    def __init__(self, formula: Formula, fixed: int = 0, batched: bool = False) -> None:
        super().__init__(formula, fixed)
        self.batched = batched

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda cotangent, out, *operands, **options: self.formula([position], cotangent, out, *operands, **options)[0]

    def evaluate(self, node: Any, needed_ids: Any, cotangent: Any, out: Any, operands: Any) -> Contributions:
        """Call the formula once for a node and return the contributions in the form of formulas.

        Parameters
        ----------
        node : Node or MultiOutput
            The node whose operands get the contributions.
        needed_ids : container of int
            The ids of the operands that need a cotangent.
        cotangent, out, operands
            The arguments of the formula.
        """
        args = node.args
        positions = [p for p in node.parent_argnums if p >= self.fixed and id(args[p]) in needed_ids]
        contributions = self.formula(positions, cotangent, out, *operands, **node.options) if positions else []
        return Contributions(dict(zip(positions, contributions, strict=True)))


class Contributions:
    """The contributions of one node in the form of formulas; each is returned once."""

    __slots__ = ("by_position", "current_position")

    def __init__(self, contributions: dict[int, Any]) -> None:
        self.by_position = contributions
        self.current_position = -1

    def __getitem__(self, position: int) -> Any:
        if position not in self.by_position:
            return None
        self.current_position = position
        return self

    def __call__(self, cotangent: object, out: object) -> Any:
        """Return the contribution to the operand that was indexed last."""
        return self.by_position.pop(self.current_position)


class Rule:
    """The derivative of one operation.

    Attributes
    ----------
    opname : str
        The operation.
    kind : str
        One of the kinds in `rule_kinds`.
    formulas : sequence
        For each operand, its formula, or None where the derivative is zero.
    tangents : sequence
        For each operand, ``(tangent, out, *operands, **options) -> tangent of the output``.
    weights : sequence
        For a reduction: for each operand, the function that returns its partial derivatives.
    initial : int or None
        For a reduction: the position of its initial value.
    positions : callable or None
        For a gather: returns the flat position in the first operand of each element of the output.
    batched_pull, batched_push : callable or None
        How the rule processes a batch of cotangents, and of tangents; see `batched`.
    is_batchable : bool
        Whether formulas accept batched cotangents and tangents, as functions within `vmap` do. They must not branch on
        their values.
    texts : sequence of str
        For each operand, its derivative as formula text; see `with_formula`.
    maps_zeros, makes_zeros, selection_mask : bool or callable, bool or callable, callable or None
        How the rule propagates structural zeros; see `moves_elements` and `selects_elements`.
    """

    weights: Sequence[Formula | None] = ()
    initial: int | None = None
    positions: Formula | None = None
    batched_pull: Formula | None = None
    batched_push: Formula | None = None
    is_batchable: bool = False
    texts: Sequence[str] = ()
    maps_zeros: bool | Callable[..., bool] = False
    makes_zeros: bool | Callable[[Any], bool] = False
    selection_mask: Formula | None = None

    def __init__(self, opname: str, kind: str, formulas: Sequence[Formula | None], tangents: Sequence[Formula | None]) -> None:
        self.opname = opname
        self.kind = kind
        self.formulas = formulas
        self.tangents = tangents

    def __repr__(self) -> str:
        return f"<{self.kind} rule of {self.opname}>"

    def __call__(self, adjoint: object, node: Node) -> list[Any]:
        """Return the cotangents of all operands of `node`, given its own; ``[cotangent, None]`` for a unary operation.

        Parameters
        ----------
        adjoint : array_like
            The cotangent of `node`: a number, a list or an array that broadcasts to it.
        node : Node
            A node of this operation.

        Returns
        -------
        list
            An array of the shape and dtype of each operand; None for constants and operands without a derivative.

        Raises
        ------
        TypeError
            If the cotangent is complex and the node real, or it is not numeric.
        ValueError
            If the node belongs to another operation, or the cotangent does not broadcast to it.
        """
        operation: Any = node
        cotangent: Any = as_cotangent(adjoint, node)
        if isinstance(node.function, ops.Output):
            operation = node.args[0]
            cotangent = OutputCotangents({node.function.index: cotangent}).materialize(operation)
        if operation.function is None or by_function[operation.function].opname != self.opname:
            raise ValueError(
                f"{self.opname}_grad: the node was computed by {node.opname or 'no operation'}. Use the rule of that operation"
            )
        formulas = by_function[operation.function].formulas
        values, out = plain_operands(operation), plain_result(operation)
        results: list[Any] = [None] * ops.operand_count(operation.function, len(values))
        for position in operation.parent_argnums[: len(results)]:
            operand = operation.args[position]
            formula = None if type(operand) in INERT else formulas[position]
            if formula is not None:
                contribution = formula(cotangent, out, *values, **operation.options)
                if type(contribution) in LAZY_COTANGENTS:
                    contribution = contribution.materialize(operand)
                results[position] = conform(contribution, operand.raw_value)
        return results if len(results) > 1 else [*results, None]

    def tangent(self, *formulas: Formula | None) -> Rule:
        """Set the tangent formulas, if they do not follow from the kind, and return the rule."""
        self.tangents = formulas
        return self

    def batched(self, pull: Formula | None = None, push: Formula | None = None) -> Rule:
        """Declare how the rule processes a batch of cotangents, or of tangents, along a first axis; return the rule.

        Only rules whose formulas cannot process batched values need this: an operation in them has no batching rule, or they
        branch on values.

        Parameters
        ----------
        pull : callable
            ``(position, cotangents, out, *operands, **options)`` returns the contributions to the cotangents of one operand.
        push : callable
            ``(tangents, out, *operands, **options)`` returns the tangents of the output; `tangents` has an entry for each
            operand, None where it is zero.

        Returns
        -------
        Rule
            Both functions may be None or return NotImplemented; the batch is then processed as if they were not declared.
        """
        self.batched_pull, self.batched_push = pull, push
        return self

    def batchable(self) -> Rule:
        """Declare that formulas accept batched cotangents and tangents; return the rule."""
        self.is_batchable = True
        return self

    def not_batchable(self) -> Rule:
        """Declare that formulas branch on the cotangent or tangent and are called per batch element; return the rule."""
        self.is_batchable = False
        return self

    def moves_elements(self, when: bool | Callable[..., bool] = True) -> Rule:
        """Declare that formulas only move or add elements of the cotangent, without subtraction; return the rule.

        The formulas themselves then map the structural zeros of the cotangent (see `structural_zeros`).

        Parameters
        ----------
        when : bool or callable
            Whether this holds, or a predicate of the options.
        """
        self.maps_zeros = when
        return self

    def selects_elements(self, selection_mask: Formula | None = None, makes_zeros: bool | Callable[[Any], bool] = True) -> Rule:
        """Declare that the cotangents of unselected elements are structural zeros; return the rule.

        Parameters
        ----------
        selection_mask : callable, optional
            ``(*operands, **options)`` returns the mask of the selected elements of the first operand. By default the formulas
            themselves map structural zeros, as after `moves_elements`.
        makes_zeros : bool or callable
            Whether elements may be unselected, or a predicate of the node.

        Returns
        -------
        Rule
        """
        self.maps_zeros, self.makes_zeros, self.selection_mask = selection_mask is None, makes_zeros, selection_mask
        return self

    def with_formula(self, *texts: str) -> Rule:
        """Set the formula text of each derivative, which animations of a sweep show; return the rule.

        Parameters
        ----------
        *texts : str
            For each operand, an expression of NumPy functions and these letters: ``a``, ``b``, ``c`` are the operands, ``y`` is
            the result, ``n`` the number of elements of the first operand that contribute to each element of the result. The text
            is the factor of the cotangent, ``"cos(a)"``, or the whole contribution if it contains the cotangent ``g``:
            ``"g @ b.T"``.

        Returns
        -------
        Rule
            Texts are never evaluated in derivatives. A text is shown only where its value equals that of the formula.
        """
        self.texts = texts
        return self


# ----------------------------------------------------------------------------------------------- lookup

rules: dict[str, Rule] = {}  # by opname
rule_factories: dict[type, Callable[[Any], Rule]] = {}  # factories of rules, by the type of the callable
user_rules: dict[Callable[..., Any], Rule] = {}  # of users' callables without attributes; see `ops.callables`


def declare(rule: Rule, function: Callable[..., Any] | None = None) -> Rule:
    """Register a rule by its opname, or for one user function."""
    if function is None:
        rules[rule.opname] = rule
    elif not set_attached(function, "rule", rule):
        user_rules[function] = rule
    by_function.clear()
    return rule


ops.EXTERNAL_REGISTRIES["rule"] = user_rules.get, lambda function, rule: declare(rule, function)


class RulesByFunction(dict[Any, Rule]):
    """Rules by the function of a node; a missing one is looked up by opname."""

    def __missing__(self, function: Callable[..., Any]) -> Rule:
        own_rule = get_attached(function, "rule")
        if own_rule is not None:
            return own_rule  # type: ignore[no-any-return]  # not cached, so that the function can be freed
        if type(function) in rule_factories:
            rule = rule_factories[type(function)](function)
        else:
            opname = ops.opname_of(function)
            registered_rule = user_rules.get(function) or rules.get(opname)
            if registered_rule is None:
                raise TypeError(
                    f"{opname} has no derivative rule. Declare one with autodiff.rule, or treat its result as constant with "
                    "cg.stop_gradient"
                )
            rule = registered_rule
        self[function] = rule
        return rule


by_function = RulesByFunction()


def push(
    rule: Rule,
    tangents: Sequence[Any],
    out: Array,
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Return the tangent of an operation's output, given the tangents of its operands (None where zero)."""
    if rule.kind == "linear":
        count = len(primals) - len(function.counts) if isinstance(function, ops.Keyworded) else len(primals)
        dense_tangents = [_or_zeros(t, x) for t, x in zip(tangents[:count], primals[:count], strict=True)]
        return bind(function, (*dense_tangents, *primals[count:]), options)
    if type(rule.tangents) is SharedFormulas:
        return rule.tangents.formula(tangents, out, *primals, **options)
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if rule.kind == "multilinear":
            part = bind(function, (*primals[:position], tangent, *primals[position + 1 :]), options)
        else:
            if not len(rule.tangents):
                raise TypeError(f"{rule.opname} has no tangent rule. Declare one with autodiff.rule(..., tangents=...)")
            formula = rule.tangents[position]
            if formula is None:
                continue
            part = formula(tangent, out, *primals, **options)
        total = part if total is None else _add(total, part)
    return total


def _or_zeros(tangent: Array, primal: NDArray[Any]) -> Any:
    return np.zeros(np.shape(primal), np.result_type(primal, np.float16)) if tangent is None else tangent


def _add(a: Array, b: Array) -> Any:
    """Return the sum of two tangents, element by element for a multi-output operation."""
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))
    return a + b


def rule_with_keywords(rule: Rule, function: ops.Keyworded) -> Rule:
    """Return the rule of a call whose last operands were passed by keyword; formulas receive those as options."""
    parameters = ops.operand_names(function.function)

    def with_options(formulas: Sequence[Formula | None]) -> Sequence[Formula | None]:
        def call_formula(position: int, cotangent: object, out: object, *operands: object, **options: object) -> Any:
            num_positional = len(operands) - len(function.names)
            name = function.names[position - num_positional] if position >= num_positional else ""
            index = parameters.index(name) if name in parameters else position
            formula = formulas[index] if index < len(formulas) and (not name or name in parameters) else None
            if formula is None and position >= num_positional:
                raise TypeError(f"{rule.opname}: the derivative with respect to {name} is unknown. Pass a plain value")
            if formula is None:
                return np.zeros_like(out if formulas is rule.tangents else operands[position])
            return formula(
                cotangent, out, *operands[:num_positional], **function.keyword_values(operands[num_positional:]), **options
            )

        return VariadicFormulas(call_formula)

    wrapped = Rule(rule.opname, rule.kind, with_options(rule.formulas), with_options(rule.tangents) if len(rule.tangents) else ())
    wrapped.maps_zeros, wrapped.makes_zeros, wrapped.selection_mask = rule.maps_zeros, rule.makes_zeros, rule.selection_mask
    return wrapped.batchable() if rule.is_batchable else wrapped


def _output_rule(function: ops.Output) -> Rule:
    """Return the rule of one output of a multi-output operation, which collects the cotangents of all outputs."""
    index = function.index
    rule = Rule("output", "linear", [lambda cotangent, out, outputs: OutputCotangents({index: cotangent})], ()).moves_elements()
    return rule.batched(
        lambda position, g, out, outputs: OutputCotangents({index: g}), lambda tangents, out, outputs: tangents[0][index]
    )


rule_factories[ops.Configured] = lambda function: by_function[function.function]
rule_factories[ops.Keyworded] = lambda function: rule_with_keywords(by_function[function.function], function)
rule_factories[ops.Output] = _output_rule
