"""Values that an operation saw and that nobody has kept."""

from __future__ import annotations

from typing import Any

from compgraph import ops
from compgraph.bind import attach
from compgraph.storage import root_of, value_at
from compgraph.values import MultiOutput, Value, VariableNode, describe


def seen_by(reader: Any, operand: Any) -> Any:
    """The plain value of an operand when `reader`, a node or joint, was computed from it."""
    if not isinstance(operand, Value):
        return operand.raw_value if hasattr(operand, "raw_value") else operand
    root = root_of(operand)
    if isinstance(root, VariableNode) and root.sequence_number > reader.sequence_number:
        return Gone(root, operand, reader)
    return value_at(operand, reader.sequence_number) if root.memory else operand.raw_value


class Gone:
    """The value of a variable before it was updated: its shape and dtype are known, the numbers are gone."""

    def __init__(self, variable: Any, node: Any, reader: Any) -> None:
        self.shape, self.dtype, self.ndim, self.size = node.shape, node.dtype, node.ndim, node.size
        self._told = (variable, reader)

    def _raise(self, *_: Any, **__: Any) -> Any:
        variable, reader = self._told
        lines = "".join(f"\n{word}: {node.line}" for word, node in (("used", reader), ("updated", variable)) if node.line)
        raise ValueError(
            f"the {describe(variable)} was updated in place after {reader.opname} had used its old value, which the "
            f"derivative needs; compute the output again before asking for its gradient{lines}"
        )

    __array_ufunc__ = __array_function__ = __array__ = __getitem__ = __len__ = __iter__ = __bool__ = __float__ = _raise
    __neg__ = __abs__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _raise
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _raise
    __hash__ = None  # type: ignore[assignment]
    __getattr__ = _raise


def as_node(node: Any) -> Any:
    """A node as itself; the outputs of an operation with several, as nodes; raw operands as they are."""
    if type(node) is not MultiOutput:
        return node
    return tuple(attach(part, ops.output(k), (node,)) for k, part in enumerate(node.raw_value))


def plain_operands(node: Any) -> list[Any]:
    """The operands of a node as plain arrays, as they were when it was computed."""
    return [seen_by(node, a) for a in node.args]


def plain_result(node: Any) -> Any:
    """What a node or joint was when it was computed."""
    return value_at(node, node.sequence_number + 0.5) if isinstance(node, Value) else node.raw_value
