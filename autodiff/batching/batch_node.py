"""A value that is another for each of many examples: operations and writes do all of them at once.

A `BatchNode` is a node that comes through the same door as all others: `compgraph.graph.record` hands every operation on one to
`BatchNode.process`. As an array it has the shape of one example, and refuses whoever takes numbers. Its `values` have the axis of
examples first, and may be a plain array, a node, a value with a tangent, or a BatchNode of a vmap further out.

The axes of examples lie outside of all derivatives: within vmap, an operator that differentiates lifts what it is given (see
`lifting`), so that what is swept, and written into, are arrays like others, whose first axis happens to be that of examples.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.context import is_recording
from compgraph.frames import callee, frame_up, is_internal, unknown
from compgraph.graph import as_operand
from compgraph.inplace import as_traced
from compgraph.ops import getitem
from compgraph.protocols import number_methods
from compgraph.storage import owner_of, place_in, window
from compgraph.values import (
    NO_OPTIONS,
    BatchedValueError,
    InertNode,
    OperationalNode,
    TransformTracer,
    Value,
    describe,
    new_leaf,
    reported_class,
)

from .active import require_alive
from .examples import Call, front, of_examples
from .looping import each_example
from .storing import change, require_within, store
from .values import base_of, copied, depth_of, filled_rows, form, forms, plain_base

ndarray = np.ndarray
_NUMBERS = frozenset({int, float, bool, complex, np.float64, np.float32, np.int64, np.bool_})
_BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64})
_STAYING = frozenset({ops.copy, ops.astype, ops.input_of})  # they return an array for a 0-d array
_ARRAYS = frozenset(
    {np.copy, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.where, np.broadcast_to}
)  # of a scalar too
_array_ufunc: Any = Value.__array_ufunc__
_SHARING_NOTHING = ops.PIECEWISE - {ops.stop_gradient}


class BatchNode(TransformTracer):
    """A value for each of many examples, that looks like one of them.

    Attributes
    ----------
    values : array or Node
        Those of all examples, along a first axis.
    level : int
        Of which vmap they are; those further in, and derivatives within, have higher levels.
    root : BatchNode or None
        Of a view, the node that first had its buffer.
    """

    __slots__ = ()
    __class__ = reported_class
    kind = "batch"
    trace_kind = "batch"
    function = memory = _operands = code = None
    args: ClassVar[tuple[Any, ...]] = ()  # type: ignore[misc]
    parent_argnums: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    options: ClassVar[dict[str, Any]] = NO_OPTIONS  # type: ignore[misc]
    sequence_number = instruction = 0

    root: BatchNode | None
    borrows_values: bool
    _values: Any
    _seen: Any

    @classmethod
    def create_using(cls, values: Any, level: int, root: BatchNode | None = None, is_array: bool = False) -> BatchNode:
        """Make a node of the values of all examples; of numbers it is a scalar, unless it is an array or a view of one."""
        shape, dtype = values.shape[1:], values.dtype
        try:
            plain = forms[shape, dtype]
        except KeyError:
            plain = form(shape, dtype)
        node: Any = cls()  # type: ignore[call-arg]
        node.raw_value = plain
        node._values, node.level, node.root = values, level, root
        node._seen = None if root is None else root._values
        node.is_scalar = not shape and root is None and not is_array
        node.borrows_values, node._name = False, None
        return node  # type: ignore[no-any-return]

    @classmethod
    def lent(cls, values: Any, level: int, is_array: bool = True) -> BatchNode:
        """A node of values that belong to others, which are copied before one writes into them."""
        plain = plain_base(values)
        if not (plain.flags.c_contiguous and plain.flags.writeable):
            values = copied(values)
        node = cls.create_using(values, level, is_array=is_array)
        node.borrows_values = True
        return node

    @property
    def count(self) -> int:
        """How many examples there are."""
        return int(self._values.shape[0])

    @property
    def values(self) -> Any:
        """The values of all examples."""
        root = self.root
        if root is not None and root._values is not self._seen:  # its buffer became another: a copy, or one of a graph
            if self.borrows_values:
                raise TypeError(
                    f"vmap: the {describe(self)} is a view that was made within no_graph, and its base has been written "
                    "into since; copy it there (np.copy)"
                )
            self._values = bind(window, (root._values,), self._place(self._seen))
            self._seen = root._values
        return self._values

    def _place(self, buffer: Any) -> dict[str, Any]:
        """Where it lies in its root's buffer, without the axes of vmaps further out."""
        there, own, depth = plain_base(buffer), plain_base(self._values), depth_of(self._values)
        place = place_in(there, own)
        shape, strides = place["shape"][depth:], place["strides"][depth:]
        new = self.root._values  # type: ignore[union-attr]
        row = plain_base(new).strides[depth_of(new)]  # the axis of examples is the root's, which may have been repeated
        return {**place, "shape": shape, "strides": (row, *strides[1:])}

    @classmethod
    def process(cls, level: int, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` for each example."""
        require_alive(level)
        if type(function) is np.ufunc and not options and function.signature is None and function.nout == 1:
            found = _elementwise(cls, level, function, args)
            if found is not None:
                return found
        batched = [type(a) is cls and a.level == level for a in args]
        those = [a for a, b in zip(args, batched, strict=True) if b]
        _join_graph(those, args)
        values = [a.values if b else a for a, b in zip(args, batched, strict=True)]
        if function is getitem and len(args) == 2 and batched[0] and (parts := basic_parts(args[1])) is not None:
            out = bind(getitem, (values[0], (slice(None), *parts)))
            if out.ndim == 1 and Ellipsis not in parts:
                out = np.copy(out)
        else:
            out = of_examples(Call(function, values, batched, options, those[0].count))
        stays = function in _ARRAYS or (function in _STAYING and not all(a.is_scalar for a in those))
        shares_nothing = type(function) is np.ufunc or function in _SHARING_NOTHING
        return _wrapped(out, level, () if shares_nothing else those, stays)

    @classmethod
    def store(cls, level: int, target: Any, index: Any, value: Any, casting: Any) -> None:
        """``target[index] = value`` for each example."""
        require_alive(level)
        require_within(level, target, index)
        store(target, index, value, casting)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """A ufunc; its ``at`` at places that may be others for each example."""
        if len(inputs) == 1 and not options and method == "__call__" and ufunc in ops.SMOOTH_UFUNCS:  # the commonest call
            return self.process(self.level, ufunc, inputs, NO_OPTIONS)
        if method == "at" and type(as_traced(inputs[0], inputs)) is BatchNode:
            target, index, *others = inputs
            operands = tuple(map(as_operand, others))
            level = max(x.level for x in (target, *operands) if isinstance(x, Value))
            require_alive(level)
            require_within(level, target, index)
            return change(ufunc, target, index, operands)
        return _array_ufunc(self, ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A function of NumPy's; one in steps, some of which look at numbers, example by example."""
        writes_out = kwargs.get("out") is not None
        try:
            return Value.__array_function__(self, function, types, args, dict(kwargs))
        except BatchedValueError:
            if function in ops.PLAIN_FUNCTIONS or function in ops.SMOOTH_FUNCTIONS or writes_out:
                raise
            if function in ops.WRITING_FUNCTIONS:
                args[0].own(None)  # of which each example is a view
            return self.each(f"np.{function.__name__}", function, args, kwargs)

    each = staticmethod(each_example)

    def own(self, values: Any) -> None:
        """Before a write: let the buffer be its own, and one into which values of a kind can be written."""
        root = self._owning()
        upgraded = _like(root._values, values)
        if upgraded is not root._values:
            root._values = upgraded

    def _owning(self) -> BatchNode:
        """The node whose buffer it lies in, with one that nobody else writes into."""
        root = self if self.root is None else self.root
        if root.borrows_values:
            root._values, root.borrows_values = copied(root._values), False
        return root

    # ------------------------------------------------------------------------- what is not the same for all examples

    def refuse(self, what: str) -> BatchedValueError:
        """What to raise where one number is asked for."""
        return BatchedValueError(
            f"vmap: {what} of the {describe(self)}, which is another for each of the {self.count} examples; Python goes one way "
            "for all. Use np.where(condition, a, b) to choose for each example, or leave the argument out of vmap (in_axes None)"
        )

    def __hash__(self) -> int:  # type: ignore[override]
        """By identity, within the package; the user's dictionary or set would look for a number, and find none."""
        if not self.ndim and not is_internal(frame_up(1).f_code.co_filename):
            raise self.refuse("hash()")
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"BatchNode({self.count} examples of shape {self.shape}, dtype={self.dtype})"

    def __str__(self) -> str:
        if callee(frame_up(1)) in (str, unknown):  # the string may be a key or be compared
            raise self.refuse("str()")
        return repr(self)

    def __format__(self, spec: str) -> str:
        if spec:
            raise self.refuse("format()")
        return repr(self)

    @property  # type: ignore[misc]
    def strides(self) -> Any:
        """Those of one example."""
        base = plain_base(self.values)
        return base.strides[base.ndim - self.ndim :]

    @property
    def flags(self) -> Any:
        """Those of one example."""
        if self.is_scalar:
            return self.dtype.type(0).flags
        base = plain_base(self.values)
        depth = base.ndim - self.ndim
        return (base[(0,) * depth + (...,)] if all(base.shape[:depth]) else np.empty(self.shape, self.dtype)).flags


def _refusing(name: str, what: str) -> Any:
    def refuse(self: BatchNode, *args: Any, **kwargs: Any) -> Any:
        raise self.refuse(what)

    refuse.__name__ = name
    return refuse


for _name in ("bool", "float", "int", "complex", "index", "round", "trunc", "floor", "ceil"):
    setattr(BatchNode, f"__{_name}__", _refusing(f"__{_name}__", f"{_name}()"))
for _name in ("item", "tolist", "tobytes", "tofile", "dump", "dumps", "__array__", "__dlpack__"):
    setattr(BatchNode, _name, _refusing(_name, f".{_name}()"))
for _name, _method in number_methods.items():
    setattr(BatchNode, _name, _method)
BatchNode.__contains__ = _refusing("__contains__", "in")  # type: ignore[method-assign]
for _name in ("value", "data", "ctypes", "__array_interface__", "__array_struct__"):
    setattr(BatchNode, _name, property(_refusing(_name, f".{_name}")))


# ------------------------------------------------------------------------------------------------ operations


def _join_graph(nodes: list[BatchNode], operands: Any) -> None:
    """Where values meet nodes of a graph, make them nodes of their own, so that later writes leave what is recorded."""
    if not any(isinstance(base_of(a), Value) for a in operands) or not is_recording():
        return
    for node in nodes:
        root = node if node.root is None else node.root
        if type(root._values) is ndarray and not root.is_scalar:
            root._values = new_leaf(node._owning()._values, InertNode, None)


def _elementwise(cls: type[BatchNode], level: int, function: Any, args: tuple[Any, ...]) -> Any:
    """What a ufunc gives, for the commonest operands; None where more is to be looked at."""
    if len(args) == 1:
        values = args[0].values
        if type(values) is ndarray:
            return cls.create_using(function(values), level)
        return cls.create_using(bind(function, (values,)), level)
    if len(args) != 2:
        return None
    a, b = args
    if a is None or b is None:  # x == None
        return None
    x = a.values if type(a) is cls and a.level == level else a
    y = b.values if type(b) is cls and b.level == level else b
    if x is not a:
        n = y.ndim - (y is not b) if type(y) not in _NUMBERS else 0
        x = x if x.ndim > n else front(x, n)
    if y is not b:
        n = x.ndim - (x is not a) if type(x) not in _NUMBERS else 0
        y = y if y.ndim > n else front(y, n)
    is_plain = (type(x) is ndarray or type(x) in _NUMBERS) and (type(y) is ndarray or type(y) in _NUMBERS)
    if is_plain:
        return cls.create_using(function(x, y), level)
    if type(x) is ndarray or type(y) is ndarray:
        return None
    return cls.create_using(bind(function, (x, y)), level)


def basic_parts(index: Any) -> Any:
    """The parts of an index of numbers, slices, None and an ellipsis; None for others."""
    parts = index if type(index) is tuple else (index,)
    return parts if _BASIC.issuperset(map(type, parts)) else None


def _wrapped(out: Any, level: int, nodes: Any, stays: bool) -> Any:
    """Results for the caller, views with the node whose buffer they lie in."""
    if isinstance(out, (tuple, list)):
        parts: list[Any] = [None if o is None else _wrapped(o, level, nodes, stays) for o in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    plain = plain_base(out)
    root = None
    if type(plain) is ndarray:  # an operand itself, or a view of it
        owner = owner_of(plain)
        for node in nodes:
            if owner_of(plain_base(node.values)) is owner:
                if node.is_scalar:  # of a number NumPy makes arrays anew
                    out = copied(out)
                else:
                    root = node if node.root is None else node.root
                break
    made = BatchNode.create_using(out, level, root, stays)
    made.borrows_values = root is not None and not is_recording() and isinstance(base_of(root._values), Value)
    return made


# --------------------------------------------------------------------------------------------------- values


def _like(buffer: Any, value: Any) -> Any:
    """A buffer into which a value can be written: with the vmaps, the tangents and the graph that it has."""
    if not isinstance(value, Value):
        return buffer
    if type(value) is BatchNode:
        if type(buffer) is BatchNode and buffer.level >= value.level:
            return buffer  # which sees to it itself
        return BatchNode.create_using(filled_rows(buffer, value.count), value.level, is_array=True)
    if isinstance(buffer, Value) and (not value.level or buffer.level):
        return buffer
    carrier: Any = value
    return carrier.buffer_over(buffer) if value.level else new_leaf(buffer, OperationalNode, None)


class BufferFor:
    """What wraps the arrays that a function makes to be written into."""

    __slots__ = ("count", "level")

    def __init__(self, level: int, count: int) -> None:
        self.level, self.count = level, count

    def __call__(self, buffer: Any) -> BatchNode:
        """The array as one of each example."""
        return BatchNode.create_using(filled_rows(buffer, self.count), self.level, is_array=True)
