"""The graph behind a node as lists: breadth first, and in topological order."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from compgraph.graph import GraphNode, breadth_first, operands_of, topological_order
from compgraph.values import ConstantNode, MultiOutput, Node

# To a type checker x * 3 is a plain array, as NumPy declares it.
variable: Callable[..., Any] = cg.variable


def words(nodes: Iterable[GraphNode]) -> list[str]:
    """Short names of nodes: the opname of an operation, the name of a leaf."""
    return [node.opname or node.name if isinstance(node, Node) else f"joint {node.opname}" for node in nodes]


def same(actual: Sequence[GraphNode], expected: Sequence[GraphNode]) -> bool:
    """Whether two lists hold the very same nodes; ``==`` would compare their values."""
    return [id(node) for node in actual] == [id(node) for node in expected]


def is_topological(order: list[GraphNode]) -> bool:
    """Whether every operand is in the list, before the nodes computed from it."""
    place = {node: k for k, node in enumerate(order)}
    return all(place.get(operand, len(order)) < place[node] for node in order for operand in operands_of(node))


def test_breadth_first_lists_level_by_level() -> None:
    """The output, its operands in their order, then theirs."""
    x, y = variable(2.0, "x"), variable(3.0, "y")
    assert words(breadth_first(np.exp(np.sin(x)) * y)) == ["mul", "exp", "y", "sin", "x"]


def test_breadth_first_of_a_leaf() -> None:
    """A leaf is a graph of one node."""
    x = variable(2.0, "x")
    assert same(breadth_first(x), [x])
    assert same(topological_order([x]), [x])


def test_breadth_first_lists_each_node_once() -> None:
    """A node that is used in many places is listed and visited once."""
    y = x = variable(1.0, "x")
    for _ in range(60):  # 2**60 paths
        y = y * y
    order = breadth_first(y)
    assert len(order) == 61
    assert order[0] is y
    assert order[-1] is x


def test_breadth_first_distinguishes_nodes_by_identity() -> None:
    """Nodes are distinguished by identity, not by value or name."""
    x, y = variable([1.0, 2.0], "a"), variable([1.0, 2.0], "a")
    order = breadth_first(x + y)
    assert same(order[1:], [x, y])


def test_raw_operands_become_one_constant() -> None:
    """A number among the operands is one ConstantNode, whenever it is looked at."""
    x = variable(2.0, "x")
    f = 3 * x
    _, three, also_x = breadth_first(f)
    assert isinstance(three, ConstantNode)
    assert three.value == 3
    assert also_x is x
    assert breadth_first(f)[1] is three


def test_breadth_first_starts_at_several_outputs() -> None:
    x = variable(2.0, "x")
    a, b = np.sin(x), np.cos(x)
    assert words(breadth_first(a, b, a)) == ["sin", "cos", "x"]


def test_breadth_first_lists_multi_output_operation_once() -> None:
    """An operation with several outputs is one record, below its outputs."""
    x = variable(7.0, "x")
    quotient, remainder = divmod(x, 3.0)
    order = breadth_first(quotient * remainder)
    joint = order[3]
    assert same(order[1:3], [quotient, remainder])
    assert isinstance(joint, MultiOutput)
    assert sum(isinstance(node, MultiOutput) for node in order) == 1
    assert order[4] is x
    assert isinstance(order[5], ConstantNode)
    assert same(operands_of(quotient), [joint])
    assert same(operands_of(remainder), [joint])
    assert same(breadth_first(joint), order[3:])


def test_operands_are_listed_once_per_use() -> None:
    """x * x uses x twice."""
    x = variable(7.0, "x")
    assert same(operands_of(x * x), [x, x])
    assert operands_of(x) == ()


def test_topological_order_is_recording_order() -> None:
    x, y = variable(0.5, "x"), variable(4.0, "y")
    f = np.sin(x) * y + np.exp(y)
    assert words(topological_order([f])) == ["y", "x", "sin", "mul", "exp", "add"]


def test_topological_order_of_several_outputs() -> None:
    """The order does not depend on which output is named first."""
    x = variable(0.5, "x")
    a = np.sin(x)
    b = np.cos(a)
    c = np.exp(a)
    for outputs in ([a, b, c], [c, b, a], [c, b]):
        assert same(topological_order(outputs), [x, a, b, c])
    assert topological_order([]) == []


def test_topological_order_of_any_graph() -> None:
    """Operands come first in random graphs, with joints and constants."""
    choose = random.Random(0)
    steps: list[Any] = [lambda a, b: [a * b], lambda a, b: [a + 1.5], divmod]
    for _ in range(50):
        nodes: list[Any] = [variable(1.0), variable(2.0)]
        with np.errstate(all="ignore"):  # the numbers may overflow
            for _ in range(30):
                nodes.extend(choose.choice(steps)(*choose.choices(nodes, k=2)))
        assert is_topological(topological_order(choose.sample(nodes, 4)))


def test_topological_order_puts_younger_operands_first() -> None:
    """A leaf precedes its readers, also if its sequence number is larger."""
    x = variable([1.0, 2.0], "x")
    f = x * 3 + 4
    x += 1  # the variable's tick is now the youngest; the constants get theirs when they are looked at
    order = topological_order([f])
    assert is_topological(order)
    assert order[-1] is f
    assert len(order) == 5


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_topological_order_of_long_chain_needs_no_recursion(n: int) -> None:
    y = x = variable(1.0, "x")
    gc.disable()  # the collector would look at all of them again and again
    try:
        for _ in range(n):
            y = -y
        order, other_way = breadth_first(y), topological_order([y])
    finally:
        gc.enable()
    assert len(order) == n + 1
    assert order[0] is y
    assert order[-1] is x
    assert same(other_way, order[::-1])
