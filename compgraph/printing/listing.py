"""`program`: a graph as lines of Python, with shapes and source lines.

Repeated parts of a graph (layers, loop iterations) are folded: a listing shows only the first and the last part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..graph import GraphNode, walk
from ..guards import guards_of
from ..storage import Write, memory_of
from ..values import MultiOutput, Value, VariableNode, require_history
from ..view import FOLDED_FROM, short_location
from .calls import ListingWriter
from .names import Names, is_number

MAX_PERIOD = 200  # steps in a part
MIN_PARTS = 4  # in a repetition; of three parts, folding would hide only one
MAX_STEPS = 20_000  # only the last steps are searched
LISTS = (list, tuple)
SUFFICIENT_SHARE = 0.9  # the search ends when a repetition hides this fraction of the steps


class Repetition(NamedTuple):
    """Consecutive equal parts: the first, the middle ones, and the leaves that only the middle ones use."""

    first: list[Any]
    middle: list[list[Any]]
    leaves: list[Any]


class _Candidate(NamedTuple):
    """A possible repetition: `num_parts` parts of `period` steps. The middle parts are hidden."""

    hidden_steps: int
    period: int
    start: int
    num_parts: int


def find_repetitions(items: list[Any]) -> list[Repetition]:
    """Return the repetitions of equal parts among the steps of a graph. Of overlapping ones, the one hiding most is chosen.

    Equal steps are the same operation, with results of the same shape and dtype. Each operand is the same node, or was computed
    the same number of steps before, or is a leaf of the same kind. Indices may differ.
    """
    steps = [item for item in items if item.args][-MAX_STEPS:]
    step_indices = {item: index for index, item in enumerate(steps)}
    codes: dict[Any, int] = {}
    keys = np.array([codes.setdefault(_equality_key(item), len(codes)) for item in steps], dtype=np.int64)
    is_covered = np.zeros(len(steps), bool)
    repetitions = []
    candidates = _find_candidates(steps, step_indices, keys)
    for _, period, start, count in sorted(candidates, key=lambda each: (-each.hidden_steps, each.period)):
        span = slice(start, start + period * count)
        if not is_covered[span].any():
            is_covered[span] = True
            parts = [steps[start + k * period : start + (k + 1) * period] for k in range(count)]
            repetitions.append(Repetition(parts[0], parts[1:-1], _find_leaves_used_only_in(parts[1:-1], items)))
    return repetitions


def _find_candidates(steps: list[Any], step_indices: dict[Any, int], keys: NDArray[Any]) -> list[_Candidate]:
    """Return the repetitions of each period; they may overlap."""
    candidates = []
    for period in range(1, min(MAX_PERIOD, len(steps) // MIN_PARTS) + 1):
        start = length = 0
        for index in [*np.flatnonzero(keys[period:] == keys[:-period]).tolist(), len(steps)]:
            if index < len(steps) and not _have_equal_operands(steps[index], steps[index + period], period, step_indices):
                continue
            if index != start + length:
                count = length // period + 1
                if count >= MIN_PARTS:
                    candidates.append(_Candidate((count - 2) * period, period, start, count))
                start, length = index, 0
            length += 1
        if candidates and max(candidates).hidden_steps >= SUFFICIENT_SHARE * len(steps):
            break
    return candidates


def _equality_key(item: Any) -> Any:
    """Return the properties that equal steps share, besides their operands."""
    numbers = [a if isinstance(a, (int, float)) else None for a in item.args] if isinstance(item, Value) else []
    if getattr(item, "function", None) is ops.getitem:
        numbers = []
    return item.opname, len(item.args), *numbers, *_class_shape_dtype(item), len(getattr(item, "scope", ()))


def _class_shape_dtype(item: NDArray[Any] | Write) -> tuple[Any, ...]:
    return type(item), getattr(item, "shape", None), getattr(item, "dtype", None)


def _have_equal_operands(one: Any, other: Any, period: int, step_indices: dict[Any, int]) -> bool:
    """Whether two steps, one period apart, have equal operands."""
    if one.parent_argnums != other.parent_argnums or (isinstance(one, Write) and one.memory is not other.memory):
        return False
    for argnum in one.parent_argnums:
        a, b = one.args[argnum], other.args[argnum]
        if a is b:
            continue
        if a.args or b.args:
            if a not in step_indices or b not in step_indices or step_indices[b] - step_indices[a] != period:
                return False
        elif _class_shape_dtype(a) != _class_shape_dtype(b):
            return False
    return True


def _find_leaves_used_only_in(parts: list[list[Any]], items: list[Any]) -> list[Any]:
    """Return the leaves that only steps of the parts use."""
    part_steps = {item for part in parts for item in part}
    leaves = [item for item in items if not item.args and not getattr(item, "memory", None)]
    operands_outside = {item.args[argnum] for item in items if item not in part_steps for argnum in item.parent_argnums}
    operands_inside = {item.args[argnum] for item in part_steps for argnum in item.parent_argnums}
    return [leaf for leaf in leaves if leaf in operands_inside and leaf not in operands_outside]


LIMIT = 300  # lines
MAX_COMMENT_COLUMN = 48  # comments begin at the longest line of code, but no further right than here


@dataclass(frozen=True)
class Line:
    """A line of code with its comment and scopes; `item` is the graph item that it computes, or None."""

    code: str
    comment: str = ""
    scope: tuple[str, ...] = ()
    item: Any = None


class Listing:
    """A graph as lines of Python; ``str`` returns the text, and a notebook displays it.

    Attributes
    ----------
    names : dict
        The values of names that the text does not define: leaves, modules, large arrays, functions without a public name.
        ``exec(str(listing), names)`` recomputes the graph, unless lines are omitted.
    result : str
        The expression for the results after the lines have run: a name, or names nested like the results.
    is_whole : bool
        Whether no line is omitted.
    """

    __slots__ = ("_text", "is_whole", "names", "result")

    def __init__(self, text: str, names: dict[str, Any], result: str, is_whole: bool) -> None:
        self._text, self.names, self.result, self.is_whole = text, names, result, is_whole

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def program(results: object, *, limit: int | None = LIMIT, fold: bool | None = None) -> Listing:
    """Write the graph of some nodes as lines of Python: leaves first, then all operations in order, the result last.

    The comment of each line has the shape and dtype of its result, and the user's line. Writes into arrays are in order, parts in
    a `compgraph.scope` are in a ``with`` block, and guards (``if x > 0``) are comments, because the graph holds only for their
    recorded values.

    Parameters
    ----------
    results : Node, or nested lists, tuples and dictionaries of nodes
        The results of the graph.
    limit : int or None
        The number of lines to write, the last ones of the graph; a line with dots counts the others. None writes all.
    fold : bool, optional
        Whether only the first and the last of consecutive equal parts (layers, loop iterations) are written, and a line with dots
        counts the others. The default is True for graphs of more than 60 nodes.

    Returns
    -------
    Listing
        ``exec(str(listing), listing.names)`` runs its text, unless lines are omitted.

    Raises
    ------
    TypeError
        If `results` contains an object that is not a node.
    ValueError
        If the limit is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> cg.record_lines(False)
    >>> x = cg.variable([1.0, 2.0], "x")
    >>> w = cg.variable([[1.0, 0.0], [0.5, 2.0]], "W_1")
    >>> print(cg.program(cg.sum(np.tanh(w @ x), name="loss")))
    x                  # (2,) float64, variable
    W_1                # (2, 2) float64, variable
    v0 = W_1 @ x       # (2,) float64
    v1 = np.tanh(v0)   # (2,) float64
    loss = np.sum(v1)  # () float64
    >>> cg.record_lines()
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None to write all lines, not {limit}")
    nodes = results_of("program", results)
    items = steps_of(nodes)
    names = Names(items)
    writer = ListingWriter(names, items)
    updated_variables = _updated_variables(items)
    lines = [line for item in items for line in _lines(item, writer, item in updated_variables)]
    result = _nest_names(results, names)
    if not nodes or lines[-1].item is not results:
        lines.append(Line(result))
    lines, is_folded = _fold_lines(lines, fold)
    lines = _insert_guards(lines, items, writer)
    omitted = 0 if limit is None else max(len(lines) - limit, 0)
    if omitted:
        lines = [Line("...", f"{omitted} earlier {'line' if omitted == 1 else 'lines'}"), *lines[omitted:]]
    return Listing(_join_lines(lines, names), names.bindings, result, not omitted and not is_folded)


# ------------------------------------------------------------------------------------------------ lines


def _updated_variables(items: list[Any]) -> set[Any]:
    """Return the variables that were updated after a read; the text has the new values."""
    reads = ((item.args[position], item) for item in items for position in item.parent_argnums)
    return {node for node, reader in reads if isinstance(node, VariableNode) and node.sequence_number > reader.sequence_number}


def _lines(item: Any, writer: ListingWriter, is_updated: bool) -> list[Line]:
    """Return the lines of one item."""
    if not isinstance(item, Write) and is_number(item):
        return []
    code, line = writer.statement(item), short_location(item.line)
    if isinstance(item, Write):
        return [Line(code, line, getattr(item, "scope", ()), item)]
    parts = [_describe(item), "" if item.args else item.noun, line, "updated since it was read" if is_updated else ""]
    has_scope = item.args or item.kind == "buffer"
    return [Line(code, ", ".join(filter(None, parts)), getattr(item, "scope", ()) if has_scope else (), item)]


def _describe(item: NDArray[Any] | MultiOutput) -> str:
    """Return the shape and dtype of a value, or the number of results of a multi-output operation."""
    return f"{len(item.raw_value)} results" if isinstance(item, MultiOutput) else f"{item.shape} {item.dtype}"


def _nest_names(results: Any, names: Names) -> str:
    """Return the names of the results, nested like the results."""
    if isinstance(results, dict):
        return "{" + ", ".join(f"{key!r}: {_nest_names(value, names)}" for key, value in results.items()) + "}"
    if isinstance(results, LISTS):
        inner = ", ".join(_nest_names(value, names) for value in results)
        return f"[{inner}]" if isinstance(results, list) else f"({inner}{',' if len(results) == 1 else ''})"
    return names.literal(results.raw_value) if is_number(results) else names[results]


def _fold_lines(lines: list[Line], fold: bool | None) -> tuple[list[Line], bool]:
    """Omit lines between the first and the last of consecutive equal parts; return also whether lines were omitted."""
    items = {line.item: None for line in lines if line.item is not None}
    if fold is False or (fold is None and len(items) <= FOLDED_FROM):
        return lines, False
    summaries: dict[Any, str] = {}  # of hidden items
    for first, middle, leaves in find_repetitions(list(items)):
        size, count = len(first), len(middle)
        summary = (
            f"the last {'line' if size == 1 else f'{size} lines'} {count} more {'time' if count == 1 else 'times'}, and then:"
        )
        summaries |= dict.fromkeys([item for part in middle for item in part], summary)
        summaries |= dict.fromkeys(leaves, f"{len(leaves)} more, used in lines that are left out")
    new_lines: list[Line] = []
    for line in lines:
        comment = summaries.get(line.item)
        if comment is None:
            new_lines.append(line)
        elif not new_lines or new_lines[-1].code != "..." or new_lines[-1].comment != comment:
            new_lines.append(Line("...", comment))
    return new_lines, bool(summaries)


def _insert_guards(lines: list[Line], items: list[Any], writer: ListingWriter) -> list[Line]:
    """Insert comments on guards between the lines, in the order of recording."""
    guards, unchecked = guards_of(items)
    comments = [(guard.sequence_number, f"# {_guard_text(guard, writer)}") for guard in guards if guard.is_used]
    new_lines: list[Line] = []
    for line in lines:
        if line.item is not None and line.item.args:
            while comments and comments[0][0] < line.item.sequence_number:
                new_lines.append(Line(comments.pop(0)[1], scope=line.scope))
        new_lines.append(line)
    new_lines += [Line(text) for _, text in comments]
    unchecked = [
        text for text in unchecked if not text.startswith(".") or text.startswith((".item()", ".tolist()"))
    ]  # other methods are not listed
    return new_lines + [
        Line("# numbers left the graph here, and are not computed again: " + text) for text in dict.fromkeys(unchecked)
    ]


def _guard_text(guard: Any, writer: ListingWriter) -> str:
    """Return a guard as text: ``bool(v3 > 0) gave True, train.py:12``."""
    arguments = ", ".join(_argument_text(node, writer) for node in guard.args if isinstance(node, Value))
    conversion = guard.description.removesuffix("()")
    call_text = f"({arguments}){conversion}" if conversion.startswith(".") else f"{conversion}({arguments})"
    _, _, line = str(guard).partition(" at ")
    return ", ".join(filter(None, [f"{call_text} gave {guard.recorded!r}", short_location(line)]))


def _argument_text(node: Value, writer: ListingWriter) -> str:
    """Return the argument of a guard: a node of the graph, or an expression of such nodes."""
    if node in writer.names:
        return writer.names[node]
    nodes = [operand for operand in node.args if isinstance(operand, (Value, MultiOutput))]
    are_named = nodes and all(operand in writer.names or (isinstance(operand, Value) and is_number(operand)) for operand in nodes)
    return writer.operation(node) if are_named else f"a result of {node.opname}" if node.opname else "a value"


def _join_lines(lines: list[Line], names: Names) -> str:
    """Join the lines, with scopes as blocks and aligned comments."""
    rows: list[tuple[str, str]] = []
    open_scopes: tuple[str, ...] = ()
    for line in lines:
        common = 0
        while common < min(len(open_scopes), len(line.scope)) and open_scopes[common] == line.scope[common]:
            common += 1
        for depth in range(common, len(line.scope)):
            names.bind_module("cg")
            rows.append((f"{'    ' * depth}with cg.scope({line.scope[depth]!r}):", ""))
        open_scopes = line.scope
        rows.append(("    " * len(line.scope) + line.code, line.comment))
    width = min(max([len(code) for code, comment in rows if comment], default=0), MAX_COMMENT_COLUMN)
    return "\n".join(f"{code:{width}}  # {comment}" if comment else code for code, comment in rows)


# ------------------------------------------------------------------------------------------ steps


def results_of(operator: str, results: object) -> list[Any]:
    """Return the nodes in nested lists, tuples and dictionaries; raise a TypeError for other objects and batched values."""
    if isinstance(results, dict):
        return [node for part in results.values() for node in results_of(operator, part)]
    if isinstance(results, LISTS):
        return [node for part in results for node in results_of(operator, part)]
    require_history(results)
    if not isinstance(results, Value):
        raise TypeError(f"{operator} takes nodes, alone or in lists, tuples and dictionaries, not a {type(results).__name__}")
    if results.level:
        raise TypeError(
            f"{operator}: this value carries a batch or tangents of a function under vmap or jvp, so it has no separate program; "
            "use the node outside of the function"
        )
    return [results]


def steps_of(results: Iterable[Any]) -> list[Any]:
    """Return the leaves, operations and writes that some nodes depend on: leaves first, then in the order of recording.

    A write is included if its memory is read after it.
    """
    needed: dict[Any, None] = {}
    read_logs: set[int] = set()  # the logs, by id, of values that are read later

    def mark_needed(item: NDArray[Any] | MultiOutput) -> None:
        needed[item] = None
        memory = memory_of(item) if isinstance(item, Value) else None
        if memory is not None:
            memory.require_complete()
            read_logs.add(id(memory))

    for node in results:
        mark_needed(node)
    steps = []
    for item in sorted(walk(needed.copy(), _sources), key=_recording_order, reverse=True):
        if item in needed or (id(item.memory) in read_logs if isinstance(item, Write) else _is_read(item, read_logs)):
            steps.append(item)
            for position in item.parent_argnums:
                mark_needed(item.args[position])
    return steps[::-1]


def _sources(item: GraphNode) -> tuple[Any, ...]:
    """Return the operands of an item, and the writes into its memory."""
    operands = tuple([item.args[position] for position in item.parent_argnums])
    return (*operands, *item.memory.log) if isinstance(item, Value) and item.memory else operands


def _is_read(item: GraphNode, read_logs: set[int]) -> bool:
    return not isinstance(item, MultiOutput) and item.memory is not None and id(item.memory) in read_logs


def _recording_order(item: GraphNode) -> tuple[bool, float]:
    """Return a sort key: leaves first, because an updated variable has a higher sequence number than its readers."""
    return bool(item.args) or isinstance(item, Write), float(item.sequence_number)
