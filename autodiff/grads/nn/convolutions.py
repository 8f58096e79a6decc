"""Rules of cross-correlations: a form that is linear in three arrays, of which each operation computes one.

A batch of directions goes through at once: a direction of one array is a further batch or a further channel of it, and of the
result, for the axis that both have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.nn import conv, cross_correlate, cross_correlate_back, cross_correlate_kernel, pads_of_signal, places
from compgraph.operations import ensure_array

from ...rules import Formula, Rule, general

# Of each array, the axis that it shares with another, and whether its channels are divided into groups.
SHARED: dict[tuple[str, str], tuple[int, bool]] = {
    ("x", "out"): (0, False),
    ("out", "x"): (0, False),
    ("kernel", "out"): (0, True),
    ("out", "kernel"): (1, True),
    ("kernel", "x"): (1, False),
    ("x", "kernel"): (1, True),
}


def _real(kernel: Any) -> Any:
    """The kernel as `cross_correlate` takes it: a complex one conjugated."""
    return np.conjugate(kernel) if kernel.dtype.kind == "c" else kernel


def _plain(x: Any, kernel: Any, **options: Any) -> Any:
    """`cross_correlate`, without conjugation."""
    return cross_correlate(x, _real(kernel), **options)


def _flipped(kernel: Any) -> Any:
    return np.flip(kernel, places(kernel))


def _folded(batch: Any, axis: int, groups: int) -> Any:
    """Directions along the first axis, put into another axis of each, within its groups."""
    count, *shape = batch.shape
    split = np.reshape(batch, (count, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, 0, axis + 1), (*shape[:axis], count * shape[axis], *shape[axis + 1 :]))


def _unfolded(found: Any, axis: int, groups: int, count: int) -> Any:
    """What `_folded` undoes."""
    shape = found.shape
    each = shape[axis] // count
    split = np.reshape(found, (*shape[:axis], groups, count, each // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, axis + 1, 0), (count, *shape[:axis], each, *shape[axis + 1 :]))


def _term(compute: Formula, result: str, given: str, place: int, *others: int) -> tuple[Formula, Formula]:
    """The formula that gives `compute` what arrives, at a place among some of the operands; for one, and for a batch."""

    def one(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
        chosen = [operands[i] for i in others]
        return compute(*chosen[:place], g, *chosen[place:], **options)

    def many(g: Any, *operands: Any, **options: Any) -> Any:
        count = g.shape[0]
        (axis, grouped), (to, in_groups) = SHARED[given, result], SHARED[result, given]
        groups = options.get("groups", 1)
        found = one(_folded(g, axis, groups if grouped else 1), None, *operands, **options)
        return _unfolded(found, to, groups if in_groups else 1, count)

    return one, many


def _rule(opname: str, sized: int, pulls: list[Any], pushes: list[Any]) -> Rule:
    """A rule made of terms; the operand `sized` has the lengths of the kernel."""

    def batch(many: Formula, g: Any, *operands: Any, **options: Any) -> Any:
        if g.ndim > 2:
            return many(g, *operands, **options)
        options = {**options, "padding": pads_of_signal(operands[sized].shape[0], **options)}
        lifted = [np.reshape(x, (1, 1, x.shape[0])) for x in operands]
        return many(np.reshape(g, (g.shape[0], 1, 1, g.shape[1])), *lifted, **options)

    def pull(position: int, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
        found = batch(pulls[position][1], g, *map(ensure_array, operands), **options)
        return np.reshape(found, (g.shape[0], *np.shape(operands[position])))

    def push(tangents: Any, out: Any, *operands: Any, **options: Any) -> Any:
        total = None
        for t, term in zip(tangents, pushes, strict=True):
            if t is not None and term is not None:
                part = batch(term[1], t, *map(ensure_array, operands), **options)
                part = np.reshape(part, (t.shape[0], *out.shape))
                total = part if total is None else total + part
        return total

    rule = general(opname, *[term and term[0] for term in pulls])
    return rule.tangent(*[term and term[0] for term in pushes]).batched(pull, push)


cross_correlate_grad = _rule(
    "cross_correlate",
    1,
    [
        _term(lambda g, k, x, **o: cross_correlate_back(g, _real(k), x, **o), "x", "out", 0, 1, 0),
        _term(lambda x, g, k, **o: _real(cross_correlate_kernel(x, g, k, **o)), "kernel", "out", 1, 0, 1),
    ],
    [_term(cross_correlate, "out", "x", 0, 1), _term(cross_correlate, "out", "kernel", 1, 0)],
)
conv_grad = _rule(
    "conv",
    1,
    [
        _term(lambda g, k, x, **o: cross_correlate_back(g, _flipped(k), x, **o), "x", "out", 0, 1, 0),
        _term(lambda x, g, k, **o: _flipped(cross_correlate_kernel(x, g, k, **o)), "kernel", "out", 1, 0, 1),
    ],
    [_term(conv, "out", "x", 0, 1), _term(conv, "out", "kernel", 1, 0)],
)
cross_correlate_back_grad = _rule(
    "cross_correlate_back",
    1,
    [_term(_plain, "out", "x", 0, 1), _term(cross_correlate_kernel, "kernel", "x", 0, 0, 1), None],
    [_term(cross_correlate_back, "x", "out", 0, 1, 2), _term(cross_correlate_back, "x", "kernel", 1, 0, 2), None],
)
cross_correlate_kernel_grad = _rule(
    "cross_correlate_kernel",
    2,
    [_term(cross_correlate_back, "x", "kernel", 1, 1, 0), _term(_plain, "out", "kernel", 1, 0), None],
    [_term(cross_correlate_kernel, "kernel", "x", 0, 1, 2), _term(cross_correlate_kernel, "kernel", "out", 1, 0, 2), None],
)
