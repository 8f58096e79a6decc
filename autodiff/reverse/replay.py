"""The sweep over a graph with in-place writes: a replay of its tape, from the newest entry to the oldest.

A write is undone in a private copy of its buffer, so that each rule receives the values that its operation read. The
cotangents of a written buffer and of all its views share a *cotangent buffer* of the same layout. Reads add to it. A write
takes the cotangent of its target out of it and clears the target. The rest belongs to the node that allocated the buffer.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.context import active_checks, active_profiler
from compgraph.storage import (
    BufferCopy,
    Memory,
    Write,
    by_sequence_number,
    cycle_collector,
    last_writers,
    overlaps_itself,
    root_of,
)
from compgraph.values import (
    ACTIVE,
    INERT,
    NO_OPTIONS,
    USED_CLASS_OF,
    MultiOutput,
    Value,
    VariableNode,
    next_sequence_number,
    snapshot,
)

from ..rules import (
    LAZY_COTANGENTS,
    DerivativeBuffer,
    OverwrittenValue,
    RuleErrors,
    ScatteredCotangent,
    SharedFormulas,
    add_contribution,
    as_node,
    conform,
)
from .profiled_sweeps import profile_replay

ndarray = np.ndarray
RAW_VALUE_CLASSES = ACTIVE | INERT | USED_CLASS_OF.keys()  # the classes of operands that have a `raw_value`


class Tape(list[Any]):
    """Nodes and writes of a graph, newest first.

    Attributes
    ----------
    roots : dict
        By the id of each array: the root of its buffer if that was written in place or belongs to an updated variable, else
        None.
    """

    roots: dict[int, Any]


def build_tape(output: Any, nodes: Iterable[Any], stop: frozenset[int]) -> Tape:
    """Return the nodes of a graph, the writes that its reads depend on, and the ancestors of these writes.

    Writes without a dependent reader are included, because they must be undone. `stop` has the ids of nodes whose operands are
    not visited.
    """
    roots: dict[int, Any] = {}
    write_counts: dict[Memory, int] = {}
    queue = list(nodes)
    visited = set(map(id, queue))

    def include_writes(node: object, sequence_number: float) -> None:
        """Append the writes into an array that precede its reader, which has the sequence number."""
        if id(node) not in roots:
            root = root_of(node)
            roots[id(node)] = root if root.memory or isinstance(root, VariableNode) else None
        root = roots[id(node)]
        if root is not None and root.memory:
            memory = root.memory
            before, count = write_counts.setdefault(memory, 0), memory.count_before(sequence_number)
            if count > before:
                write_counts[memory] = count
                queue.extend(memory.log[before:count])

    if type(output.raw_value) is ndarray:
        include_writes(output, np.inf)
    for node in queue:  # the list grows during the loop
        if id(node) in stop:
            continue
        args = node.args
        for position in node.parent_argnums:
            operand = args[position]
            if id(operand) not in visited:
                visited.add(id(operand))
                queue.append(operand)
            if type(operand.raw_value) is ndarray:
                include_writes(operand, node.sequence_number)
    for memory, count in write_counts.items():
        queue.extend(memory.log[count:])
    # Leaves may be younger than their readers: an updated variable, a buffer that became a node late.
    tape = Tape(sorted([entry for entry in queue if entry.args], key=by_sequence_number, reverse=True))
    tape.extend([entry for entry in queue if not entry.args])
    tape.roots = roots
    return tape


class Replay:
    """The state of a replay: the values of buffers and the cotangents, as of the current entry of the tape."""

    def __init__(self, tape: list[Any], create_graph: bool, rules: Any, errors: RuleErrors) -> None:
        self.create_graph = create_graph
        self.rules, self.errors = rules, errors
        self.roots = tape.roots if type(tape) is Tape else {}
        self.root_by_memory = {root.memory: root for root in self.roots.values() if root is not None and root.memory}
        self.pending_undo: dict[Memory, list[Write]] = defaultdict(list)  # writes that the copies of buffers still contain
        self.value_buffers: dict[Any, BufferCopy] = {}
        self.cotangent_buffers: dict[Any, DerivativeBuffer] = {}
        self.cotangents: dict[int, Any] = {}  # by node id
        self.owned_ids: set[int] = set()  # the nodes whose cotangents were allocated here
        self.conform: Callable[[Any, Any], Any] = conform  # replaced for batches
        self.checks = active_checks()

    def buffer_values(self, root: Value) -> BufferCopy:
        """Return the buffer of a root as of the current entry.

        Writes are undone on demand, because most loops over scalars keep the values themselves.
        """
        buffer_copy = self.value_buffers.get(root)
        if buffer_copy is None:
            buffer_copy = self.value_buffers[root] = BufferCopy.copy_of(root.raw_value)
        for write in self.pending_undo.pop(root.memory, ()):
            buffer_copy.undo(write)
        return buffer_copy

    def value_at_read(self, node: Any, reader: Any, sequence_number: float) -> Any:
        """Return the value of a node as of its read by `reader`, as a node if rules receive nodes."""
        if not isinstance(node, (Value, MultiOutput)):
            return node
        root: Any = self.roots.get(id(node))
        if isinstance(root, VariableNode) and root.sequence_number > sequence_number:
            return OverwrittenValue(root, node, reader)
        log = root.memory.log if root is not None and root.memory else None
        if log and log[-1].sequence_number > sequence_number:
            value = self.buffer_values(root).window(node.raw_value)
            return snapshot(node, sequence_number, value.copy()) if self.create_graph else value
        return as_node(node) if self.create_graph else node.raw_value

    def operand_values(self, node: Value) -> tuple[list[Any], Any]:
        """Return the operand values that a node read, and its own value."""
        args, sequence_number, roots, create_graph = node.args, node.sequence_number, self.roots, self.create_graph
        if not roots and not create_graph:  # no writes
            return [a.raw_value if type(a) in RAW_VALUE_CLASSES else a for a in args], node.raw_value
        out = (
            self.value_at_read(node, node, sequence_number + 0.5)
            if create_graph or roots.get(id(node)) is not None
            else node.raw_value
        )
        if node.function is ops.getitem and isinstance(args[0], Value):  # the formula uses no value of the operand
            whole = args[0] if create_graph else args[0].raw_value
            return [whole, *[self.value_at_read(a, node, sequence_number) for a in args[1:]]], out
        if create_graph:
            return [self.value_at_read(a, node, sequence_number) for a in args], out
        return [
            a.raw_value if type(a) in ACTIVE and roots.get(id(a)) is None else self.value_at_read(a, node, sequence_number)
            for a in args
        ], out

    def materialize(self, cotangent: ScatteredCotangent, node: object) -> Any:
        """Return a cotangent, materialized if it is lazy."""
        return cotangent.materialize(node) if type(cotangent) in LAZY_COTANGENTS else cotangent

    def new_cotangent_buffer(self, root: Value) -> Any:
        """Allocate the cotangent buffer of a root."""
        return DerivativeBuffer(root.raw_value, self.create_graph)

    def accumulate(self, node: Any, contribution: Any, cotangent: Any = None) -> None:
        """Add a contribution to the cotangent of a node; `cotangent` is the argument of the formula that returned it, if any."""
        key = id(node)
        root = self.roots.get(key)
        if root is None or not root.memory:
            accumulated = self.cotangents.get(key)
            if type(contribution) not in LAZY_COTANGENTS:
                contribution = self.conform(contribution, node.raw_value)
            self.cotangents[key] = (
                contribution
                if accumulated is None
                else add_contribution(accumulated, contribution, cotangent, key, self.owned_ids)
            )
        elif overlaps_itself(node.raw_value):  # the buffer holds the cotangent of its operand, not its own
            contribution = self.conform(self.materialize(contribution, node), node.raw_value)
            self.propagate(
                node, contribution, [a if not isinstance(a, Value) else a.raw_value for a in node.args], node.raw_value
            )
        else:
            cotangent_buffer = self.cotangent_buffers.get(root)
            if cotangent_buffer is None:
                cotangent_buffer = self.cotangent_buffers[root] = self.new_cotangent_buffer(root)
            target_window = cotangent_buffer.window(node.raw_value)
            if type(contribution) is ScatteredCotangent:
                contribution.updates = [*map(conjugate_complex, contribution.updates)]
                contribution.add_to(target_window)
                contribution = contribution.dense
            if contribution is not None:
                target_window += conjugate_complex(self.conform(contribution, node.raw_value))

    def formulas(self, node: Any) -> Any:
        """Return the formulas of a node's rule."""
        return self.rules[node.function].formulas

    def propagate(self, node: Value, cotangent: Array, operands: list[Any], out: Array, needed_ids: Any = None) -> None:
        """Call the rule of a node for the contributions to its operands, or to those in `needed_ids`."""
        formulas, args, options, checks = self.formulas(node), node.args, node.options, self.checks
        create_graph, log = self.create_graph, self.errors.log
        before, self.errors.current_node = self.errors.current_node, node
        if checks is not None:
            checks.check_unchanged(node)
        if type(formulas) is SharedFormulas:
            operand_ids = {id(args[p]) for p in node.parent_argnums if type(args[p]) not in INERT}
            operand_ids = operand_ids if needed_ids is None else operand_ids & needed_ids
            formulas, operands, options = formulas.evaluate(node, operand_ids, cotangent, out, operands), [], NO_OPTIONS
        for position in node.parent_argnums:
            operand = args[position]
            if type(operand) in INERT if needed_ids is None else id(operand) not in needed_ids:
                continue
            formula = formulas[position]
            if formula is None:
                continue
            if create_graph:
                self.errors.rule_calls.append((next_sequence_number(), node))
            contribution = formula(cotangent, out, *operands, **options)
            if log is not None:
                log.append(0 if contribution is cotangent else getattr(contribution, "sequence_number", 0))
            if checks is not None and type(contribution) not in LAZY_COTANGENTS:
                checks.check_cotangent(node, position, contribution)
            if type(contribution) is ndarray and contribution.base is not None and self.roots:
                contribution = contribution.copy()  # it may be a view of a buffer that is undone later
            self.accumulate(operand, contribution, cotangent)
        self.errors.current_node = before

    def release(self, root: Any) -> None:
        """Free the buffers of a root when the node that allocated it was visited: no older entry uses them."""
        self.pending_undo.pop(root.memory, None)
        self.value_buffers.pop(root, None)
        self.cotangent_buffers.pop(root, None)

    def cotangent_at(self, root: object, plain: NDArray[Any]) -> Any:
        """Return the cotangent of a view of a buffer, or None."""
        cotangent_buffer = self.cotangent_buffers.get(root)
        return None if cotangent_buffer is None else conjugate_complex(np.copy(cotangent_buffer.window(plain)))

    def undo(self, write: Write, needed_ids: set[int]) -> None:
        """Step back over a write and pass the cotangent of its target to the stored value."""
        self.pending_undo[write.memory].append(write)
        cotangent_buffer = self.cotangent_buffers.get(self.root_by_memory[write.memory])
        if cotangent_buffer is not None:
            cotangent = self.take_cotangent(cotangent_buffer, write)
            if write.parent_argnums and id(write.args[0]) in needed_ids:
                self.accumulate(write.args[0], cotangent)

    def take_cotangent(self, cotangent_buffer: Any, write: Write) -> Any:
        """Return the cotangent of a stored value, and clear it in the cotangent buffer."""
        target_window, index = cotangent_buffer.window(write.window), write.index
        cotangent = target_window[index]
        if type(cotangent) not in ops.FLOAT_SCALARS:  # else a scalar
            cotangent = keep_last_writes(write, conjugate_complex(cotangent.copy("K")))
        target_window[index] = 0
        extra = write.args[0].raw_value.ndim - cotangent.ndim if write.parent_argnums else 0
        return cotangent if extra <= 0 else np.reshape(cotangent, (1,) * extra + cotangent.shape)


def keep_last_writes(write: Write, cotangent: NDArray[Any]) -> Any:
    """Return the cotangent of a write with repeated indices: only the value stored last at a position has one."""
    parts = write.index if type(write.index) is tuple else (write.index,)
    if not any(isinstance(part, ndarray) and part.dtype.kind in "iu" for part in parts):
        return cotangent
    last, numbers = last_writers(write.window.shape, write.index)
    return np.where(last == numbers, cotangent, 0)


def conjugate_complex(cotangent: Array) -> Any:
    """Convert between a cotangent and its form in a cotangent buffer.

    Buffers hold conjugates, so that views of the real and imaginary part have their own cotangents.
    """
    return np.conjugate(cotangent) if cotangent.dtype.kind == "c" else cotangent


def replay_sweep(
    replay: Replay,
    tape: list[Any],
    output: object,
    seed: Array,
    wrt_nodes: set[Any],
    needed_ids: set[int],
    ends: tuple[Any, ...] = (),
) -> dict[Any, Any]:
    """Make one pass over a graph by a replay; see `structural_zeros.Pass`."""
    run = functools.partial(_run_replay, replay, tape, output, seed, wrt_nodes, needed_ids, ends)
    profiler = active_profiler()
    return run() if profiler is None else profile_replay(profiler, replay, output, seed, run)


def _run_replay(
    replay: Replay, tape: list[Any], output: object, seed: Array, wrt_nodes: set[Any], needed_ids: set[int], ends: tuple[Any, ...]
) -> dict[Any, Any]:
    """Run the pass of `replay_sweep`."""
    if replay.roots:
        cycle_collector.add_bytes(sum([entry.raw_value.nbytes for entry in tape if isinstance(entry, Value)]))
    wrt_cotangents: dict[Any, Any] = {}
    roots, cotangents, create_graph = replay.roots, replay.cotangents, replay.create_graph
    wrt_ids, end_ids = set(map(id, wrt_nodes)), set(map(id, ends))
    if id(output) in needed_ids:
        replay.accumulate(output, seed)
    for entry in tape:
        if create_graph:
            replay.errors.rule_calls.append((next_sequence_number(), entry))
        if type(entry) is Write:
            replay.undo(entry, needed_ids)
            continue
        key = id(entry)
        root = roots.get(key)
        is_view = False
        if root is None or not root.memory:
            cotangent = cotangents.pop(key, None)
            if type(cotangent) in LAZY_COTANGENTS:
                cotangent = replay.materialize(cotangent, entry)
        else:
            is_view = root is not entry
            if is_view and key not in wrt_ids:  # its cotangent remains in the buffer
                continue
            cotangent = replay.cotangent_at(root, entry.raw_value)
        if cotangent is not None:
            if key in wrt_ids:
                wrt_cotangents[entry] = cotangent
            if not is_view and key not in end_ids and entry.args and entry.function not in ops.PIECEWISE:
                replay.propagate(entry, cotangent, *replay.operand_values(entry), needed_ids)
        if root is entry:
            replay.release(entry)
    return wrt_cotangents


def ids_on_paths_through_writes(tape: Tape, output: object, wrt_nodes: set[Any]) -> set[int]:
    """Return the ids of the nodes on paths from an output to a node in `wrt_nodes`, including paths through writes."""
    needed_ids: set[int] = set()
    wrt_ids = set(map(id, wrt_nodes))
    written_memories: set[Any] = set()  # memories into which needed values were written
    roots = tape.roots

    def mark_if_written(node: object) -> bool:
        """Mark a node as needed if a needed value was written into its buffer; return whether one was."""
        root = roots.get(id(node))
        is_written = root is not None and root.memory in written_memories
        if is_written and type(node) not in INERT:
            needed_ids.add(id(node))
        return is_written

    for entry in reversed(tape):
        depends = id(entry) in wrt_ids
        args = entry.args
        for position in entry.parent_argnums:
            operand = args[position]
            depends = id(operand) in needed_ids or (roots.get(id(operand)) is not None and mark_if_written(operand)) or depends
        if not depends or type(entry) in INERT:
            continue
        if type(entry) is Write:
            written_memories.add(entry.memory)
            continue
        needed_ids.add(id(entry))
        root = roots.get(id(entry))
        if root is not None and root.memory:
            written_memories.add(root.memory)
    mark_if_written(output)
    return needed_ids
