"""`Split`: a graph whose parts live on different machines and are trained there."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from compgraph.storage import by_sequence_number
from compgraph.values import PlaceholderNode, VariableNode, describe

from ...arguments import unflatten
from ...optimizers import Optimizer
from .automatic import linear
from .checked_arguments import client_of, count_of, graph_of, require_used, variables_of
from .feeds import Batch, Feeds
from .hosts import Here, Machines
from .layout import by_scope, completed
from .parts import LostError, pack, together, unpack, weighed
from .pipeline import Pipeline
from .plan import Plan
from .states import clip_of, divided, first_state, loaded, require_separable, united

_log = logging.getLogger(__name__)
LOSSES = 10  # lost machines after which a call gives up


class Split:
    """A graph divided into parts on different machines, each with its parameters and their optimizer.

    Values go forward from part to part, adjoints back, and several micro-batches are in the pipeline at a time. The results have
    the bits that they have in one process.

    Parameters
    ----------
    output : Node
        The output, computed from placeholders. To be differentiated it must be a scalar; if there are several micro-batches, a
        mean over rows.
    parameters : tree of VariableNode
        The variables to differentiate with respect to, which the optimizer updates. The parts store them, with their present
        values; see `parameters`.
    client : distributed.Client, str or None
        A client of the cluster, or the address of its scheduler. With None all parts live in this process.
    place : mapping or "auto"
        The part of each scope (`compgraph.scope`), by their names: ``{"first": 0, "second": 1}``. An operation that is in none
        of these belongs to the part of its youngest operand. "auto" cuts the operations, in the
        order of recording, into as many parts as there are machines when it is first run, by the time that they take and the
        bytes that cross.
    micro_batches : int
        How many micro-batches the rows are cut into: the first axis of placeholders that declare it as None. Values and
        gradients are means over micro-batches, weighted by their rows.
    optimizer : callable, optional
        Makes an optimizer from a list of arrays, such as ``functools.partial(Adam, learning_rate=0.003)``. Needed for `step`.
        Its ``clip`` receives the gradients of all parts, which are sent to the client for that.
    keep_every : int
        The number of steps after which the state of all parts is fetched. If a machine is lost, all parts return to that state
        and repeat the steps since then, with the same bits; the fed values are kept until then.
    wait : float
        The seconds to wait if no machine is available, and for a sign of life of a working one.

    Attributes
    ----------
    machines : dict
        The machine of each part.

    Raises
    ------
    TypeError
        If an argument is of a wrong type, or the optimizer does not update each parameter separately.
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
        output: NDArray[Any],
        parameters: list[Any] | dict[str, Any],
        client: Any,
        *,
        place: Mapping[str, int] | str = "auto",
        micro_batches: int = 1,
        optimizer: Callable[[list[Any]], Optimizer] | None = None,
        keep_every: int = 1,
        wait: float = 60.0,
    ) -> None:
        self._keep_every = count_of("keep_every", keep_every)
        self._leaves, self._structure = variables_of(parameters)
        self._output, self._items = output, graph_of(output)
        placeholders = sorted([item for item in self._items if isinstance(item, PlaceholderNode)], key=by_sequence_number)
        self._feeds = Feeds(placeholders, count_of("micro_batches", micro_batches))
        self._ticks = {v: v.sequence_number for v in [*self._leaves, *[i for i in self._items if isinstance(i, VariableNode)]]}
        self._arrays = [v.value.copy() for v in self._leaves]
        self._optimizer, self._kept = optimizer, first_state(optimizer, self._arrays)
        self._plan: Plan | None = None
        if isinstance(place, str) and place == "auto":
            require_used(output, self._items, self._leaves)
        else:
            self._lay_out(by_scope(self._items, place))  # type: ignore[arg-type]
        if not wait > 0:
            raise ValueError(f"Split: wait is a number of seconds, not {wait!r}")
        self._client, self._owns = client_of(client)
        self._hosts: Any = Here() if self._client is None else Machines(self._client, float(wait))
        self._since: list[Batch] = []  # the values fed in the steps since the state in `_kept`
        self._steps_taken = 0  # the number of batches in `_since` with which all parts have taken a step
        self._epoch, self._is_consistent = 0, False  # whether all parts have taken the same steps

    # ------------------------------------------------------------------------------------------ for users

    def run(self, feed: Mapping[Any, Any]) -> Any:
        """The output.

        Parameters
        ----------
        feed : mapping
            Values for all placeholders, by themselves or by name.

        Returns
        -------
        array or scalar
            With micro-batches, an array must have a row for each row that is fed.
        """
        batch = self._feeds.checked(feed)
        batches, weights = self._feeds.cut(batch)
        return self._feeds.joined(self._do(lambda: self._pipeline().forward(batches, weights), batch), batches, weights)

    def value_and_grad(self, feed: Mapping[Any, Any]) -> tuple[Any, Any]:
        """The output and its gradient, which is nested as the parameters are; nothing is updated."""
        batch = self._feeds.checked(feed)
        batches, weights = self._feeds.cut(batch)
        values, gradients = self._do(lambda: self._slopes(batches, weights), batch)
        return weighed(values, weights), unflatten(self._structure, [gradients[i] for i in range(len(self._leaves))])

    def step(self, feed: Mapping[Any, Any]) -> Any:
        """Take a step of the optimizer; return the output before it. If an error is raised, no part has taken it."""
        if self._optimizer is None:
            raise TypeError("Split: step needs optimizer=, such as functools.partial(Adam, learning_rate=0.003)")
        batch = {node: np.array(value) for node, value in self._feeds.checked(feed).items()}  # the caller may write into it
        self._since.append(batch)
        try:
            values, weights = self._do(None, batch)
        except BaseException:
            if self._since and self._since[-1] is batch and self._steps_taken < len(self._since):
                self._since.pop()
            raise
        return weighed(values, weights)

    @property
    def parameters(self) -> Any:
        """The parameters as they are now: arrays, nested as they were given."""
        state = self.state_dict()
        return unflatten(self._structure, [state[f"parameter.{i}"] for i in range(len(self._leaves))])

    def state_dict(self) -> dict[str, Any]:
        """The parameters and the optimizers' state, in the form of one optimizer of all parameters.

        Returns
        -------
        dict
            Copies, under names that ``np.savez(file, **state)`` takes.
        """
        if self._since:
            self._do(self._fetch)
        return self.kept_state_dict()

    def kept_state_dict(self) -> dict[str, Any]:
        """The state that was fetched last (see `keep_every`), without a request to a machine."""
        return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in self._kept.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, of `state_dict` or of one optimizer of the same parameters.

        Raises
        ------
        ValueError
            If the state is that of other parameters or another optimizer; nothing is changed then.
        """
        self._kept = loaded(self._optimizer, self._arrays, {name: state[name] for name in state})
        self._since, self._steps_taken, self._is_consistent = [], 0, False

    @property
    def machines(self) -> dict[int, str]:
        """Where each part lives; empty until it is first run."""
        return dict(sorted(self._hosts.address.items()))

    def close(self) -> None:
        """Drop the parts on the machines, and close the client if it was made of an address. A second call does nothing more."""
        if self._is_closed():
            return
        self._hosts.run(self._hosts.close())
        self._is_consistent = False
        if self._owns:
            self._client.close()
            self._owns = False

    def _is_closed(self) -> bool:
        return self._client is not None and self._client.status == "closed"

    def __enter__(self) -> Split:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._plan is None:
            return f"Split({len(self._leaves)} parameters, placed when it is first run)"
        parts = {part: sum(p.count for p in self._plan.pieces if p.part == part) for part in self._shipped}
        sizes = ", ".join(f"{part}: {count} operations" for part, count in parts.items())
        return f"Split({len(self._leaves)} parameters; parts {sizes})"

    # ----------------------------------------------------------------------------------------- the machines

    def _do(self, what: Callable[[], Awaitable[Any]] | None, batch: Batch | None = None) -> Any:
        """Do something once all parts live and agree, again if a machine is lost; None just takes the steps that are due."""
        changed = [v for v, sequence_number in self._ticks.items() if v.sequence_number != sequence_number]
        if changed:
            raise RuntimeError(
                f"the {describe(changed[0])} was updated here, but Split has taken its value to the machines; use "
                "load_state_dict for parameters, and a placeholder for what changes"
            )
        if self._is_closed():
            raise RuntimeError(
                "the client of this Split is closed. Make a new Split, or one with a Client, which close() leaves open."
            )
        return self._hosts.run(self._surely(what, batch))

    async def _surely(self, what: Callable[[], Awaitable[Any]] | None, batch: Batch | None) -> Any:
        for _ in range(LOSSES):
            try:
                await self._agree(batch)
                last = await self._catch_up()
                return last if what is None else await what()
            except LostError as error:
                lost = error
        raise RuntimeError(
            f"Split: {LOSSES} times in this call a machine was lost, so their computation may end them (memory, a "
            "crash of compiled code); the state that was kept is in `kept_state_dict()`"
        ) from lost

    async def _agree(self, batch: Batch | None) -> None:
        """Install parts without a living machine; if there were any, or parts disagree, load the kept state into all."""
        self._epoch += 1
        if self._plan is None:
            count = await self._hosts.count()
            feeds = {} if batch is None else self._feeds.cut(batch)[0][0]
            self._lay_out(linear(self._items, count, feeds))
        await self._hosts.settle(self._shipped, self._steps_taken == 0)
        if self._hosts.fresh or not self._is_consistent:
            self._is_consistent, self._steps_taken = False, 0
            states = divided(self._kept, self._plan_now.homes)
            _log.info("all parts load the kept state, and repeat the %d steps since then", len(self._since))
            await together(self._call(part, "load", state) for part, state in states.items())
            self._is_consistent = True
            self._hosts.fresh.clear()

    async def _catch_up(self) -> Any:
        """Take the steps since the kept state that were not taken; return the result of the last."""
        result = None
        while self._steps_taken < len(self._since):
            result = await self._take(self._since[self._steps_taken])
        return result

    async def _take(self, batch: Batch) -> Any:
        """One step: all parts check their gradients before any of them takes it."""
        batches, weights = self._feeds.cut(batch)
        if self._clip is None:
            values, _ = await self._there_and_back(batches, weights, "prepare")
        else:
            values = await self._clipped(batches, weights)
        tells = self._steps_taken + 1 >= self._keep_every
        self._is_consistent = False  # an interrupt from here on leaves parts that have taken the step and others that have not
        states = await together(self._call(part, "commit", tells) for part in self._owners)
        self._is_consistent, self._steps_taken = True, self._steps_taken + 1
        if tells:
            self._keep(states)
        return values, weights

    async def _clipped(self, batches: list[Batch], weights: list[float]) -> Any:
        """The values, once all parts are ready to step along gradients that were clipped together."""
        values, unclipped_gradients = await self._slopes(batches, weights)
        clipped = list(self._clip([unclipped_gradients[i] for i in range(len(unclipped_gradients))]))  # type: ignore[misc]
        if len(clipped) != len(unclipped_gradients):
            raise ValueError(f"clip returned {len(clipped)} gradients for {len(unclipped_gradients)} parameters")
        mine = {p: {i: pack(clipped[i]) for i, home in enumerate(self._plan_now.homes) if home == p} for p in self._owners}
        await together(self._call(part, "prepare", gradients) for part, gradients in mine.items())
        return values

    def _keep(self, states: list[Any]) -> None:
        self._kept = united(dict(zip(self._owners, states, strict=True)), self._plan_now.homes)
        del self._since[: self._steps_taken]
        self._steps_taken = 0

    async def _fetch(self) -> None:
        self._keep(await together(self._call(part, "state") for part in self._owners))

    async def _there_and_back(self, batches: list[Batch], weights: list[float], then: str) -> tuple[list[Any], Any]:
        """The values of a pass, and the gradients, if requested."""
        if self._output.ndim or self._output.dtype.kind == "c":
            raise ValueError(f"Split: only a real scalar has a gradient, not the {describe(self._output)}")
        return await self._pipeline().there_and_back(batches, weights, then)

    async def _slopes(self, batches: list[Batch], weights: list[float]) -> Any:
        values, gradients = await self._there_and_back(batches, weights, "slopes")
        return values, {i: unpack(g, own=True)[()] for i, g in gradients.items()}

    async def _call(self, part: int, method: str, *args: object) -> Any:
        return await self._hosts.call(part, self._epoch, method, *args)

    # ---------------------------------------------------------------------------------------------- the plan

    def _lay_out(self, placement: Mapping[Any, int]) -> None:
        """Cut the graph into the parts that were found."""
        plan = Plan(self._output, self._leaves, self._items, completed(self._items, placement))
        require_separable(self._optimizer, self._arrays, plan.homes)
        self._clip = clip_of(self._optimizer, self._arrays, plan.homes)
        make = None if self._optimizer is None else cloudpickle.dumps(self._optimizer)
        self._shipped = {}
        for part in sorted({piece.part for piece in plan.pieces}):
            stages = [(piece.links, piece.shipped) for piece in plan.pieces if piece.part == part]
            arrays = {i: pack(self._arrays[i]) for i, home in enumerate(plan.homes) if home == part}
            self._shipped[part] = pickle.dumps((stages, arrays, *plan.ways_of(part), make, self._clip is None))
        self._owners = sorted(set(plan.homes))
        self._plan = plan

    @property
    def _plan_now(self) -> Plan:
        assert self._plan is not None
        return self._plan

    def _pipeline(self) -> Pipeline:
        return Pipeline(self._plan_now, self._hosts.pass_through, self._renew, self._hosts.peers)

    def _renew(self) -> int:
        self._epoch += 1
        return self._epoch
