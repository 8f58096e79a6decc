"""Division of batches, summation by a tree, and assignment of shards: the bits of sums depend on the rows alone."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autodiff.distributed.parallel.shards import assign_shards, combine_sums, shard_bounds, sum_by_tree, tree_nodes_within


@given(rows=st.integers(1, 200), grains=st.integers(1, 40))
def test_shard_bounds_sizes_differ_by_one(rows: int, grains: int) -> None:
    sizes = np.diff(shard_bounds(rows, grains))
    assert len(sizes) == min(rows, grains)
    assert sum(sizes) == rows
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


@given(data=st.data(), count=st.integers(1, 40))
def test_combine_sums_bits_do_not_depend_on_shares(data: st.DataObject, count: int) -> None:
    numbers = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count)
    edges = sorted(data.draw(st.sets(st.integers(1, max(count - 1, 1)), max_size=5)) | {0, count})

    def leaf(shard: int) -> list[np.ndarray]:
        return [np.array([numbers[shard]])]

    parts = {
        node: sum_by_tree(leaf, node)
        for a, b in itertools.pairwise(edges)
        for node in tree_nodes_within((a, b), (0, count))
    }  # fmt: skip
    extra = data.draw(st.integers(0, count - 1))
    parts |= {node: sum_by_tree(leaf, node) for node in tree_nodes_within((extra, count), (0, count))}  # some are computed twice
    assert combine_sums(parts, (0, count))[0] == sum_by_tree(leaf, (0, count))[0]


def test_sum_by_tree_does_not_modify_shared_array() -> None:
    shared = np.ones(3)
    total = sum_by_tree(lambda shard: [shared, shared], (0, 5))
    assert [t.tolist() for t in total] == [[5.0] * 3] * 2
    assert shared.tolist() == [1.0] * 3


@given(
    shards=st.tuples(st.integers(0, 30), st.integers(1, 40)).map(lambda t: (t[0], t[0] + t[1])),
    speeds=st.lists(st.floats(0.01, 100), min_size=1, max_size=9),
)
def test_assign_shards_covers_all_and_starves_none(shards: tuple[int, int], speeds: list[float]) -> None:
    shares = assign_shards(shards, speeds, 70)
    assert (shares[0][0], shares[-1][1]) == shards
    assert all(one[1] == other[0] for one, other in itertools.pairwise(shares))
    counts = [b - a for a, b in shares]
    assert min(counts) >= (1 if shards[1] - shards[0] >= len(speeds) else 0)
    fair = (shards[1] - shards[0]) / sum(speeds)  # the time if shards could be divided, and machines could be idle
    assert all(c <= 1 or c / s <= 1.1 * (fair + max(1 / s for s in speeds)) for c, s in zip(counts, speeds, strict=True))


def test_assign_shards_follows_speed_and_tree_branches() -> None:
    assert assign_shards((0, 16), [1.0, 1.0], 16) == [(0, 8), (8, 16)]
    assert assign_shards((0, 16), [1.1, 1.0], 16) == [(0, 8), (8, 16)]
    assert assign_shards((0, 16), [15.0, 1.0], 16) == [(0, 15), (15, 16)]
    assert assign_shards((0, 16), [1.0, 1.0, 1e-9], 16)[2] == (15, 16)
    assert assign_shards((0, 16), [2.0, 1.0, 1.0], 16) == [(0, 8), (8, 12), (12, 16)]
    assert assign_shards((3, 4), [1.0, 5.0], 16) == [(3, 3), (3, 4)]
