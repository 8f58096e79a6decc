"""Division of a graph into stages, with the operations, inputs and outputs of each stage.

A value that another stage reads passes through a `Port`: an additional node, recorded just before its reader (`fresh_node`). The
cotangent that returns through a port is therefore added at the position of the reader, and sums have the same bits as in one
process. The youngest readers share a port if they are in one stage; each other reader has its own port. The graph is divided into
stages at the ports.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from compgraph.executor import collect_dependencies, cut_items, items_between, origin_of, retrace_graph, retrace_sources_of
from compgraph.graph import GraphNode
from compgraph.guards import Guard, UnchangedGuard
from compgraph.storage import Write
from compgraph.values import ACTIVE, INERT, PlaceholderNode, Value, describe

from ...operators import fresh_node
from .layout import Stage, compute_stages, group_of, is_element_access, is_operation, roots_of
from .part import RESULT, Links


@dataclass(eq=False)
class Port:
    """The transfer of a value from one stage to another.

    Attributes
    ----------
    value : Node
        The value, as a node of the whole graph.
    source, target : tuple or None
        The stages. The source of a parameter is None, because it exists before all stages.
    number : int
        The number of the port in both stages. Among the ports of a value, that of the youngest reader has the smallest number.
    differentiable : bool
        Whether a cotangent is returned.
    node : Node
        The node of the port, after the graph is recorded again with ports.
    """

    value: Any
    source: Stage | None
    target: Stage
    number: int
    differentiable: bool
    node: Any = None

    @property
    def key(self) -> tuple[str, int]:
        """The key of the port in both stages."""
        return "port", self.number


@dataclass
class StagePlan:
    """The plan of one stage, on the client.

    Attributes
    ----------
    stage : tuple
        The number of the stage, and its part.
    incoming : list of Port
        The inputs from other stages.
    links : Links
        The keys of the inputs and outputs.
    pickled : bytes
        The graph, pickled for the machine; see `part.StageGraph`.
    operation_count : int
        The number of operations.
    """

    stage: Stage
    incoming: list[Port]
    links: Links
    pickled: bytes
    operation_count: int

    @property
    def part(self) -> int:
        """The part of the stage."""
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
    stage_of : dict
        The stage of each operation.
    stage_plans : list of StagePlan
        The stages, in an order in which they can run.
    index, feeds : dict
        The index of each parameter, and of each placeholder.
    homes : list of int
        For each parameter, the part that stores it.
    parameter_ports : list of Port
        The ports of parameters that are read by several stages, or by a stage outside of their home.
    """

    def __init__(self, output: Any, parameters: list[Any], items: list[Any], parts: Mapping[Any, int]) -> None:
        self.output, self.parameters, self.items = output, parameters, items
        self.index = {parameter: i for i, parameter in enumerate(parameters)}
        self.feeds = {node: i for i, node in enumerate(item for item in items if isinstance(item, PlaceholderNode))}
        self.stage_of = compute_stages(items, parts)
        self._require_whole_derivatives()
        self._roots = roots_of(items)
        self._uses = _uses_of(items)
        self._active_nodes = _find_active_nodes(items, parameters, self._roots)
        self.homes = [self._find_home(p) for p in parameters]
        self._ports: dict[tuple[Any, int], Port] = {}
        self._numbers = itertools.count()
        for value in [*parameters, *[i for i in items if isinstance(i, Value) and is_operation(i)]]:
            self._add_ports(value)
        replacements = retrace_graph(items, {}, read_operand=self._read_through_port)
        self._all_ports = sorted(dict.fromkeys(self._ports.values()), key=lambda port: port.number)
        self.parameter_ports = [port for port in self._all_ports if port.source is None]
        self.stage_plans = [self._plan_stage(stage, replacements) for stage in sorted(set(self.stage_of.values()))]

    def _require_whole_derivatives(self) -> None:
        """Raise if a derivative that is part of the graph is taken through several stages."""
        for item in self.items:
            origin = origin_of(item)
            if origin is None:
                continue
            stages = {self.stage_of[n] for n in (item, *items_between(origin.output, origin.wrt)) if n in self.stage_of}
            if len(stages) > 1:
                raise ValueError(
                    f"the derivative of the {describe(origin.output)}, within the graph, passes through several parts. Place the "
                    "differentiated operations and their derivative in one part."
                )

    def _find_home(self, parameter: Any) -> int:
        """Return the part with the most readers of a parameter; of equal parts, the first."""
        parts = [self.stage_of[item][1] for item, _ in self._uses.get(parameter, ())]
        if not parts:
            raise ValueError(
                f"Split: the {describe(self.output)} does not depend on the parameter {parameter.name!r}. Leave it out."
            )
        return max(sorted(set(parts)), key=parts.count)

    # ----------------------------------------------------------------------------------------- ports

    def _add_ports(self, value: Any) -> None:
        """Add the ports of a value."""
        uses = self._uses.get(value, [])
        home = self.stage_of.get(value)
        targets = {self.stage_of[item] for item, _ in uses}
        if home is None and len(targets) == 1 and self._is_home_part(value, *targets):
            return
        is_written = bool(getattr(group_of(value, self._roots), "memory", None))
        if value in self._active_nodes:
            differentiable_uses = [use for use in uses if not isinstance(use[0], Guard)]
            element_reads = [use for use in differentiable_uses if self._is_element_read(value, use)]
            whole_reads = [use for use in differentiable_uses if not self._is_element_read(value, use)]
            self._add_differentiable_ports(whole_reads, value, not is_written)
            self._add_ports_per_stage(element_reads, value, True, False)
            uses = [use for use in uses if isinstance(use[0], Guard)]
        self._add_ports_per_stage(uses, value, False, is_written)

    def _is_element_read(self, value: Any, use: tuple[Any, int]) -> bool:
        """Whether a reader is ``parameter[index]``. Cotangents of elements are added last; see `layout.is_element_access`."""
        return value not in self.stage_of and use[1] == 0 and is_element_access(use[0])

    def _add_differentiable_ports(self, uses: list[tuple[Any, int]], value: Any, can_share: bool) -> None:
        """Add the ports through which cotangents return. The youngest readers share one if they are in one stage."""
        home, latest = self.stage_of.get(value), None
        for item, position in uses:
            target = self.stage_of[item]
            can_share = can_share and target != home and (latest is None or latest.target == target)
            if target != home:
                if latest is None or not can_share:
                    latest = Port(value, home, target, next(self._numbers), True)
                self._ports[item, position] = latest

    def _add_ports_per_stage(self, uses: list[tuple[Any, int]], value: Any, differentiable: bool, per_reader: bool) -> None:
        """Add one port per stage, or per reader if `per_reader`; their order does not matter."""
        home, ports = self.stage_of.get(value), {}
        for item, position in uses:
            target = self.stage_of[item]
            if target != home:
                if per_reader or target not in ports:
                    ports[target] = Port(value, home, target, next(self._numbers), differentiable)
                self._ports[item, position] = ports[target]

    def _is_home_part(self, parameter: object, target: Stage) -> bool:
        return target[1] == self.homes[self.index[parameter]]

    def _read_through_port(self, item: GraphNode, position: int, replacements: Mapping[Any, Any]) -> Any:
        """Return the port node of an operand, or None. The first read of an item records all its ports, last operand first."""
        port = self._ports.get((item, position))
        if port is None:
            return None
        for other in range(len(item.args) - 1, -1, -1):
            other_port = self._ports.get((item, other))
            if other_port is not None and other_port.node is None:
                other_port.node = fresh_node(replacements[other_port.value])
        return port.node

    # ---------------------------------------------------------------------------------------- stages

    def _plan_stage(self, stage: Stage, replacements: Mapping[Any, Any]) -> StagePlan:
        """Return one stage with its graph."""
        port_nodes = {p.key: p.node for p in self._all_ports if p.target == stage}
        ported_values = {port.value for port in self.parameter_ports}
        local_parameters = [i for i, p in enumerate(self.parameters) if self.homes[i] == stage[1] and p not in ported_values]
        inputs = port_nodes | {("parameter", i): self.parameters[i] for i in local_parameters}
        inputs |= {("feed", i): node for node, i in self.feeds.items()}
        outgoing = [p for p in self._all_ports if p.source == stage]
        outputs: dict[Any, Any] = {p.key: p.node for p in outgoing}
        if self.stage_of.get(self.output) == stage:
            outputs[RESULT] = replacements[self.output]
        guards = [replacements[item] for item in self.items if isinstance(item, Guard) and self.stage_of[item] == stage]
        reachable = frozenset(collect_dependencies([*outputs.values(), *guards], retrace_sources_of, stop=inputs.values()))
        inputs = {key: node for key, node in inputs.items() if node in reachable}
        subgraph_items, input_nodes = cut_items(list(outputs.values()), list(inputs.values()), guards)
        active_keys = {p.key for p in self._all_ports if p.differentiable} | {("parameter", i) for i in local_parameters}
        differentiable_keys = [key for key in inputs if key in active_keys]
        contents = (
            {key: subgraph_items[node] for key, node in outputs.items()},
            [subgraph_items[guard] for guard in guards if not isinstance(guard, UnchangedGuard)],
            dict(zip(inputs, input_nodes, strict=True)),
            differentiable_keys,
        )
        incoming = [p for p in self._all_ports if p.target == stage and p.key in inputs]
        feeds = tuple([key for key in inputs if key[0] == "feed"])
        links = self._make_links(stage, incoming, outgoing, feeds, bool(differentiable_keys))
        operation_count = sum(1 for item in reachable if is_operation(item))
        return StagePlan(stage, incoming, links, cloudpickle.dumps(contents), operation_count)

    def _make_links(self, stage: Stage, incoming: list[Port], outgoing: list[Port], feeds: Any, has_backward: bool) -> Links:
        """Return the keys of the inputs and outputs of a stage."""
        return Links(
            stage,
            tuple([p.key for p in incoming if p.source is not None]),
            tuple([p.key for p in incoming if p.source is None and self._home_of(p) != stage[1]]),
            feeds,
            {p.key: p.target[1] for p in outgoing},
            tuple([p.key for p in outgoing if p.differentiable]),
            {p.key: p.source[1] if p.source is not None else self._home_of(p) for p in incoming if p.differentiable},
            has_backward,
        )

    def _home_of(self, port: Port) -> int:
        """Return the home of the parameter of a port."""
        return self.homes[self.index[port.value]]

    def parameter_ports_of(self, part: int) -> tuple[dict[Any, int], dict[Any, tuple[bool, int]]]:
        """Return `port_parameters` and `remote_readers` of a part; see `part.Part`."""
        port_parameters = {p.key: self.index[p.value] for p in self.parameter_ports if self._home_of(p) == part}
        incoming = [port for stage_plan in self.stage_plans if stage_plan.part != part for port in stage_plan.incoming]
        remote_readers = {p.key: (p.differentiable, p.target[1]) for p in incoming if p.key in port_parameters}
        return port_parameters, remote_readers


def _uses_of(items: list[Any]) -> dict[Any, list[tuple[Any, int]]]:
    """Return the readers of each node and the operand positions, in the order in which a sweep adds cotangents."""
    uses: dict[Any, list[tuple[Any, int]]] = {}
    for item in reversed(items):
        if origin_of(item) is None:
            for position in range(len(item.args)) if isinstance(item, Guard) else item.parent_argnums:
                if isinstance(item.args[position], Value):
                    uses.setdefault(item.args[position], []).append((item, position))
    return uses


def _find_active_nodes(items: list[Any], parameters: list[Any], roots: Mapping[int, Any]) -> set[Any]:
    """Return the nodes through which cotangents pass to parameters."""
    active_nodes: set[Any] = set(parameters)
    written_groups: set[Any] = set()
    for item in items:
        if isinstance(item, Guard) or not is_operation(item):
            continue
        operands = [source for source in retrace_sources_of(item) if not isinstance(source, Write)]
        depends_on_active = any(source in active_nodes or group_of(source, roots) in written_groups for source in operands)
        if depends_on_active and isinstance(item, Write):
            written_groups.add(group_of(item, roots))
        elif type(item) not in INERT and (depends_on_active or group_of(item, roots) in written_groups):
            active_nodes.add(item)
    for root in written_groups:
        active_nodes.update(
            item for item in items if isinstance(item, Value) and type(item) in ACTIVE and group_of(item, roots) is root
        )
    return active_nodes
