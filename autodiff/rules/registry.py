"""Rules: how a derivative is declared, and how it is found.

A rule says, for each operand, how the adjoint of the output becomes a contribution to the operand's adjoint::

    formula(adjoint, out, *operands, **options) -> contribution

Formulas are pure mathematics on arrays (or on nodes, for higher orders). They do not undo broadcasting, and do
not convert dtypes; `broadcasting.conform` does both, once, for all of them. A formula of None says that the
derivative is zero.

The kind of a rule gives its tangent rule for nothing:

============  ==========================================================================================
elementwise   the Jacobian is diagonal: the same formula, fed the tangent
linear        linear in all its operands together: the operation itself, applied to the tangents
multilinear   linear in each operand: the operation with one operand replaced by its tangent, summed
reduction     ``out = sum(weight * x)`` to first order: one formula, the weights, serves both modes
gather        ``out = x.ravel()[positions]``: one formula, the positions, serves both modes
general       the tangent formulas are written beside the rule, one for each operand
============  ==========================================================================================
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.graph import INERT, Joint, Node, record, value_at
from compgraph.graph.context import apart, apart_once
from compgraph.operations import keep, kept

from .accumulate import DEFERRED, Parts, scatter
from .broadcasting import as_adjoint, conform, spread
from .past_values import seen_by

Formula = Callable[..., Any]


class Rule:
    """The derivative of one operation.

    Attributes
    ----------
    opname : str
        The operation.
    kind : str
        One of the kinds above.
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
        How the rule takes many adjoints, and many tangents, together; see `batched`.
    followed : bool
        Whether a formula that is recorded for one direction can be passed by all others: it consists of NumPy's functions,
        and takes no decision by the numbers of the adjoint or tangent.
    texts : sequence of str
        For each operand, its derivative in words of mathematics; see `said`.
    carries, begins, part : bool or callable, bool or callable, callable or None
        How supports of adjoints pass; see `moving` and `selecting`.
    """

    weights: Sequence[Formula | None] = ()
    initial: int | None = None
    positions: Formula | None = None
    batch: tuple[Formula | None, Formula | None] = (None, None)
    followed: bool = False
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
        if isinstance(node.function, operations.Output):
            made_by = node.args[0]
            adjoint = Parts({node.function.index: adjoint}).settle(made_by)
        if made_by.function is None or by_function[made_by.function].opname != self.opname:
            raise ValueError(f"{self.opname}_grad was given a node of {node.opname or 'no operation'}")
        formulas = by_function[made_by.function].formulas
        values, out = plain_operands(made_by), plain_result(made_by)
        found: list[Any] = [None] * operations.operand_count(made_by.function, len(values))
        for position in made_by.edges[: len(found)]:
            operand = made_by.args[position]
            formula = None if operand.__class__ in INERT else formulas[position]
            if formula is not None:
                contribution = formula(adjoint, out, *values, **made_by.options)
                if contribution.__class__ in DEFERRED:
                    contribution = contribution.settle(operand)
                found[position] = conform(contribution, operand.plain)
        return found if len(found) > 1 else [*found, None]

    def tangent(self, *formulas: Formula | None) -> Rule:
        """Give the tangent formulas of a general rule; returns the rule."""
        self.tangents = formulas
        return self

    def batched(self, pull: Formula | None = None, push: Formula | None = None) -> Rule:
        """Say how the rule takes many adjoints or tangents together, stacked along a first axis; returns the rule.

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

    def following(self) -> Rule:
        """Say that all directions may follow a formula that is recorded for one; returns the rule."""
        self.followed = True
        return self

    def one_by_one(self) -> Rule:
        """Say that formulas look at the numbers of the adjoint or tangent, so that none follows another; returns the rule."""
        self.followed = False
        return self

    def moving(self, when: bool | Callable[..., bool] = True) -> Rule:
        """Say that formulas move or add up the elements of the adjoint, and subtract none; returns the rule.

        Where the adjoint has structural zeros (see `structural`), the formulas themselves tell where contributions do.

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


class Variadic(Sequence[Formula | None]):
    """Formulas of an operation with any number of operands, made from one that takes the position too.

    The first `fixed` operands have no derivative.
    """

    def __init__(self, formula: Formula, fixed: int = 0) -> None:
        self.formula = formula
        self.fixed = fixed

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda adjoint, out, *operands, **options: self.formula(position, adjoint, out, *operands, **options)


class Shared(Variadic):
    """Formulas of an operation with any number of operands, made from one that answers for several operands in one call.

    Asked one by one, each call would be handed all n operands, and find out anew where its own stands: n * n steps.

    Parameters
    ----------
    formula : callable
        ``(positions, adjoint, out, *operands, **options)`` returns a list with one contribution for each position. (Of
        tangents, ``(tangents, out, *operands, **options)`` returns the tangent of the output; see `tangents.push`.)
    fixed : int
        How many operands, the first, have no derivative.
    stacked : bool
        Whether the adjoint may have an axis of directions before its own.
    """

    def __init__(self, formula: Formula, fixed: int = 0, stacked: bool = False) -> None:
        super().__init__(formula, fixed)
        self.stacked = stacked

    def __getitem__(self, position: Any) -> Any:
        if position < self.fixed:
            return None
        return lambda adjoint, out, *operands, **options: self.formula([position], adjoint, out, *operands, **options)[0]

    def answers(self, node: Any, needed: Any, adjoint: Any, out: Any, operands: Any) -> Answers:
        """What stands for these formulas while a sweep is at one node; the formula is asked once.

        Parameters
        ----------
        node : Node or Joint
            Where the sweep is.
        needed : container of Node
            The operands it asks for.
        adjoint, out, operands
            What the formula is given.
        """
        args = node.args
        positions = [p for p in node.edges if p >= self.fixed and args[p] in needed]
        found = self.formula(positions, adjoint, out, *operands, **node.options) if positions else []
        return Answers(dict(zip(positions, found, strict=True)))


class Answers:
    """The contributions of one node, in the place of formulas: each is handed out once."""

    __slots__ = ("_asked", "_found")

    def __init__(self, found: dict[int, Any]) -> None:
        self._found = found
        self._asked = -1

    def __getitem__(self, position: int) -> Any:
        if position not in self._found:
            return None
        self._asked = position
        return self

    def __call__(self, adjoint: Any, out: Any) -> Any:
        """The contribution to the operand that was looked up last."""
        return self._found.pop(self._asked)


def plain_operands(node: Any) -> list[Any]:
    """The operands of a node as plain arrays, as they were when it was computed."""
    return [seen_by(node, a) for a in node.args]


def plain_result(node: Any) -> Any:
    """What a node or joint was when it was computed."""
    return value_at(node, node.tick + 0.5) if isinstance(node, Node) else node.plain


# --------------------------------------------------------------------------------------- declarations

rules: dict[str, Rule] = {}
makers: dict[type, Callable[[Any], Rule]] = {}  # for kinds of function of which each has a rule of its own


def declare(rule: Rule, function: Callable[..., Any] | None = None) -> Rule:
    """Enter a rule under its opname; one of a user's function is for that function alone, which keeps it."""
    if function is None:
        rules[rule.opname] = rule
    elif not keep(function, "rule", rule):
        users[function] = rule
    by_function.clear()
    return rule


def elementwise(opname: str, *formulas: Formula | None) -> Rule:
    """Declare an operation whose Jacobian with respect to each operand is diagonal."""
    return declare(Rule(opname, "elementwise", formulas, formulas))


def linear(opname: str, *formulas: Formula | None, shared: Formula | None = None) -> Rule:
    """Declare an operation that is linear in all its operands together; see `Shared`."""
    return declare(Rule(opname, "linear", Shared(shared, stacked=True) if shared else formulas, ()).following())


def multilinear(opname: str, *formulas: Formula | None, variadic: Formula | None = None) -> Rule:
    """Declare an operation that is linear in each of its operands."""
    return declare(Rule(opname, "multilinear", Variadic(variadic) if variadic else formulas, ()).following())


def reduction(opname: str, *weights: Formula | None, initial: Formula | None = None) -> Rule:
    """Declare a reduction along ``axis`` by its partial derivatives.

    For each operand, ``weights(out, *operands, axis=..., ...)`` returns the partial derivatives of the output with
    respect to each element of the operand, in a form that broadcasts against it, or None where all are one; `out`
    keeps the reduced axes, with length one. `initial` does so for the number that the reduction begins with, which is
    the second operand.
    """
    rule = Rule(opname, "reduction", (), ())
    pairs = [_reduction_formulas(rule, w) if w else (None, None) for w in weights]
    if initial is not None:
        start = _initial_formula(initial)
        pairs.insert(1, (start, start))
    rule.formulas, rule.tangents = [f for f, _ in pairs], [t for _, t in pairs]
    rule.weights = weights
    if initial is not None:
        rule.weights, rule.initial = (weights[0], initial, *weights[1:]), 1
    return declare(rule)


def _initial_formula(weights: Formula) -> Formula:
    """The formula of the number a reduction begins with, which is an operand of each result."""

    def formula(g: Any, out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
        factor = weights(spread(out, x, axis, keepdims), x, *others, axis=axis, **options)
        return np.broadcast_to(g, out.shape) if factor is None else g * np.reshape(factor, out.shape)

    return formula


def _reduction_formulas(rule: Rule, weights: Formula) -> tuple[Formula, Formula]:
    def formula(adjoint: Any, out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
        kept = spread(out, x, axis, keepdims)
        factor = weights(kept, x, *others, axis=axis, **options)
        adjoint = spread(adjoint, x, axis, keepdims)
        return adjoint if factor is None else adjoint * factor

    def tangent(tangent: Any, out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
        kept = spread(out, x, axis, keepdims)
        factor = weights(kept, x, *others, axis=axis, **options)
        weighted = tangent if factor is None else weighed(rule, tangent, factor, x, *others, axis=axis, **options)
        return np.sum(weighted, axis=axis, keepdims=bool(keepdims))

    return formula, tangent


def weighed(rule: Rule, tangent: Any, factor: Any, *operands: Any, **options: Any) -> Any:
    """The tangent of what is reduced times the partial derivatives; of elements that take no part zero, whatever theirs is."""
    weighted = tangent * factor
    if not rule.begins:
        return weighted
    part: Any = (factor != 0 if np.ndim(factor) else True) if rule.part is None else rule.part(*operands, **options)
    return weighted if part is True else np.where(part, weighted, 0)


def moved(function: Callable[..., Any]) -> Formula:
    """The positions of an operation that moves elements whatever their values: what it does to 0, 1, 2, ..."""

    def positions(out: Any, x: Any, *others: Any, **options: Any) -> Any:
        return record(function, (np.arange(math.prod(x.shape)).reshape(x.shape), *others), options)

    return positions


def gather(opname: str, positions: Formula) -> Rule:
    """Declare an operation each of whose results is an element of its first operand, or a zero.

    ``positions(out, x, *others, **options)`` returns where in ``x.ravel()`` each element of the result comes from, in
    the shape of the result; -1 where it comes from nowhere.
    """

    def formula(adjoint: Any, out: Any, x: Any, *others: Any, **options: Any) -> Any:
        places = np.ravel(positions(out, x, *others, **options))
        there = places >= 0
        flat = record(scatter, (np.ravel(x), np.ravel(adjoint)[there], places[there]), {"layout": (1,)})
        return np.reshape(flat, x.shape)

    def tangent(tangent: Any, out: Any, x: Any, *others: Any, **options: Any) -> Any:
        places = positions(out, x, *others, **options)
        if not x.size:
            return np.zeros_like(out)
        return np.where(places >= 0, np.ravel(tangent)[places], 0)

    rule = Rule(opname, "gather", (formula,), (tangent,))
    rule.positions = positions
    return declare(rule.selecting())


def general(opname: str, *formulas: Formula | None, shared: Formula | None = None, fixed: int = 0) -> Rule:
    """Declare any other operation; its tangent formulas follow by ``.tangent(...)``. See `Shared`."""
    return declare(Rule(opname, "general", Shared(shared, fixed, True) if shared else formulas, ()).following())


# -------------------------------------------------------------------------------------------- look-up


users: dict[Callable[..., Any], Rule] = {}  # rules of users' callables that cannot keep them themselves; see `attached`


class ByFunction(dict[Any, Rule]):
    """Rules by the function a node carries, found by opname the first time."""

    def __missing__(self, function: Any) -> Rule:
        own = kept(function, "rule")
        if own is not None:
            return own  # type: ignore[no-any-return]  # and do not hold it
        if function.__class__ in makers:
            rule = makers[function.__class__](function)
        elif isinstance(function, operations.Configured):
            rule = self[function.function]
        elif isinstance(function, operations.Keyworded):
            rule = with_keywords(self[function.function], function)
        elif isinstance(function, operations.Output):
            rule = _output_rule(function.index)
        else:
            opname = operations.opname_of(function)
            found = users.get(function) or rules.get(opname)
            if found is None:
                raise TypeError(
                    f"{opname} has no derivative rule; declare one with autodiff.rule, or keep the derivative from "
                    "passing with cg.stop_gradient"
                )
            rule = found
        self[function] = rule
        return rule


def with_keywords(rule: Rule, function: operations.Keyworded) -> Rule:
    """The rule of a call whose last operands were given by keyword; those are options to the formulas."""
    parameters = operations.operand_names(function.function)

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
    return made.following() if rule.followed else made


def _output_rule(index: int) -> Rule:
    """The rule of one output of several: its adjoint is gathered with those of the others."""
    rule = Rule("output", "linear", [lambda adjoint, out, outputs: Parts({index: adjoint})], ()).moving()
    return rule.batched(lambda position, g, out, outputs: Parts({index: g}), lambda tangents, out, outputs: tangents[0][index])


by_function = ByFunction()


# ------------------------------------------------------------------------------------- special points


_AS_EVER = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


class Work:
    """A context in which rules run: what goes wrong says in which operation, and where the user called it.

    Floating-point errors warn; kinds of error that the user has set to be ignored or raised (``numpy.errstate``) stay so.

    Parameters
    ----------
    function : callable, optional
        What is computed, where there is no node.
    met : list, optional
        Where errors wait until they are told of, with the operations they were met in.
    raising : bool
        Whether those wait too that are to be raised.
    log : list, optional
        Where a sweep puts, for each contribution in their order, the tick of the node that it is; 0 if it is none of its own.

    Attributes
    ----------
    at : Node, Joint or None
        The operation whose rule runs.
    """

    __slots__ = ("_errstate", "_raised", "at", "function", "log", "met")

    def __init__(
        self, function: Any = None, met: list[Any] | None = None, raising: bool = False, log: list[int] | None = None
    ) -> None:
        self.at: Any = None
        self.function, self.met, self.log = function, met, log
        set_to = np.geterr()
        self._raised: Sequence[str] = ()
        if set_to == _AS_EVER:  # what follows takes as long as a small rule
            self._errstate: Any = np.errstate(call=self._warn, divide="call", over="call", invalid="call")
            return
        self._raised = [kind for kind, action in set_to.items() if action == "raise"] if raising else ()
        kinds: dict[str, Any] = {k: "call" for k, action in set_to.items() if action == "warn" or k in self._raised}
        self._errstate = np.errstate(call=self._warn, **kinds)

    def __enter__(self) -> Work:
        self._errstate.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._errstate.__exit__(kind, error, traceback)
        if isinstance(error, Exception) and self.at is not None:
            operands = [a for a in self.at.args if not isinstance(a, Joint)]
            shapes = ", ".join(str(np.shape(a.plain if isinstance(a, Node) else a)) for a in operands)
            error.add_note(f"in the derivative of {self.at.opname}, whose operands have shapes {shapes}{self._place()}")
        self.at = self._errstate = None  # it refers to this object, and no graph should wait for the garbage collector

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function within this context."""
        return apart(self._run, function, args)

    def run_once(self, function: Callable[..., Any], *args: Any) -> Any:
        """The same for a single operation."""
        return apart_once(self._run, function, args)

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with self:
            return function(*args)

    @property
    def invalid(self) -> bool:
        """Whether an invalid operation was met."""
        return bool(self.met) and any(error.startswith("invalid") for error, _ in self.met)  # type: ignore[union-attr]

    def tell(self) -> None:
        """Warn of, or raise, the errors that wait."""
        if not self.met:
            return
        for error, at in self.met:
            self.at = at
            if any(error.startswith(kind) for kind in self._raised):
                raise FloatingPointError(self._told(error))
            warnings.warn(self._told(error), RuntimeWarning, stacklevel=4)
        self.at = None

    def _place(self) -> str:
        line = self.at.line if self.at is not None else None
        return f"\n{line}" if line else ""

    def _warn(self, error: str, flag: int) -> None:
        if self.met is not None:
            self.met.append((error, self.at))
        else:
            warnings.warn(self._told(error), RuntimeWarning, stacklevel=2)

    def _told(self, error: str) -> str:
        opname = self.at.opname if self.at is not None else operations.opname_of(self.function)
        if self.at is not None and "of" in self.at.options:  # it is a step in the derivative of another operation
            opname = f"the derivative of {self.at.options['of']}"
        return (
            f"{error} in the derivative of {opname}: it is infinite or undefined at this value. Keep the value away from the "
            f"point, or leave it out of what is differentiated: np.where(safe, f(x), 0), f(x)[safe]{self._place()}"
        )
