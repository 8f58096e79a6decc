"""`Split`: evaluation and training of a graph whose parts are on different machines."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import distributed
import numpy as np

from compgraph.array_types import Array
from compgraph.executor import collect_dependencies, retrace_sources_of
from compgraph.graph import GraphNode
from compgraph.guards import guards_of, warn_leaks
from compgraph.storage import by_sequence_number
from compgraph.values import PlaceholderNode, Value, VariableNode, describe, require_history

from ...arguments import flatten, unflatten
from ...optimizers import Optimizer
from .hosts import ClusterHosts, LocalHosts
from .layout import complete_placement, is_operation, partition_linearly, place_by_scope
from .messages import LostError, pack, unpack
from .part import weighted_sum
from .part_pass import gather_or_cancel
from .pipeline import Batch, Feeds, Pipeline
from .plan import Plan

_Client: Any = distributed.Client  # untyped
State = dict[str, Any]
OptimizerFactory = Callable[[list[Any]], Optimizer]
_log = logging.getLogger(__name__)
MAX_LOSSES = 10  # lost machines until a call fails


class Split:
    """A graph divided into parts on different machines, each with its parameters and their optimizer.

    Values are sent forward from part to part, cotangents backward, and several micro-batches are in the pipeline at a time. The
    results have the same bits as in one process.

    Parameters
    ----------
    output : Node
        The output, computed from placeholders. Gradients require a scalar; with several micro-batches, a mean over rows.
    parameters : tree of VariableNode
        The variables to differentiate with respect to, which the optimizer updates. The parts store copies of their current
        values; see `parameters`.
    client : distributed.Client, str or None
        A client of the cluster, or the address of its scheduler. With None, all parts run in this process.
    place : mapping or "auto"
        The part of each scope (`compgraph.scope`), by name: ``{"first": 0, "second": 1}``. An operation outside of these scopes
        belongs to the part of its youngest operand. "auto" divides the operations, in the order of recording, into one part
        per machine at the first run, by measured times and transferred bytes.
    micro_batches : int
        The number of micro-batches into which the rows are divided: the first axis of placeholders that declare it as None.
        Values and gradients are means over micro-batches, weighted by their rows.
    optimizer : callable, optional
        A constructor that takes a list of arrays, such as ``functools.partial(Adam, learning_rate=0.003)``. Required by `step`.
        With ``clip``, the gradients of all parts are sent to the client.
    keep_every : int
        The number of steps after which the state of all parts is fetched. If a machine is lost, all parts return to that state
        and repeat the steps since then, with the same bits. The fed values are stored for that.
    wait : float
        The seconds to wait for a machine, and for a heartbeat of a machine that computes.

    Attributes
    ----------
    machines : dict
        The machine of each part.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the optimizer does not update each parameter separately.
    ValueError
        If a scope is unknown, or the output does not depend on a parameter.

    Notes
    -----
    The parts are pipelined as by Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline
    parallelism", NeurIPS 2019. A scheduler runs any received code: use a cluster that only you can reach.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import compgraph as cg
    >>> import autodiff.distributed as dist
    >>> from autodiff.optimizers import SGD
    >>> x, y = cg.placeholder((None, 2), name="x"), cg.placeholder((None,), name="y")
    >>> u, v = cg.variable([[0.5, -0.2], [0.1, 0.3]], "u"), cg.variable([1.0, -1.0], "v")
    >>> with cg.scope("first"):
    ...     hidden = cg.tanh(x @ u)
    >>> with cg.scope("second"):
    ...     loss = cg.mean((hidden @ v - y) ** 2)
    >>> net = dist.Split(loss, [u, v], None, place={"first": 0, "second": 1}, optimizer=partial(SGD, learning_rate=0.1))
    >>> feed = {"x": [[1.0, 2.0], [0.5, -1.0]], "y": [1.0, 0.0]}
    >>> values = [float(net.step(feed)) for _ in range(50)]
    >>> bool(values[-1] < values[0] / 10)
    True
    """

    def __init__(
        self,
        output: Any,
        parameters: Any,
        client: Any,
        *,
        place: Mapping[str, int] | str = "auto",
        micro_batches: int = 1,
        optimizer: Callable[[list[Any]], Optimizer] | None = None,
        keep_every: int = 1,
        wait: float = 60.0,
    ) -> None:
        self._keep_every = _check_count("keep_every", keep_every)
        self._leaves, self._structure = _flatten_variables(parameters)
        self._output, self._items = output, _list_graph(output)
        placeholders = sorted([item for item in self._items if isinstance(item, PlaceholderNode)], key=by_sequence_number)
        self._feeds = Feeds(placeholders, _check_count("micro_batches", micro_batches))
        variables = [*self._leaves, *[i for i in self._items if isinstance(i, VariableNode)]]
        self._sequence_numbers = {variable: variable.sequence_number for variable in variables}
        self._arrays = [v.value.copy() for v in self._leaves]
        self._optimizer, self._saved_state = optimizer, initial_state(optimizer, self._arrays)
        self._plan: Plan | None = None
        if isinstance(place, str) and place == "auto":
            _require_used(output, self._items, self._leaves)
        else:
            self._plan_parts(place_by_scope(self._items, place))  # type: ignore[arg-type]
        if not wait > 0:
            raise ValueError(f"Split: wait is a positive number of seconds, not {wait!r}.")
        self._client, self._owns_client = _resolve_client(client)
        self._hosts: Any = LocalHosts() if self._client is None else ClusterHosts(self._client, float(wait))
        self._unsaved_steps: list[Batch] = []  # the feeds of the steps since `_saved_state`
        self._steps_taken = 0  # the number of `_unsaved_steps` that all parts have taken
        self._attempt, self._is_consistent = 0, False  # whether all parts have taken the same steps

    # ------------------------------------------------------------------------------------------ public API

    def run(self, feed: Mapping[Any, Any]) -> Any:
        """Return the output.

        Parameters
        ----------
        feed : mapping
            Values for all placeholders. The keys are placeholders or their names.

        Returns
        -------
        array or scalar
            With micro-batches, an array must have one row per fed row.
        """
        batch = self._feeds.check(feed)
        batches, weights = self._feeds.divide(batch)
        return self._feeds.join_outputs(
            self._execute(lambda: self._pipeline().forward(batches, weights), batch), batches, weights
        )

    def value_and_grad(self, feed: Mapping[Any, Any]) -> tuple[Any, Any]:
        """Return the output and its gradient, nested as the parameters. Nothing is updated."""
        batch = self._feeds.check(feed)
        batches, weights = self._feeds.divide(batch)
        values, gradients = self._execute(lambda: self._compute_gradients(batches, weights), batch)
        return weighted_sum(values, weights), unflatten(self._structure, [gradients[i] for i in range(len(self._leaves))])

    def step(self, feed: Mapping[Any, Any]) -> Any:
        """Take a step of the optimizer; return the output before it. After an error, no part has taken the step."""
        if self._optimizer is None:
            raise TypeError("Split: step needs optimizer=, such as functools.partial(Adam, learning_rate=0.003).")
        batch = {node: np.array(value) for node, value in self._feeds.check(feed).items()}  # the caller may overwrite the arrays
        self._unsaved_steps.append(batch)
        try:
            values, weights = self._execute(None, batch)
        except BaseException:
            if self._unsaved_steps and self._unsaved_steps[-1] is batch and self._steps_taken < len(self._unsaved_steps):
                self._unsaved_steps.pop()
            raise
        return weighted_sum(values, weights)

    @property
    def parameters(self) -> Any:
        """The current parameters: arrays, nested as the variables."""
        state = self.state_dict()
        return unflatten(self._structure, [state[f"parameter.{i}"] for i in range(len(self._leaves))])

    def state_dict(self) -> dict[str, Any]:
        """Return the parameters and the state of the optimizers, in the form of one optimizer of all parameters.

        Returns
        -------
        dict
            Copies. ``np.savez(file, **state)`` saves them.
        """
        if self._unsaved_steps:
            self._execute(self._fetch_states)
        return self.kept_state_dict()

    def kept_state_dict(self) -> dict[str, Any]:
        """Return the last fetched state (see `keep_every`), without a request to a machine."""
        return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in self._saved_state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state, from `state_dict` or from one optimizer of the same parameters.

        Raises
        ------
        ValueError
            If the state belongs to other parameters or another optimizer. Nothing is changed then.
        """
        self._saved_state = validate_state(self._optimizer, self._arrays, {name: state[name] for name in state})
        self._unsaved_steps, self._steps_taken, self._is_consistent = [], 0, False

    @property
    def machines(self) -> dict[int, str]:
        """The machine of each part; empty before the first run."""
        return dict(sorted(self._hosts.addresses.items()))

    def close(self) -> None:
        """Drop the parts on the machines, and close a client that was created from an address. A second call does nothing."""
        if self._is_closed():
            return
        self._hosts.run(self._hosts.close())
        self._is_consistent = False
        if self._owns_client:
            self._client.close()
            self._owns_client = False

    def _is_closed(self) -> bool:
        return self._client is not None and self._client.status == "closed"

    def __enter__(self) -> Split:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._plan is None:
            return f"Split({len(self._leaves)} parameters, placed when it is first run)"
        parts = {part: sum(p.operation_count for p in self._plan.stage_plans if p.part == part) for part in self._pickled_parts}
        sizes = ", ".join(f"{part}: {count} operations" for part, count in parts.items())
        return f"Split({len(self._leaves)} parameters; parts {sizes})"

    # ----------------------------------------------------------------------------------------- the machines

    def _execute(self, operation: Callable[[], Awaitable[Any]] | None, batch: Batch | None = None) -> Any:
        """Run an operation once all parts are installed and consistent, again if a machine is lost. None takes pending steps."""
        changed_variables = [v for v, sequence_number in self._sequence_numbers.items() if v.sequence_number != sequence_number]
        if changed_variables:
            raise RuntimeError(
                f"the {describe(changed_variables[0])} was updated here, but Split has sent its value to the machines. Use "
                "load_state_dict for parameters, and a placeholder for values that change."
            )
        if self._is_closed():
            raise RuntimeError(
                "the client of this Split is closed. Create a new Split. close() leaves a client open that was passed as "
                "a Client, not as an address."
            )
        return self._hosts.run(self._retry_lost(operation, batch))

    async def _retry_lost(self, operation: Callable[[], Awaitable[Any]] | None, batch: Batch | None) -> Any:
        for _ in range(MAX_LOSSES):
            try:
                await self._synchronize_parts(batch)
                result = await self._replay_steps()
                return result if operation is None else await operation()
            except LostError as error:
                last_error = error
        raise RuntimeError(
            f"Split: {MAX_LOSSES} machines failed during this call. The computation may end its process (memory, a crash of "
            "compiled code). `kept_state_dict()` returns the last fetched state."
        ) from last_error

    async def _synchronize_parts(self, batch: Batch | None) -> None:
        """Install parts without a machine. If there are any, or parts are inconsistent, load the saved state into all parts."""
        self._attempt += 1
        if self._plan is None:
            count = await self._hosts.count_machines()
            feeds = {} if batch is None else self._feeds.divide(batch)[0][0]
            self._plan_parts(partition_linearly(self._items, count, feeds))
        await self._hosts.place_parts(self._pickled_parts, self._steps_taken == 0)
        if self._hosts.uninitialized or not self._is_consistent:
            self._is_consistent, self._steps_taken = False, 0
            states = divide_state(self._saved_state, self._current_plan.homes)
            _log.info("all parts load the saved state, and repeat the %d steps since then", len(self._unsaved_steps))
            await gather_or_cancel(self._call(part, "load", state) for part, state in states.items())
            self._is_consistent = True
            self._hosts.uninitialized.clear()

    async def _replay_steps(self) -> Any:
        """Take the pending steps since the saved state; return the result of the last."""
        result = None
        while self._steps_taken < len(self._unsaved_steps):
            result = await self._take_step(self._unsaved_steps[self._steps_taken])
        return result

    async def _take_step(self, batch: Batch) -> Any:
        """Take one step, after all parts have checked their gradients."""
        batches, weights = self._feeds.divide(batch)
        if self._clip is None:
            values, _ = await self._forward_backward(batches, weights, "prepare")
        else:
            values = await self._prepare_clipped(batches, weights)
        return_state = self._steps_taken + 1 >= self._keep_every
        self._is_consistent = False  # an interrupt after this line may leave parts with different steps
        states = await gather_or_cancel(self._call(part, "commit", return_state) for part in self._owner_parts)
        self._is_consistent, self._steps_taken = True, self._steps_taken + 1
        if return_state:
            self._save_states(states)
        return values, weights

    async def _prepare_clipped(self, batches: list[Batch], weights: list[float]) -> Any:
        """Prepare a step along gradients that are clipped together; return the values."""
        values, unclipped_gradients = await self._compute_gradients(batches, weights)
        clipped = list(self._clip([unclipped_gradients[i] for i in range(len(unclipped_gradients))]))  # type: ignore[misc]
        if len(clipped) != len(unclipped_gradients):
            raise ValueError(
                f"clip returned {len(clipped)} gradients for {len(unclipped_gradients)} parameters. Return one for each."
            )
        part_gradients: dict[int, dict[int, Any]] = {part: {} for part in self._owner_parts}
        for i, home in enumerate(self._current_plan.homes):
            part_gradients[home][i] = pack(clipped[i])
        await gather_or_cancel(self._call(part, "prepare", gradients) for part, gradients in part_gradients.items())
        return values

    def _save_states(self, states: list[Any]) -> None:
        self._saved_state = merge_states(dict(zip(self._owner_parts, states, strict=True)), self._current_plan.homes)
        del self._unsaved_steps[: self._steps_taken]
        self._steps_taken = 0

    async def _fetch_states(self) -> None:
        self._save_states(await gather_or_cancel(self._call(part, "state") for part in self._owner_parts))

    async def _forward_backward(self, batches: list[Batch], weights: list[float], mode: str) -> tuple[list[Any], Any]:
        """Return the values of a pass, and the gradients, if requested."""
        if self._output.ndim or self._output.dtype.kind == "c":
            raise ValueError(f"Split: only a real scalar has a gradient, not the {describe(self._output)}.")
        return await self._pipeline().forward_backward(batches, weights, mode)

    async def _compute_gradients(self, batches: list[Batch], weights: list[float]) -> Any:
        values, gradients = await self._forward_backward(batches, weights, "gradient")
        return values, {i: unpack(g, copy=True)[()] for i, g in gradients.items()}

    async def _call(self, part: int, method: str, *args: object) -> Any:
        return await self._hosts.call(part, self._attempt, method, *args)

    # ---------------------------------------------------------------------------------------------- the plan

    def _plan_parts(self, placement: Mapping[Any, int]) -> None:
        """Divide the graph into the parts of a placement, and pickle them."""
        plan = Plan(self._output, self._leaves, self._items, complete_placement(self._items, placement))
        require_separable(self._optimizer, self._arrays, plan.homes)
        self._clip = clip_of(self._optimizer, self._arrays, plan.homes)
        pickled_optimizer = None if self._optimizer is None else cloudpickle.dumps(self._optimizer)
        self._pickled_parts = {}
        for part in sorted({stage_plan.part for stage_plan in plan.stage_plans}):
            stages = [(stage_plan.links, stage_plan.pickled) for stage_plan in plan.stage_plans if stage_plan.part == part]
            arrays = {i: pack(self._arrays[i]) for i, home in enumerate(plan.homes) if home == part}
            self._pickled_parts[part] = pickle.dumps(
                (stages, arrays, *plan.parameter_ports_of(part), pickled_optimizer, self._clip is None)
            )
        self._owner_parts = sorted(set(plan.homes))
        self._plan = plan

    @property
    def _current_plan(self) -> Plan:
        assert self._plan is not None
        return self._plan

    def _pipeline(self) -> Pipeline:
        return Pipeline(self._current_plan, self._hosts.pass_through, self._next_attempt, self._hosts.peers)

    def _next_attempt(self) -> int:
        self._attempt += 1
        return self._attempt


# ----------------------------------------------------------------------------- checks of arguments


def _resolve_client(client: object) -> tuple[Any, bool]:
    """Return the Dask client of an argument of `Split`, and whether this function created it; None stays None."""
    if isinstance(client, str):
        return _Client(client, direct_to_workers=True), True
    if client is not None and not isinstance(client, _Client):
        raise TypeError(
            f"Split: client must be a dask.distributed.Client, the address of a scheduler or None, not {type(client).__name__}."
        )
    if client is not None and client.asynchronous:
        raise TypeError("Split: the client is asynchronous. Create it with asynchronous=False.")
    return client, False


def _check_count(name: str, value: Any) -> int:
    """Return an integer, checked to be at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Split: {name} must be an integer of at least 1, not {value!r}.")
    return value


def _flatten_variables(tree: object) -> tuple[list[Any], Any]:
    """Return the leaves of the nested parameters, and their structure."""
    leaves, structure = flatten(tree)
    if not leaves:
        raise TypeError("Split: there are no parameters. Pass variables of the graph.")
    for leaf in leaves:
        if not isinstance(leaf, VariableNode):
            raise TypeError(f"Split: parameters must be variables (cg.variable), not a {type(leaf).__name__}.")
    if len({id(leaf) for leaf in leaves}) < len(leaves):
        raise ValueError("Split: a parameter is passed twice. Pass each variable once.")
    return leaves, structure


def _list_graph(output: Array) -> list[Any]:
    """Return the graph of the output, with the guards, in the order of recording."""
    require_history(output)
    if not isinstance(output, Value) or not is_operation(output):
        raise TypeError(f"Split: the output must be a result of operations on nodes, not a {type(output).__name__}.")
    if output.level:
        raise TypeError("Split: the output carries tangents. Pass its primal value.")
    guards, leaked_values = guards_of(collect_dependencies([output], retrace_sources_of))
    warn_leaks(leaked_values)
    checkable_guards = [guard for guard in guards if not any(map(_is_fed, collect_dependencies([guard], retrace_sources_of)))]
    return collect_dependencies([output, *checkable_guards], retrace_sources_of)


def _is_fed(item: GraphNode) -> bool:
    """Whether an item replaces a placeholder in a run of an executor with the same variables."""
    return isinstance(item, PlaceholderNode) and not hasattr(item, "declared_shape")


def _require_used(output: Array, items: list[Any], parameters: list[Any]) -> None:
    """Raise if the output does not depend on a parameter."""
    reachable = frozenset(items)
    for parameter in parameters:
        if parameter not in reachable:
            raise ValueError(f"Split: the {describe(output)} does not depend on the parameter {parameter.name!r}. Leave it out.")


# ------------------------------------------------------------------------------------------ states of optimizers
# `homes` lists, for each parameter, the number of the part that stores it.


def initial_state(make: OptimizerFactory | None, arrays: Sequence[Any]) -> State:
    """Return the state before the first step.

    Raises
    ------
    TypeError
        If `make` does not return an optimizer whose step takes gradients alone.
    """
    copies = [np.array(array) for array in arrays]
    if make is None:
        return {f"parameter.{i}": array for i, array in enumerate(copies)}
    optimizer = make(copies)
    if not isinstance(optimizer, Optimizer) or type(optimizer).step is not Optimizer.step:
        raise TypeError(
            f"Split: optimizer returned a {type(optimizer).__name__}"
            + (", whose step takes more than gradients" if hasattr(optimizer, "step") else "")
            + ". Pass a constructor of an optimizer of a list of arrays, such as functools.partial(Adam, learning_rate=0.003)."
        )
    return optimizer.state_dict()


def require_separable(make: OptimizerFactory | None, arrays: Sequence[Any], homes: Sequence[int]) -> None:
    """Raise if the update of a parameter depends on other parameters, and parameters are in several parts."""
    if make is None or len(set(homes)) < 2:
        return
    optimizer = make([np.array(array) for array in arrays])
    if (
        type(optimizer)._apply_step is not Optimizer._apply_step
        or type(optimizer)._check_gradients is not Optimizer._check_gradients
    ):
        raise TypeError(f"Split: {type(optimizer).__name__} updates parameters jointly. Place all parameters in one part.")


def clip_of(make: OptimizerFactory | None, arrays: Sequence[Any], homes: Sequence[int]) -> Callable[[list[Any]], Any] | None:
    """Return the `clip` of the optimizer if the client has to call it, because gradients are in several parts."""
    if make is None or len(set(homes)) < 2:
        return None
    return make([np.array(array) for array in arrays])._clip


def validate_state(make: OptimizerFactory | None, arrays: Sequence[Any], state: Mapping[str, Any]) -> State:
    """Return a checked copy of a state."""
    if make is not None:
        optimizer = make([np.array(array) for array in arrays])
        optimizer.load_state_dict(state)
        return optimizer.state_dict()
    state_copy = {}
    for i, array in enumerate(arrays):
        value = state.get(f"parameter.{i}")
        if value is None or np.shape(value) != array.shape:
            raise ValueError(f"the state belongs to other parameters: parameter.{i} is missing or not of shape {array.shape}.")
        state_copy[f"parameter.{i}"] = np.array(value, array.dtype)
    return state_copy


def divide_state(state: Mapping[str, Any], homes: Sequence[int]) -> dict[int, State]:
    """Divide a state into the states of the parts that have parameters."""
    part_states: dict[int, State] = {part: {} for part in homes}
    positions = {i: (home, sum(other == home for other in homes[:i])) for i, home in enumerate(homes)}
    for name, value in state.items():
        slot, _, number = name.rpartition(".")
        if slot and number.isdigit():
            part, k = positions[int(number)]
            part_states[part][f"{slot}.{k}"] = value
        else:
            for part_state in part_states.values():
                part_state[name] = value
    return part_states


def merge_states(states: Mapping[int, Mapping[str, Any]], homes: Sequence[int]) -> State:
    """Merge the states of the parts into one state of all parameters."""
    numbers: dict[int, list[int]] = {}
    for i, home in enumerate(homes):
        numbers.setdefault(home, []).append(i)
    state: State = {}
    for part, part_numbers in numbers.items():
        for name, value in states[part].items():
            slot, _, number = name.rpartition(".")
            state[f"{slot}.{part_numbers[int(number)]}" if slot and number.isdigit() else name] = value
    return state
