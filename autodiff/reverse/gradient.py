"""Gradients and Jacobians of recorded graphs, by reverse accumulation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.context import recording_on, run_isolated
from compgraph.graph import to_values
from compgraph.guards import format_leaks, ignoring_guards, note_input_shapes, recent_leaks
from compgraph.values import Node, Origin, Value, VariableNode, describe, next_sequence_number, require_computed, require_history

from ..batching import BatchNode, is_batch
from ..forward import as_real_inputs
from ..numeric import require_differentiable
from ..rules import conform, unbroadcast
from .leak_warnings import leaks_about, warn_of_leaks
from .linearization import Linearization
from .sweep import collect, connected_zeros, owned_arrays, owned_nodes, sweep


class Gradients(Mapping[str, Any]):
    """Cotangents of variables, by the variable itself or its name. Iterates over names."""

    def __init__(self, cotangents: dict[Value, Any], opname: str | None) -> None:
        if not isinstance(cotangents, Mapping) or not all(isinstance(node, Value) for node in cotangents):
            raise TypeError(
                "Gradients takes a mapping from variables to cotangents, which autodiff.reverse.gradient returns. Call gradient"
            )
        self._cotangents = dict(cotangents)
        self._output = f"the result of {opname}" if opname else "the variable"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; pickles of version 0.1 contain `_adjoints`."""
        self.__dict__.update(state)
        if "_adjoints" in state:
            self._cotangents = self.__dict__.pop("_adjoints")

    @functools.cached_property
    def _nodes_by_name(self) -> dict[str, Value | None]:
        """The variables by name, None for an ambiguous name; computed on demand, because most lookups are by variable."""
        nodes_by_name: dict[str, Value | None] = {}
        for node in self._cotangents:
            nodes_by_name[node.name] = None if node.name in nodes_by_name else node
        return nodes_by_name

    def __getitem__(self, key: object) -> Any:
        if isinstance(key, Value):
            if key in self._cotangents:
                return self._cotangents[key]
            raise KeyError(_missing_gradient(self._output, key))
        known_names = ", ".join(map(repr, self._nodes_by_name)) or "none"
        if not isinstance(key, Hashable) or (key not in self._nodes_by_name and not isinstance(key, str)):
            raise KeyError(
                f"gradients are indexed by a variable or its name, not by an object of type {type(key).__name__}; known: "
                f"{known_names}"
            )
        if key not in self._nodes_by_name:
            raise KeyError(f"{self._output} depends on no variable called {key!r}; known: {known_names}")
        node = self._nodes_by_name[key]
        if node is None:
            raise KeyError(f"several variables are called {key!r}; use the variable itself")
        return self._cotangents[node]

    def _raise_for_arithmetic(self, other: Operand | None = None) -> NoReturn:
        raise TypeError("Gradients is a mapping, without arithmetic. Take the gradient of one variable: w -= 0.1 * gradients[w]")

    __array_ufunc__ = None  # arrays leave their operators to these methods
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _raise_for_arithmetic

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes_by_name)

    def __len__(self) -> int:
        return len(self._nodes_by_name)

    def __contains__(self, key: object) -> bool:
        return key in self._cotangents if isinstance(key, Value) else key in self._nodes_by_name

    def map_jointly(self, transform: Callable[[list[Any]], list[Any]]) -> Gradients:
        """Return the gradients of the same variables after ``transform(cotangents)``, a function of the list of all."""
        new_gradients = Gradients(dict(zip(self._cotangents, transform(list(self._cotangents.values())), strict=True)), None)
        new_gradients._output = self._output
        return new_gradients

    def __repr__(self) -> str:
        return f"Gradients({ {node.name: cotangent for node, cotangent in self._cotangents.items()}!r})"


def _missing_gradient(output: str, node: Value) -> str:
    """Return the message for a node without a gradient."""
    if node.function is not None:
        line = f" ({node.line})" if node.line else ""
        return (
            f"the {describe(node)} is not a variable, and its gradient was not requested{line}. `w = w - step` binds w to a new "
            "node: write `w -= step` to update a variable. The derivative with respect to a node is gradient(loss, node)"
        )
    advice = "gradient(loss, variables, unused='zero') gives zeros" if isinstance(node, VariableNode) else "Make it a cg.variable"
    return f"{output} does not depend on the {describe(node)}, or its gradient was not requested. {advice}"


@ops.reject_foreign_options(
    {
        "retain_graph": "a graph lives as long as its nodes",
        "grad_outputs": "use adjoint=",
        "inputs": "use wrt=",
        "allow_unused": "use unused='zero'",
        "unconnected_gradients": "use unused='zero'",
    }
)
def gradient(node: Any, wrt: Any = None, adjoint: Any = None, create_graph: bool = False, unused: str = "raise") -> Gradients:
    """Differentiate a node with respect to its variables, by reverse accumulation.

    Parameters
    ----------
    node : Node
        The node to differentiate. If it is not a scalar, the derivatives are those of the sum of its elements, weighted by
        `adjoint`.
    wrt : Node, str, or sequence of them, optional
        The variables, or their names; by default all that `node` depends on. Any node of the graph is allowed.
    adjoint : array_like, optional
        The cotangent of `node`, of its shape; ones by default.
    create_graph : bool
        Whether the derivatives are nodes that can be differentiated again.
    unused : {"raise", "zero"}
        The treatment of a node in `wrt` that `node` does not depend on: an error, or a derivative of zero. A name that no
        variable of the graph has always raises.

    Returns
    -------
    Gradients
        A mapping from variables, and from their names, to arrays of their shape and dtype.

    Raises
    ------
    TypeError
        If `node` is not a node, an operation of the graph has no derivative, `adjoint` is complex and `node` real, or `node`
        is complex and `adjoint` is None.
    ValueError
        If `node` does not depend on a node in `wrt`, two variables have the same requested name, `adjoint` has another shape,
        or a variable was updated in place after its use.

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
    if is_batch(node):
        derive_batch = functools.partial(gradient, create_graph=create_graph, unused=unused if node.batch_size else "zero")
        return Gradients(gradients_of_batch(derive_batch, node, wrt, adjoint), "a function passed to vmap")
    require_differentiable("gradient", node)
    _require_real(node, adjoint)
    nodes = collect(node)
    wrt_nodes = select_nodes(node, nodes, wrt, unused)
    warn_of_leaks("gradient", nodes, wrt_nodes)
    if not create_graph:
        seed = seed_of(node, adjoint)
        cotangents = sweep(nodes, node, seed, set(wrt_nodes), False)
        return Gradients(owned_arrays(cotangents, wrt_nodes, seed), node.opname)
    if adjoint is not None:  # otherwise the derivative is recomputed on replay
        note_input_shapes("a gradient with a cotangent of its own", node)
    cotangents = run_isolated(_sweep_recorded, nodes, node, wrt_nodes, adjoint)
    if adjoint is None:
        origin_nodes, derive = tuple(wrt_nodes), gradients if unused == "raise" else functools.partial(gradients, unused=unused)
        for position, v in enumerate(wrt_nodes):
            cotangents[v].origin = Origin(derive, node, origin_nodes, position)
    return Gradients(cotangents, node.opname)


def _sweep_recorded(nodes: list[Any], node: NDArray[Any], wrt_nodes: list[Any], cotangent: Array | None) -> dict[Any, Any]:
    """Return the cotangents of nodes, as nodes."""
    with recording_on(), ignoring_guards(cotangent is None):
        since = next_sequence_number()
        seed = _recorded_seed(node, cotangent)
        cotangents = sweep(nodes, node, seed, set(wrt_nodes), True)
        return owned_nodes({v: cotangents[v] if v in cotangents else connected_zeros(v, seed) for v in wrt_nodes}, since)


def gradients(node: object, nodes: Sequence[Any], unused: str = "raise") -> list[Any]:
    """Differentiate a node with respect to others; the derivatives are nodes.

    Parameters
    ----------
    node : Node
        The node to differentiate; if it is not a scalar, the sum of its elements.
    nodes : sequence of Node
        The nodes to differentiate with respect to.
    unused : {"raise", "zero"}
        The treatment of a node that `node` does not depend on: an error, or a derivative of zero, also a node.

    Returns
    -------
    list of Node
        The derivatives, in the order of `nodes`.

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
    derivatives = gradient(node, nodes, create_graph=True, unused=unused)
    return [derivatives[n] for n in nodes]


def select_nodes(node: object, nodes: list[Any], wrt: object, unused: str) -> list[Any]:
    """Return the nodes in `wrt`; raise unless they are in the graph or `unused` is "zero"."""
    if unused not in ("raise", "zero"):
        raise ValueError(f"unused is 'raise' or 'zero', not {unused!r}")
    if wrt is None:
        return [n for n in reversed(nodes) if isinstance(n, VariableNode)]
    is_array = isinstance(wrt, np.ndarray) and not wrt.dtype.hasobject
    keys: Iterable[Any] = [wrt] if isinstance(wrt, (str, Node)) or is_array or not isinstance(wrt, Iterable) else wrt
    graph_ids = set(map(id, nodes))
    by_name: dict[str, list[Any]] | None = None
    selected: list[Any] = []
    for key in keys:
        require_history(key)
        if isinstance(key, str):
            by_name = _variables_by_name(nodes) if by_name is None else by_name
            matches = by_name.get(key, [])
            if len(matches) > 1:
                raise ValueError(f"{len(matches)} variables of the graph are called {key!r}; use the variable itself")
            if not matches:
                raise ValueError(
                    f"the {describe(node)} depends on no variable called {key!r}.{format_leaks(leaks_about(recent_leaks(), key))}"
                )
            selected += matches
        elif not isinstance(key, Value):
            raise TypeError(
                f"wrt takes nodes and names, not a plain {type(key).__name__}. Pass the variable x itself, not x.value"
            )
        elif id(key) not in graph_ids and unused == "raise":
            advice = (
                "" if key.function is None else " Each call makes a new node: pass the node that the result was computed from."
            )
            raise ValueError(
                f"the {describe(node)} does not depend on the {describe(key)}; unused='zero' returns zeros instead."
                f"{advice}{format_leaks(leaks_about(recent_leaks(), key))}"
            )
        else:
            selected.append(key)
    return selected


def _variables_by_name(nodes: list[Any]) -> dict[str, list[Any]]:
    """Return the variables of a graph by name."""
    by_name: dict[str, list[Any]] = {}
    for node in nodes:
        if isinstance(node, VariableNode):
            by_name.setdefault(node.name, []).append(node)
    return by_name


def seed_of(node: Any, cotangent: Array | None) -> Any:
    """Return the cotangent that a sweep starts from, as a plain array."""
    if cotangent is None:
        return node.raw_value.dtype.type(1) if node.is_scalar else np.ones_like(node.raw_value)
    require_history(cotangent)
    require_computed(cotangent, "the cotangent")
    seed = np.asarray(to_values(cotangent))
    if seed.shape != node.shape:
        raise ValueError(f"the cotangent of the {describe(node)} has shape {seed.shape}. Pass one of shape {node.shape}")
    if seed.dtype.kind == "c" and node.dtype.kind != "c":
        raise TypeError(f"the cotangent of the real {describe(node)} is complex. Pass real and imaginary parts separately")
    return conform(seed, node)


def _recorded_seed(node: NDArray[Any], cotangent: Array | None) -> Any:
    """Return the cotangent that a sweep starts from as a node, which connects the derivatives to the graph."""
    if cotangent is None:
        return np.ones_like(node)
    require_history(cotangent)
    plain = seed_of(node, cotangent.raw_value if isinstance(cotangent, Value) else cotangent)
    return np.ones_like(node) * (cotangent if isinstance(cotangent, Value) else plain)


def _require_real(node: Value, cotangent: object) -> None:
    """Raise a TypeError for a complex node without a cotangent that selects a combination of its parts."""
    if cotangent is None and node.dtype.kind == "c":
        raise TypeError(
            f"gradient: the {describe(node)} is complex, and has no gradient. Take its real part (np.real), or pass "
            "adjoint=1 for the real part, adjoint=-1j for the imaginary part"
        )


def unbroadcast_adjoint(node: Value, adjoint: object) -> Any:
    """Undo broadcasting: sum a cotangent over the axes along which the value of `node` was broadcast.

    Parameters
    ----------
    node : Node or numpy.ndarray
        The operand.
    adjoint : array_like or Node
        Its cotangent, of a shape that the shape of the operand broadcasts to.

    Returns
    -------
    array or Node
        Has the shape of `node`.

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


Derive = Callable[[Any, Any, Any], Any]


def gradients_of_batch(derive: Derive, node: Any, wrt: list[Any] | None, cotangent: NDArray[Any] | None) -> dict[Any, Any]:
    """Return the gradients of all elements of a batched value, as batched values.

    Parameters
    ----------
    derive : callable
        ``derive(values, wrt, cotangent)`` returns the gradients of the values of all batch elements, as a mapping from nodes.
    node : BatchNode
        The value to differentiate.
    wrt, cotangent : object
        As in `gradient`.

    Returns
    -------
    dict
        The gradients by the nodes in `wrt`.

    Notes
    -----
    A batched variable has one value per batch element, so one sweep from all elements computes the gradient of each. For a
    variable that the elements share, there is one sweep per element.
    """
    level, values, count = node.level, _unbatched_node(node), node.batch_size
    keys: Any = wrt if wrt is None else [wrt] if isinstance(wrt, (str, Node)) else list(wrt)
    batched_wrt = [] if keys is None else [w for w in keys if is_batch(w) and w.level == level]
    shared_wrt: Any = None if keys is None else [w for w in keys if not any(w is o for o in batched_wrt)]
    seed = _batched_seed(node, cotangent, level)
    batch_gradients: dict[Any, Any] = {}
    if batched_wrt:
        unbatched_wrt = [_unbatched_node(w) for w in batched_wrt]
        cotangents = derive(values, unbatched_wrt, seed)
        batch_gradients = {
            w: BatchNode.create_using(cotangents[i], level, is_array=True)
            for w, i in zip(batched_wrt, unbatched_wrt, strict=True)
        }
    if shared_wrt is None or shared_wrt:
        per_element = [derive(values, shared_wrt, _seed_of_element(values, seed, k)) for k in range(count)]
        wrt_nodes = per_element[0]._cotangents if per_element else derive(values, shared_wrt, None)._cotangents
        for w in wrt_nodes:
            stacked = np.stack([gradients[w] for gradients in per_element]) if per_element else np.zeros((0, *w.shape), w.dtype)
            batch_gradients[w] = BatchNode.create_using(stacked, level, is_array=True)
    return batch_gradients


def _unbatched_node(value: Any) -> Any:
    """Return the node that holds the values of all batch elements."""
    if not isinstance(value.values, Value):
        raise ValueError(
            f"gradient: the {describe(value)} has no graph, because it is an argument of a function within vmap. Use "
            "autodiff.grad of a function of it within vmap"
        )
    return value.values


def _batched_seed(node: Any, cotangent: Any, level: int) -> Any:
    """Return the cotangents of all batch elements; None for ones."""
    if cotangent is None:
        return None
    if is_batch(cotangent) and cotangent.level == level:
        return cotangent.values
    if np.shape(cotangent) != node.shape:
        raise ValueError(f"the cotangent of the {describe(node)} has shape {np.shape(cotangent)}. Pass one of shape {node.shape}")
    return np.broadcast_to(cotangent, (node.batch_size, *node.shape))


def _seed_of_element(values: Any, seed: Array, k: int) -> Any:
    """Return the cotangents of all batch elements, zero except for one."""
    element_mask = np.zeros((values.shape[0],) + (1,) * (values.ndim - 1), values.dtype)
    element_mask[k] = 1
    return np.broadcast_to(element_mask, values.shape) if seed is None else element_mask * seed


# ------------------------------------------------------------------------------------------ Jacobians


def variables(*values: object, names: Sequence[str] | None = None) -> Any:
    """Make several variables at once, the counterpart of `autodiff.forward.variables`.

    Parameters
    ----------
    *values : array_like
        One or more inputs: numbers, vectors, arrays of any shape. Python numbers become floats. Integer arrays, complex
        numbers and nodes raise.
    names : sequence of str, optional
        The names, in order.

    Returns
    -------
    VariableNode or tuple of VariableNode
        A variable for one value, a tuple for several; each holds a copy of its value.

    Raises
    ------
    TypeError
        If a value has no derivatives, is complex, or is a node.
    ValueError
        If the numbers of names and values differ.

    Examples
    --------
    >>> a, v = variables(3.0, [1.0, 2.0], names=["a", "v"])
    >>> jacobian(a * v, (a, v))
    [array([1., 2.]), array([[3., 0.],
           [0., 3.]])]
    """
    for value in values:
        if isinstance(value, Value):
            require_history(value)
            raise TypeError(
                f"variables: the {describe(value)} is part of a graph, and a variable made from it would not be; use "
                "autodiff.jacrev for a derivative within a derivative, or pass its numbers (node.value)"
            )
    arrays = as_real_inputs(values, names)
    nodes = [VariableNode.create_using(a, name) for a, name in zip(arrays, names or (None,) * len(arrays), strict=True)]
    return nodes[0] if len(nodes) == 1 else tuple(nodes)


def jacobian(node: Any, wrt: Any, create_graph: bool = False) -> Any:
    """Compute the Jacobian of a node with respect to variables, by one sweep with a batch of cotangents.

    Parameters
    ----------
    node : Node
        The node to differentiate, of any shape.
    wrt : VariableNode or sequence of VariableNode
        The variables. The Jacobian with respect to a variable that `node` does not depend on is zero.
    create_graph : bool
        Whether the Jacobians are nodes that can be differentiated again.

    Returns
    -------
    array or list of array
        For each variable an array of shape ``node.shape + variable.shape`` in the precision of `node`; a list in order if
        `wrt` is a sequence. They equal those of `autodiff.forward.variables`.

    Raises
    ------
    TypeError
        If `node` is not a node or has no derivatives, or `wrt` has an entry that is not a variable.
    ValueError
        If a variable was updated in place after its use.

    See Also
    --------
    gradient : of the sum of the elements.
    autodiff.jacrev : the Jacobian of a function, as a function.

    Examples
    --------
    >>> x = variables([1.0, 2.0, 3.0])
    >>> jacobian(x[:2] * x[1:], x)
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    require_differentiable("jacobian", node)
    is_single = isinstance(wrt, np.ndarray)
    inputs = [wrt] if is_single else list(wrt)
    for x in inputs:
        if not isinstance(x, VariableNode):
            kind = f"the {describe(x)}" if isinstance(x, Value) else f"a {type(x).__name__}"
            raise TypeError(f"jacobian: wrt takes variables (cg.variable, autodiff.reverse.variables), not {kind}")
    warn_of_leaks("jacobian", collect(node), inputs)
    linearization = Linearization("jacobian", list(dict.fromkeys(inputs)), node, create_graph)
    jacobians = dict(zip(linearization.inputs, linearization.rows(), strict=True))
    with linearization.recording():
        results = [jacobians[x] if x.dtype.kind == "c" else jacobians[x].astype(node.dtype, copy=False) for x in inputs]
    return results[0] if is_single else results
