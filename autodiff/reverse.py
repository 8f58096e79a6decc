"""Breadth-first reverse accumulation.

`collect` walks the graph from the output, level by level, and orders what it finds by descending creation tick:
operands are older than what is computed from them, so when a node is reached all its adjoints have arrived.
`sweep` then asks the rule of each node for the contributions to its operands. Neither knows any operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from sys import getrefcount
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.nodes import INERT, Joint, Node, VariableNode, attach, describe, recording, variable

from . import numeric
from .broadcasting import conform, unbroadcast
from .deferred import DEFERRED
from .registry import by_function, naming_errors, plain_operands

_by_tick = attrgetter("tick")


def collect(output: Any, stop: Iterable[Any] = ()) -> list[Any]:
    """All nodes that `output` was computed from, itself included, youngest first.

    Parameters
    ----------
    output : Node
        Where to start.
    stop : iterable of Node
        Nodes whose operands are not looked at.

    Raises
    ------
    ValueError
        If a variable was updated in place after it was used: the value its reader saw is gone.
    """
    stop = frozenset(stop)
    found = [output]
    seen = {output}
    add, append = seen.add, found.append
    for node in found:
        if stop and node in stop:
            continue
        args = node.args
        for position in node.edges:
            operand = args[position]
            if operand not in seen:
                add(operand)
                append(operand)
            if operand.tick > node.tick:
                raise _stale(operand, node)
    found.sort(key=_by_tick, reverse=True)
    return found


def _stale(operand: Any, node: Any) -> ValueError:
    return ValueError(
        f"the {describe(operand)} was updated in place after {node.opname} had used its old value; "
        "compute the output again before asking for its gradient"
    )


def sweep(nodes: list[Any], output: Any, seed: Any, wanted: set[Any], create_graph: bool) -> dict[Any, Any]:
    """Pass adjoints from `output` back through `nodes`; return those of the wanted nodes.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it.
    output : Node
        Where the sweep starts.
    seed : array or Node
        The adjoint of `output`.
    wanted : set
        The nodes whose adjoints are kept. Only nodes that depend on one of them are swept.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    """
    needed = _depending_on(nodes, wanted)
    operands_of = _node_operands if create_graph else plain_operands
    adjoints: dict[Any, Any] = {output: seed} if output in needed else {}
    found: dict[Any, Any] = {}
    at_work: list[Any] = [None]
    with naming_errors(at_work):
        for node in nodes:
            adjoint = adjoints.pop(node, None)
            if adjoint is None:
                continue
            if adjoint.__class__ in DEFERRED:
                adjoint = adjoint.settle(node)
            if node in wanted:
                found[node] = adjoint
            args = node.args
            if not args:
                continue
            at_work[0] = function = node.function
            formulas = by_function[function].formulas
            options = node.options
            out = _node_value(node) if create_graph else node.plain
            operands = operands_of(node)
            for position in node.edges:
                operand = args[position]
                if operand not in needed:
                    continue
                formula = formulas[position]
                if formula is None:
                    continue
                contribution = formula(adjoint, out, *operands, **options)
                if contribution.__class__ not in DEFERRED:
                    plain = operand.plain
                    if contribution.dtype is not plain.dtype or contribution.shape != plain.shape:
                        contribution = conform(contribution, plain)
                earlier = adjoints.get(operand)
                adjoints[operand] = contribution if earlier is None else _sum(earlier, contribution)
                del contribution, earlier
    return found


def _sum(earlier: Any, contribution: Any) -> Any:
    """The sum of two contributions, in place where one is a fresh buffer that nobody else holds."""
    # References: the caller's name, ours, and the call's; the earlier one is also in the dict of adjoints.
    if contribution.__class__ is np.ndarray and getrefcount(contribution) == 3 and contribution.base is None:
        contribution += earlier
        return contribution
    fresh = earlier.__class__ is np.ndarray and getrefcount(earlier) == 4 and earlier.base is None
    if fresh and contribution.__class__ not in DEFERRED:
        earlier += contribution
        return earlier
    return earlier + contribution


def _node_operands(node: Any) -> list[Any]:
    """The operands of a node in a form whose use is recorded."""
    return [_node_value(a) if a.__class__ is Joint else a for a in node.args]


def _node_value(node: Any) -> Any:
    """A node as itself; the outputs of an operation with several, as nodes."""
    if node.__class__ is not Joint:
        return node
    return tuple(attach(part, operations.output(k), (node,)) for k, part in enumerate(node.plain))


def _depending_on(nodes: list[Any], wanted: set[Any]) -> set[Any]:
    """The nodes an adjoint has to pass on its way to a wanted one."""
    needed: set[Any] = set()
    add = needed.add
    for node in reversed(nodes):
        if node.__class__ in INERT:
            continue
        if node in wanted:
            add(node)
            continue
        args = node.args
        for position in node.edges:
            if args[position] in needed:
                add(node)
                break
    return needed


# ---------------------------------------------------------------------------------------- public face


class Gradients(Mapping[str, Any]):
    """Adjoints of variables, found by the variable itself or by its name. Iterates over names."""

    def __init__(self, adjoints: dict[Node, Any], opname: str | None) -> None:
        self._adjoints = adjoints
        self._output = f"the result of {opname}" if opname else "the variable"
        self._named: dict[str, Node | None] = {}
        for node in adjoints:
            self._named[node.name] = None if node.name in self._named else node

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Node):
            if key in self._adjoints:
                return self._adjoints[key]
            raise KeyError(f"{self._output} does not depend on the {describe(key)}, or its gradient was not asked for")
        if key not in self._named:
            known = ", ".join(map(repr, self._named)) or "none"
            raise KeyError(f"{self._output} depends on no variable called {key!r}; known: {known}")
        node = self._named[key]
        if node is None:
            raise KeyError(f"several variables are called {key!r}; ask by the variable itself")
        return self._adjoints[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __contains__(self, key: object) -> bool:
        return key in self._adjoints if isinstance(key, Node) else key in self._named

    def __repr__(self) -> str:
        return f"Gradients({ {node.name: adjoint for node, adjoint in self._adjoints.items()} !r})"


def gradient(node: Any, wrt: Any = None, adjoint: Any = None, create_graph: bool = False) -> Gradients:
    """Derivatives of a node with respect to its variables, by reverse accumulation.

    Parameters
    ----------
    node : Node
        What to differentiate. If it is not a scalar, the derivatives are those of the sum of its elements, unless
        `adjoint` weighs them.
    wrt : Node, str, or sequence of them, optional
        The variables asked for, themselves or by name; by default all that `node` depends on. Any node of the graph
        may be asked for.
    adjoint : array_like, optional
        The adjoint of `node` to start from, of its shape; ones by default.
    create_graph : bool
        Whether the derivatives are nodes themselves, that can be differentiated again.

    Returns
    -------
    Gradients
        A mapping from variables, and from their names, to arrays of their shape and dtype.

    Raises
    ------
    TypeError
        If `node` is not a node, or an operation on the way has no derivative.
    ValueError
        If `node` does not depend on what is asked for, two variables share a name that is asked for, `adjoint` has
        another shape, or a variable was updated in place after it was used.

    Notes
    -----
    Reverse accumulation: A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008, ch. 3. For complex
    variables see `autodiff`.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0, "x")
    >>> y = cg.variable([1.0, 2.0], "y")
    >>> g = gradient(x * x * y)
    >>> g[x], g["y"]
    (np.float64(18.0), array([9., 9.]))
    """
    nodes = collect(_differentiable(node))
    wanted = _wanted(node, nodes, wrt)
    seed = _seed(node, adjoint, create_graph)
    if create_graph:
        token = recording.set(True)
        try:
            found = sweep(nodes, node, seed, set(wanted), True)
            return Gradients({v: found[v] if v in found else connected_zeros(v, seed) for v in wanted}, node.opname)
        finally:
            recording.reset(token)
    found = sweep(nodes, node, seed, set(wanted), False)
    return Gradients(owned(found, wanted, adjoint), node.opname)


def gradients(node: Any, nodes: Sequence[Any]) -> list[Any]:
    """Derivatives of a node with respect to others, as nodes of the graph themselves.

    Parameters
    ----------
    node : Node
        What to differentiate; if it is not a scalar, the sum of its elements.
    nodes : sequence of Node
        What to differentiate with respect to.

    Returns
    -------
    list of Node
        One for each of `nodes`, in order.

    Raises
    ------
    TypeError, ValueError
        As `gradient` does.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0, "x")
    >>> (dx,) = gradients(x**3, [x])
    >>> (d2x,) = gradients(dx, [x])
    >>> print(dx, d2x)
    27.0 18.0
    """
    found = gradient(node, nodes, create_graph=True)
    return [found[n] for n in nodes]


def _differentiable(node: Any) -> Any:
    if not isinstance(node, Node):
        raise TypeError(
            f"gradient needs a node, not a plain {type(node).__name__}: the value has lost its graph, was computed "
            "under no_graph, or never depended on a variable"
        )
    if node.level:
        raise TypeError("gradient cannot start from a value that carries tangents; use autodiff.grad inside jvp")
    if node.dtype.kind not in "fc":
        raise TypeError(f"the {describe(node)} has no derivative: it is not floating or complex")
    return node


def _wanted(node: Any, nodes: list[Any], wrt: Any) -> list[Any]:
    """The nodes asked for, each of which must be in the graph."""
    if wrt is None:
        return [n for n in reversed(nodes) if n.__class__ is VariableNode]
    asked: Iterable[Any] = [wrt] if isinstance(wrt, (str, Node)) else wrt
    present = set(nodes)
    found: list[Any] = []
    for key in asked:
        if isinstance(key, str):
            named = [n for n in nodes if n.__class__ is VariableNode and n.name == key]
            if len(named) > 1:
                raise ValueError(f"{len(named)} variables of the graph are called {key!r}; ask by the variable itself")
            if not named:
                raise ValueError(f"the {describe(node)} depends on no variable called {key!r}")
            found += named
        elif not isinstance(key, Node):
            raise TypeError(f"wrt takes nodes and names, not {type(key).__name__}")
        elif key not in present:
            raise ValueError(f"the {describe(node)} does not depend on the {describe(key)}")
        else:
            found.append(key)
    return found


def _seed(node: Any, adjoint: Any, create_graph: bool) -> Any:
    """The adjoint to start from; with `create_graph` a node, which keeps what follows connected to the graph."""
    if adjoint is None:
        if create_graph:
            with recording_on():
                return np.ones_like(node)
        return np.ones_like(node.plain)[()]
    given = adjoint if isinstance(adjoint, Node) and create_graph else np.asarray(adjoint)
    if given.shape != node.shape:
        raise ValueError(f"the adjoint has shape {given.shape}, the {describe(node)} another")
    given = conform(given, node)
    if create_graph and not isinstance(given, Node):
        with recording_on():
            return np.ones_like(node) * given
    return given


@contextmanager
def recording_on() -> Iterator[None]:
    """Record inside, whatever is around."""
    token = recording.set(True)
    try:
        yield
    finally:
        recording.reset(token)


def connected_zeros(node: Any, seed: Any) -> Any:
    """Zeros like `node` that still belong to the graph of `seed`."""
    return conform(np.zeros_like(node) + 0 * np.sum(seed), node)


def owned(found: dict[Any, Any], wanted: Iterable[Any], seed: Any = None) -> dict[Any, Any]:
    """The adjoints found, as arrays that share memory with nothing; zeros where none arrived."""
    results: dict[Any, Any] = {}
    taken: set[int] = {id(seed)}
    for node in wanted:
        adjoint = found.get(node)
        if adjoint is None:
            adjoint = np.zeros_like(node.plain)
        elif adjoint.ndim and (adjoint.base is not None or id(adjoint) in taken or getrefcount(adjoint) > 3):
            adjoint = adjoint.copy()
        taken.add(id(adjoint))
        results[node] = adjoint if adjoint.ndim else adjoint[()]
    return results


def check_gradient(
    f: Any, args: Sequence[Any], gradients: Sequence[Any] | None = None, rtol: float = 1e-4, atol: float = 1e-6
) -> bool:
    """Whether gradients agree with central differences.

    Parameters
    ----------
    f : callable
        A function of the arguments that returns a number, or an array whose sum is taken. It is called with plain
        arrays, and with variables if `gradients` is None.
    args : sequence of array_like
        The point; integers become floats.
    gradients : sequence of array_like, optional
        The gradient with respect to each argument, to be checked; computed by reverse accumulation if not given.
    rtol, atol : float
        How far they may be apart, relative to the size of each gradient and absolutely.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If the number of gradients, or the shape of one, is not that of the arguments.

    See Also
    --------
    autodiff.check_grads : says which operation is off, in both modes and any order.

    Examples
    --------
    >>> check_gradient(lambda x, y: x * y, [2.0, 3.0], [3.0, 2.0])
    True
    >>> check_gradient(lambda x, y: x * y, [2.0, 3.0], [3.0, 2.1])
    False
    """
    args = [numeric.plain(a) for a in args]
    if gradients is None:
        variables = [variable(a) for a in args]
        found = gradient(f(*variables), variables)
        gradients = [found[v] for v in variables]
    if len(gradients) != len(args):
        raise ValueError(f"{len(args)} arguments have {len(args)} gradients, not {len(gradients)}")
    close = True
    for position, (given, expected) in enumerate(zip(gradients, numeric.gradient(f, args), strict=True)):
        if np.shape(given) != expected.shape:
            raise ValueError(f"gradient {position} has shape {np.shape(given)}, argument {position} has {expected.shape}")
        size = np.max(np.abs(expected), initial=0)
        close = close and bool(np.all(np.abs(np.asarray(given) - expected) <= atol + rtol * size))
    return close


def unbroadcast_adjoint(node: Any, adjoint: Any) -> Any:
    """Undo broadcasting: sum an adjoint over the axes along which the value of `node` was repeated.

    Parameters
    ----------
    node : Node or numpy.ndarray
        The operand.
    adjoint : array_like or Node
        Its adjoint, of a shape that the operand's broadcasts to.

    Returns
    -------
    array or Node
        Of the shape of `node`.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> unbroadcast_adjoint(cg.variable([[1.0], [2.0]]), np.ones((3, 2, 4)))
    array([[12.],
           [12.]])
    """
    adjoint = adjoint if isinstance(adjoint, np.ndarray) else np.asarray(adjoint)
    return unbroadcast(adjoint, np.shape(node))
