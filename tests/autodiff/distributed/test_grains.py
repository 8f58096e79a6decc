"""How a batch is cut, summed and dealt out: the sum's bits depend on the rows alone."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autodiff.distributed.parallel.grains import assembled, assign_grains, cuts, folded, nodes_within


@given(rows=st.integers(1, 200), grains=st.integers(1, 40))
def test_a_batch_is_cut_into_grains_of_nearly_one_size(rows: int, grains: int) -> None:
    sizes = np.diff(cuts(rows, grains))
    assert len(sizes) == min(rows, grains)
    assert sum(sizes) == rows
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


@given(data=st.data(), count=st.integers(1, 40))
def test_the_sum_has_the_same_bits_however_it_is_shared(data: st.DataObject, count: int) -> None:
    numbers = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count)
    edges = sorted(data.draw(st.sets(st.integers(1, max(count - 1, 1)), max_size=5)) | {0, count})

    def leaf(grain: int) -> list[np.ndarray]:
        return [np.array([numbers[grain]])]

    parts = {
        node: folded(leaf, node)
        for a, b in itertools.pairwise(edges)
        for node in nodes_within((a, b), (0, count))
    }  # fmt: skip
    extra = data.draw(st.integers(0, count - 1))
    parts |= {node: folded(leaf, node) for node in nodes_within((extra, count), (0, count))}  # computed twice, by others
    assert assembled(parts, (0, count))[0] == folded(leaf, (0, count))[0]


def test_gradients_that_are_one_array_are_not_written_into() -> None:
    shared = np.ones(3)
    total = folded(lambda grain: [shared, shared], (0, 5))
    assert [t.tolist() for t in total] == [[5.0] * 3] * 2
    assert shared.tolist() == [1.0] * 3


@given(
    run=st.tuples(st.integers(0, 30), st.integers(1, 40)).map(lambda t: (t[0], t[0] + t[1])),
    speeds=st.lists(st.floats(0.01, 100), min_size=1, max_size=9),
)
def test_shares_are_runs_of_all_grains_and_nobody_starves(run: tuple[int, int], speeds: list[float]) -> None:
    shares = assign_grains(run, speeds, 70)
    assert (shares[0][0], shares[-1][1]) == run
    assert all(one[1] == other[0] for one, other in itertools.pairwise(shares))
    counts = [b - a for a, b in shares]
    assert min(counts) >= (1 if run[1] - run[0] >= len(speeds) else 0)
    fair = (run[1] - run[0]) / sum(speeds)  # the time if grains could be split, and machines could have none
    assert all(c <= 1 or c / s <= 1.1 * (fair + max(1 / s for s in speeds)) for c, s in zip(counts, speeds, strict=True))


def test_shares_follow_speed_and_coincide_with_branches_where_that_costs_little() -> None:
    assert assign_grains((0, 16), [1.0, 1.0], 16) == [(0, 8), (8, 16)]
    assert assign_grains((0, 16), [1.1, 1.0], 16) == [(0, 8), (8, 16)]
    assert assign_grains((0, 16), [15.0, 1.0], 16) == [(0, 15), (15, 16)]
    assert assign_grains((0, 16), [1.0, 1.0, 1e-9], 16)[2] == (15, 16)
    assert assign_grains((0, 16), [2.0, 1.0, 1.0], 16) == [(0, 8), (8, 12), (12, 16)]
    assert assign_grains((3, 4), [1.0, 5.0], 16) == [(3, 3), (3, 4)]
