"""The fallback for optree returns the same results as optree."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import time
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from compgraph import trees
from compgraph.trees import optree_fallback

optree = pytest.importorskip("optree")


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    weight: Any
    bias: Any


class Listed(list[Any]):
    """A class of the user's own, which is a leaf."""


KEYS = st.one_of(st.text(max_size=2), st.integers(0, 9), st.none(), st.tuples(st.integers(0, 3)))


def _containers(trees: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(trees, max_size=3)
    named = st.dictionaries(KEYS, trees, max_size=3)
    return st.one_of(
        *(several, several.map(tuple), several.map(deque), several.map(lambda x: deque(x, 5)), named),
        *(named.map(OrderedDict), named.map(lambda x: defaultdict(list, x))),
        *(st.builds(Pair, trees, trees), st.builds(Layer, trees, trees)),
    )


LEAVES = st.one_of(st.none(), st.integers(), st.just(time.gmtime(0)), st.just(Listed([1, 2])), st.just(Layer))
TREES = st.recursive(LEAVES, _containers, max_leaves=12)


@pytest.fixture(autouse=True, scope="module")
def known_classes() -> None:
    trees.flatten(Layer(1, 2))
    if Layer not in optree_fallback._registered_classes:
        parts, rebuild = lambda x: ((x.weight, x.bias), ("weight", "bias"), ("weight", "bias")), lambda _, values: Layer(*values)
        optree_fallback.register_pytree_node(Layer, parts, rebuild)


def both(tree: Any) -> tuple[tuple[list[Any], Any], tuple[list[Any], Any]]:
    return optree_fallback.tree_flatten(tree), optree.tree_flatten(tree, namespace=trees.NAMESPACE)


@given(TREES)
def test_fallback_flatten_matches_optree(tree: Any) -> None:
    (leaves, ours), (expected, theirs) = both(tree)
    assert leaves == expected
    assert ours.num_leaves == theirs.num_leaves == len(leaves)
    assert ours.is_leaf() is theirs.is_leaf()
    assert ours.paths() == theirs.paths()
    assert [way.codify("x") for way in ours.accessors()] == [way.codify("x") for way in theirs.accessors()]
    assert [way[1:].codify("x") for way in ours.accessors()] == [way[1:].codify("x") for way in theirs.accessors()]
    assert [part.num_leaves for part in ours.children()] == [part.num_leaves for part in theirs.children()]


@given(TREES)
def test_fallback_unflatten_matches_optree(tree: Any) -> None:
    (leaves, ours), (_, theirs) = both(tree)
    again = ours.unflatten(leaves)
    assert again == tree
    assert repr(again) == repr(theirs.unflatten(leaves))  # with the order of keys
    assert repr(ours.unflatten(range(len(leaves)))) == repr(theirs.unflatten(range(len(leaves))))
    with pytest.raises(ValueError, match="leaves"):
        ours.unflatten([*leaves, 1])


@given(TREES, TREES)
def test_fallback_structure_equality_matches_optree(one: Any, other: Any) -> None:
    (_, ours), (_, theirs) = both(one)
    (_, our_other), (_, their_other) = both(other)
    assert (ours == our_other) is (theirs == their_other)
    assert ours == optree_fallback.tree_flatten(copy.copy(one))[1]
    assert hash(ours) == hash(optree_fallback.tree_flatten(copy.copy(one))[1])
    assert hash(ours) == hash(our_other) or ours != our_other


@given(TREES, TREES)
@example(deque([None]), deque([None], 5))
def test_fallback_flatten_up_to_matches_optree(one: Any, other: Any) -> None:
    (_, ours), (_, theirs) = both(one)
    for tree in (one, other, {"a": one}, [one, other]):
        try:
            expected = theirs.flatten_up_to(tree)
        except ValueError:
            with pytest.raises(ValueError, match="expected a tree of structure"):
                ours.flatten_up_to(tree)
        else:
            assert ours.flatten_up_to(tree) == expected


def test_fallback_derivatives_without_optree() -> None:
    """Nested parameters, an optimizer, a compiled function, pickles of structures: in a process that has no optree."""
    program = """
import sys
sys.modules["optree"] = None  # as if it were not installed
import dataclasses, pickle
import numpy as np
import autodiff as ad, compgraph as cg
from compgraph.trees import flatten, unflatten

@dataclasses.dataclass
class Layer:
    w: object
    b: object

def loss(layers, scale=1.0):
    x = np.ones(2)
    for layer in layers["all"]:
        x = np.tanh(layer.w @ x + layer.b)
    return np.sum(x) * scale

params = {"all": [Layer(np.eye(2), np.zeros(2)), Layer(np.eye(2) * 2, np.ones(2))], "none": None}
gradients = ad.grad(loss)(params)
assert gradients["none"] is None and gradients["all"][1].w.shape == (2, 2)
ad.check_grads(loss, [params])
step = ad.optimizers.Adam(params)
before = float(loss(params))
step.step(gradients)
assert float(loss(params)) < before
assert ad.optimizers.minimize(lambda p: (p["a"] - 3.0) ** 2 + p["b"] ** 2, {"a": 0.0, "b": 1.0}) is not None
leaves, structure = flatten(params)
assert pickle.loads(pickle.dumps(structure)) == structure
assert ad.vmap(lambda p: p["x"] * 2)({"x": np.arange(3.0)}).tolist() == [0, 2, 4]
try:
    ad.grad(lambda p: np.sum(p["x"]))({"x": [1, "no"]})
except TypeError as error:
    print(error)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert process.returncode == 0, process.stderr
    assert "argument 0['x'][1]" in process.stdout


def test_fallback_structures_are_pickled() -> None:
    _, structure = optree_fallback.tree_flatten({"a": [1, 2]})
    copied = pickle.loads(pickle.dumps(structure))
    assert copied in (structure, trees.flatten({"a": [1, 2]})[1])
