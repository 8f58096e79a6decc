"""Derivatives of buffers that are written in place, and the values that operations read from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import attach, bind
from compgraph.storage import BufferCopy, root_of, scatter_to_buffer, value_at, window
from compgraph.values import MultiOutput, OperationalNode, Value, VariableNode, describe, new_leaf


class DerivativeBuffer(BufferCopy):
    """Cotangents or tangents in a buffer of the same layout as another, so that views and writes apply to both alike.

    Parameters
    ----------
    like : numpy.ndarray
        The array that allocated the buffer.
    recorded : bool
        Whether writes into the derivative buffer are recorded.
    """

    __slots__ = ()

    def __init__(self, like: NDArray[Any], recorded: bool = False) -> None:
        super().__init__(like)
        if recorded:
            self.buffer = new_leaf(self.buffer, OperationalNode, None)

    def with_values(self, like: NDArray[Any], values: object) -> DerivativeBuffer:
        """Write `values`, an array or node, at the position of `like`, and return the buffer."""
        if isinstance(values, Value):
            layout = self.layout(like)
            self.replace_buffer(bind(scatter_to_buffer, (values,), {"count": self.count, **layout}))
        else:
            self.window(like)[...] = values
        return self

    def replace_buffer(self, buffer: object) -> None:
        """Replace the array or node that is the buffer."""
        self.buffer = buffer
        self._windows.clear()

    def view_at(self, shape: tuple[int, ...], **layout: object) -> Any:
        """Return a view of the buffer."""
        if type(self.buffer) is np.ndarray:
            return super().view_at(shape, **layout)
        return bind(window, (self.buffer,), {"shape": shape, **layout})


class BatchedDerivativeBuffer(DerivativeBuffer):
    """A batch of cotangents or tangents, one after the other in one buffer; views have the batch axis first.

    Parameters
    ----------
    like : numpy.ndarray
        The array that allocated the buffer.
    length : int
        The batch size.
    recorded : bool
        Whether writes into the derivative buffer are recorded.
    """

    __slots__ = ("_batch_size", "_batch_stride")

    def __init__(self, like: NDArray[Any], length: int, recorded: bool = False) -> None:
        BufferCopy.__init__(self, like)
        self._batch_size, self._batch_stride = length, self.count * self.dtype.itemsize
        self.count *= length
        self.buffer = np.zeros(self.count, self.dtype)
        if recorded:
            self.buffer = new_leaf(self.buffer, OperationalNode, None)

    def layout(self, plain: NDArray[Any]) -> dict[str, Any]:
        """Return offset and strides of the cotangents or tangents of a view."""
        layout = super().layout(plain)
        return {**layout, "strides": (self._batch_stride, *layout["strides"])}

    def view_at(self, shape: tuple[int, ...], **layout: object) -> Any:
        """Return a view of the buffer."""
        return super().view_at((self._batch_size, *shape), **layout)


def _value_read_by(reader: Any, operand: Any) -> Any:
    """Return the value of an operand as of the time when `reader`, a node or multi-output operation, was computed from it."""
    if not isinstance(operand, Value):
        return operand.raw_value if hasattr(operand, "raw_value") else operand
    root = root_of(operand)
    if isinstance(root, VariableNode) and root.sequence_number > reader.sequence_number:
        return OverwrittenValue(root, operand, reader)
    return value_at(operand, reader.sequence_number) if root.memory else operand.raw_value


class OverwrittenValue:
    """The value of a variable before an update: its shape and dtype are known, its data is overwritten.

    Every use of the data raises.
    """

    def __init__(self, variable: Any, node: Any, reader: Any) -> None:
        self.shape, self.dtype, self.ndim, self.size = node.shape, node.dtype, node.ndim, node.size
        self._variable, self._reader = variable, reader

    def _raise(self, *_: Any, **__: Any) -> Any:
        variable, reader = self._variable, self._reader
        lines = "".join(f"\n{word}: {node.line}" for word, node in (("used", reader), ("updated", variable)) if node.line)
        raise ValueError(
            f"the {describe(variable)} was updated in place after {reader.opname} had used its old value, which the "
            f"derivative needs. Compute the output again before its gradient{lines}"
        )

    __array_ufunc__ = __array_function__ = __array__ = __getitem__ = __len__ = __iter__ = __bool__ = __float__ = _raise
    __neg__ = __abs__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _raise
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _raise
    __hash__ = None  # type: ignore[assignment]
    __getattr__ = _raise


def as_node(node: object) -> Any:
    """Return a node itself; for a multi-output operation, the tuple of its outputs as nodes."""
    if type(node) is not MultiOutput:
        return node
    return tuple(attach(part, ops.output(k), (node,)) for k, part in enumerate(node.raw_value))


def plain_operands(node: Any) -> list[Any]:
    """Return the operands of a node as plain arrays, as of the time when it was computed."""
    return [_value_read_by(node, a) for a in node.args]


def plain_result(node: Any) -> Any:
    """Return the value of a node or multi-output operation as of the time when it was computed."""
    return value_at(node, node.sequence_number + 0.5) if isinstance(node, Value) else node.raw_value
