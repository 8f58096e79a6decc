"""A graph divided into stages: the operations, inputs and outputs of each.

A value that another stage reads goes through a `Port`: a node of its own, recorded just before its reader (`fresh_node`). So a
cotangent that returns through it is added to the others in the reader's place, and sums have the bits of a single process. For
that, the youngest readers share a port as long as they are in one stage, and any other reader has its own. The graph is divided
into stages at the ports.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
from numpy.typing import NDArray

from compgraph.executor import between, cut_items, needed, origin_of, origins_of, replay
from compgraph.guards import Guard, UnchangedGuard
from compgraph.storage import Write
from compgraph.values import ACTIVE, INERT, PlaceholderNode, Value, describe

from ...operators import fresh_node
from .layout import Stage, group_of, is_operation, looks_in, roots_of, stages
from .parts import RESULT, Links


@dataclass(eq=False)
class Port:
    """A value on its way from one stage to another.

    Attributes
    ----------
    value : Node
        The value, as a node of the whole graph.
    source, target : tuple or None
        The stages. The source of a parameter is None: it exists before all stages.
    number : int
        Its number in both stages. Among the ports of a value, that of the youngest reader has the smallest.
    differentiable : bool
        Whether a cotangent is returned.
    node : Node
        The port's node, once the graph was recorded again with ports.
    """

    value: Any
    source: Stage | None
    target: Stage
    number: int
    differentiable: bool
    node: Any = None

    @property
    def key(self) -> tuple[str, int]:
        """The key by which stages know it."""
        return "port", self.number


@dataclass
class Piece:
    """One stage, from the client's side.

    Attributes
    ----------
    stage : tuple
        Its number, and its part.
    incoming : list of Port
        Its inputs from other stages.
    links : Links
        The same by keys, and its outputs.
    shipped : bytes
        Its graph, pickled for the machine; see `stage.StageGraph`.
    count : int
        The number of its operations.
    """

    stage: Stage
    incoming: list[Port]
    links: Links
    shipped: bytes
    count: int

    @property
    def part(self) -> int:
        """The part it belongs to."""
        return self.stage[1]


class Plan:
    """The division of a graph into stages.

    Parameters
    ----------
    output : Node
        The output of the graph.
    parameters : list of VariableNode
        The variables to differentiate with respect to.
    items : list
        The graph: nodes, writes and guards, in the order of recording.
    parts : mapping
        The part of each operation.

    Attributes
    ----------
    pieces : list of Piece
        In an order in which they can run.
    index, feeds : dict
        The number of each parameter, and of each placeholder.
    homes : list of int
        For each parameter, the part it lives with.
    ways : list of Port
        The ports of parameters that several stages read, or one stage of another part than their home.
    """

    def __init__(self, output: NDArray[Any], parameters: list[Any], items: list[Any], parts: Mapping[Any, int]) -> None:
        self.output, self.parameters, self.items = output, parameters, items
        self.index = {parameter: i for i, parameter in enumerate(parameters)}
        self.feeds = {node: i for i, node in enumerate(item for item in items if isinstance(item, PlaceholderNode))}
        self.stage = stages(items, parts)
        self._require_whole_derivatives()
        self._roots = roots_of(items)
        self._uses = _uses_of(items)
        self._passed = _passed(items, parameters, self._roots)
        self.homes = [self._home(p) for p in parameters]
        self._ports: dict[tuple[Any, int], Port] = {}
        self._numbers = itertools.count()
        for value in [*parameters, *[i for i in items if isinstance(i, Value) and is_operation(i)]]:
            self._lay(value)
        replacements = replay(items, {}, reading=self._read)
        self._all = sorted(dict.fromkeys(self._ports.values()), key=lambda port: port.number)
        self.ways = [port for port in self._all if port.source is None]
        self.pieces = [self._piece(stage, replacements) for stage in sorted(set(self.stage.values()))]

    def _require_whole_derivatives(self) -> None:
        """Raise if a derivative that is part of the graph is taken through several stages."""
        for item in self.items:
            origin = origin_of(item)
            if origin is None:
                continue
            stages = {self.stage[n] for n in (item, *between(origin.output, origin.wrt)) if n in self.stage}
            if len(stages) > 1:
                raise ValueError(
                    f"the derivative of the {describe(origin.output)}, a part of the graph, passes through several parts; "
                    "place in one part what is differentiated and its derivative"
                )

    def _home(self, parameter: Any) -> int:
        """The part with most readers of a parameter; if several have as many, the first."""
        parts = [self.stage[item][1] for item, _ in self._uses.get(parameter, ())]
        if not parts:
            raise ValueError(
                f"Split: the {describe(self.output)} does not depend on the parameter {parameter.name!r}; leave it out"
            )
        return max(sorted(set(parts)), key=parts.count)

    # ----------------------------------------------------------------------------------------- ports

    def _lay(self, value: NDArray[Any]) -> None:
        """Enter the ports of a value."""
        uses = self._uses.get(value, [])
        home = self.stage.get(value)
        targets = {self.stage[item] for item, _ in uses}
        if home is None and len(targets) == 1 and self._is_at_home(value, *targets):
            return
        is_written = bool(getattr(group_of(value, self._roots), "memory", None))
        if value in self._passed:
            back = [use for use in uses if not isinstance(use[0], Guard)]
            self._lay_back([use for use in back if not self._picks(value, use)], value, not is_written)
            self._lay_any([use for use in back if self._picks(value, use)], value, True, False)
            uses = [use for use in uses if isinstance(use[0], Guard)]
        self._lay_any(uses, value, False, is_written)

    def _picks(self, value: NDArray[Any], use: tuple[Any, int]) -> bool:
        """Whether a reader is ``parameter[index]``; adjoints of elements are joined, and added last; see `layout.looks_in`."""
        return value not in self.stage and use[1] == 0 and looks_in(use[0])

    def _lay_back(self, uses: list[tuple[Any, int]], value: NDArray[Any], shares: bool) -> None:
        """Enter the ports through which cotangents return: one for the youngest readers, as long as they are in one stage."""
        home, latest = self.stage.get(value), None
        for item, place in uses:
            target = self.stage[item]
            shares = shares and target != home and (latest is None or latest.target == target)
            if target != home:
                if latest is None or not shares:
                    latest = Port(value, home, target, next(self._numbers), True)
                self._ports[item, place] = latest

    def _lay_any(self, uses: list[tuple[Any, int]], value: NDArray[Any], differentiable: bool, each: bool) -> None:
        """Enter one port for each stage, or for each reader if `each`; their order does not matter."""
        home, ports = self.stage.get(value), {}
        for item, place in uses:
            target = self.stage[item]
            if target != home:
                if each or target not in ports:
                    ports[target] = Port(value, home, target, next(self._numbers), differentiable)
                self._ports[item, place] = ports[target]

    def _is_at_home(self, parameter: NDArray[Any], target: Stage) -> bool:
        return target[1] == self.homes[self.index[parameter]]

    def _read(self, item: Any, place: int, replacements: Mapping[Any, Any]) -> Any:
        """Read an operand of an item through a port. Its first read records all of its ports, that of the last operand first."""
        port = self._ports.get((item, place))
        if port is None:
            return None
        for other in range(len(item.args) - 1, -1, -1):
            later = self._ports.get((item, other))
            if later is not None and later.node is None:
                later.node = fresh_node(replacements[later.value])
        return port.node

    # ---------------------------------------------------------------------------------------- pieces

    def _piece(self, stage: Stage, replacements: Mapping[Any, Any]) -> Piece:
        """Return one stage with its graph."""
        port_nodes = {p.key: p.node for p in self._all if p.target == stage}
        ported = {port.value for port in self.ways}
        here = [i for i, p in enumerate(self.parameters) if self.homes[i] == stage[1] and p not in ported]
        starts = port_nodes | {("parameter", i): self.parameters[i] for i in here}
        starts |= {("feed", i): node for node, i in self.feeds.items()}
        outgoing = [p for p in self._all if p.source == stage]
        ends: dict[Any, Any] = {p.key: p.node for p in outgoing}
        if self.stage.get(self.output) == stage:
            ends[RESULT] = replacements[self.output]
        guards = [replacements[item] for item in self.items if isinstance(item, Guard) and self.stage[item] == stage]
        reached = frozenset(needed([*ends.values(), *guards], origins_of, stop=starts.values()))
        starts = {key: node for key, node in starts.items() if node in reached}
        subgraph_items, stand_ins = cut_items(list(ends.values()), list(starts.values()), guards)
        passed = {p.key for p in self._all if p.differentiable} | {("parameter", i) for i in here}
        wanted = [key for key in starts if key in passed]
        shipped = (
            {key: subgraph_items[node] for key, node in ends.items()},
            [subgraph_items[guard] for guard in guards if not isinstance(guard, UnchangedGuard)],
            dict(zip(starts, stand_ins, strict=True)),
            wanted,
        )
        incoming = [p for p in self._all if p.target == stage and p.key in starts]
        feeds = tuple([key for key in starts if key[0] == "feed"])
        links = self._links(stage, incoming, outgoing, feeds, bool(wanted))
        count = sum(1 for item in reached if is_operation(item))
        return Piece(stage, incoming, links, cloudpickle.dumps(shipped), count)

    def _links(self, stage: Stage, incoming: list[Port], outgoing: list[Port], feeds: tuple[Any, ...], goes_back: bool) -> Links:
        """Return the inputs and outputs of a stage."""
        return Links(
            stage,
            tuple([p.key for p in incoming if p.source is not None]),
            tuple([p.key for p in incoming if p.source is None and self._home_of(p) != stage[1]]),
            feeds,
            {p.key: p.target[1] for p in outgoing},
            tuple([p.key for p in outgoing if p.differentiable]),
            {p.key: p.source[1] if p.source is not None else self._home_of(p) for p in incoming if p.differentiable},
            goes_back,
        )

    def _home_of(self, port: Port) -> int:
        """The home of the parameter that a port leads from."""
        return self.homes[self.index[port.value]]

    def ways_of(self, part: int) -> tuple[dict[Any, int], dict[Any, tuple[bool, int]]]:
        """For each port of a part's parameters, the parameter's number; and who borrows it: see `part.Part`."""
        ways = {p.key: self.index[p.value] for p in self.ways if self._home_of(p) == part}
        read = [p for piece in self.pieces if piece.part != part for p in piece.incoming if p.key in ways]
        return ways, {p.key: (p.differentiable, p.target[1]) for p in read}


def _uses_of(items: list[Any]) -> dict[Any, list[tuple[Any, int]]]:
    """The readers of each node, and the operand's position, in the order in which a sweep adds their adjoints of the node."""
    uses: dict[Any, list[tuple[Any, int]]] = {}
    for item in reversed(items):
        if origin_of(item) is None:
            for place in range(len(item.args)) if isinstance(item, Guard) else item.parent_argnums:
                if isinstance(item.args[place], Value):
                    uses.setdefault(item.args[place], []).append((item, place))
    return uses


def _passed(items: list[Any], parameters: list[Any], roots: Mapping[int, Any]) -> set[Any]:
    """The nodes through which adjoints pass to parameters."""
    active_nodes: set[Any] = set(parameters)
    written: set[Any] = set()
    for item in items:
        if isinstance(item, Guard) or not is_operation(item):
            continue
        read = [source for source in origins_of(item) if not isinstance(source, Write)]
        depends = any(source in active_nodes or group_of(source, roots) in written for source in read)
        if depends and isinstance(item, Write):
            written.add(group_of(item, roots))
        elif type(item) not in INERT and (depends or group_of(item, roots) in written):
            active_nodes.add(item)
    for root in written:
        active_nodes.update(
            item for item in items if isinstance(item, Value) and type(item) in ACTIVE and group_of(item, roots) is root
        )
    return active_nodes
