"""From a schedule to steps: which items become code, and where each value lies (a pass).

Views are places in the buffer of what they view, so nothing is copied for them. What is not known here is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .... import ops
from ....executor import Schedule, require_shape
from ....guards import Guard, is_shape_guard
from ....storage import Write, place_in, value_at
from ....values import MultiOutput, Value, VariableNode
from .. import elementwise
from ..steps import Buffer, Call, Place, c_strides, dense
from . import contracting, indexing, joining, kinds
from .placing import Placing, fits
from .products import append_product
from .views import VIEWS, part_of, view_of

_ACTIVATIONS = frozenset({"relu", "sigmoid", "softplus"})  # compiled under their opnames
_SAME = {"conjugate": "copy", "fabs": "absolute", "float_power": "power"}  # of real numbers
_PART = 2**13  # numbers of an array that are copied at once to be compared
_OF_A_CONSTANT = {2.0: "square", 1.0: "copy", -1.0: "reciprocal"}  # powers


def _laid_as(dtype: Any, array: Any) -> Place:
    """A new array whose axes have the same order in memory as those of another one (NumPy's order "K")."""
    place = dense(dtype, np.shape(array))
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return place
    strides = np.empty_like(array, dtype, subok=False).strides
    return Place(place.buffer, 0, place.shape, tuple(s // place.buffer.dtype.itemsize for s in strides))


def _one_number(array: Any, place: Place) -> Any:
    """The number that all elements of an array are, zeros say; else its place."""
    numbers = np.asarray(array).ravel("K")
    if not numbers.size:
        return place
    first = numbers[0].tobytes()
    for start in (0, *range(1, numbers.size, _PART)):  # the first two are compared alone, since most arrays differ there
        part = numbers[start : start + (_PART if start else 2)]
        if part.tobytes() != part.size * first:
            return place
    return numbers[0]


def _elementwise_name(function: Any) -> str:
    """The name under which an elementwise function is compiled; empty if it is not."""
    spec = ops.spec_of(function)
    if spec is not None:
        return _SAME.get(spec.lowering, spec.lowering) if function is spec.function else ""
    opname = ops.opname_of(function)
    return opname if opname in _ACTIVATIONS and ops.function_named(opname) is function else ""


def _name_of(item: Any) -> str:
    return str(getattr(item, "opname", "") or getattr(item.function, "__name__", "a function"))


class Lowered(Placing):
    """The steps of a schedule.

    Parameters
    ----------
    schedule : Schedule
        What is to be computed.
    is_exact : bool
        Whether only operations are compiled that have NumPy's bits.
    """

    def __init__(self, schedule: Schedule, is_exact: bool = False) -> None:
        super().__init__(schedule.inputs, is_exact)
        self._schedule = schedule
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}
        for item in schedule.items:
            self._lower(item)

    def results(self) -> list[tuple[Place | None, Any]]:
        """For each output the place of its own where it will lie, or None if a call gives it; and the node."""
        found: list[tuple[Place | None, Any]] = []
        taken: set[Buffer] = set()
        for node in self._schedule.outputs:
            place = self.places.get(node)
            if place is not None and not elementwise.is_known(place.buffer.dtype):
                raise NotImplementedError(f"a result is {place.buffer.dtype}, and was not computed")
            if place is not None:
                whole = _laid_as(place.buffer.dtype, node.raw_value)
                is_own = place.strides == whole.strides and place.buffer.size == whole.buffer.size and not self.is_mutable(place)
                if not is_own or place.offset or place.buffer.is_given or place.buffer.is_called or place.buffer in taken:
                    self.map("copy", (place,), whole)
                    place = whole
                taken.add(place.buffer)
            found.append((place, node))
        return found

    # ------------------------------------------------------------------------------------------ one item

    def _lower(self, item: Any) -> None:
        if isinstance(item, Write):
            self._write(item)
        elif isinstance(item, Guard) and self._is_settled(item):
            pass
        elif isinstance(item, (Guard, MultiOutput)):
            self._call(item, "" if isinstance(item, Guard) else "it has several results")
        elif item in self._given:
            self._leaf(item, item.raw_value)
        elif not item.args:
            self._leaf(item, value_at(item, item.sequence_number) if item.memory else item.raw_value)
        else:
            why = self._compile(item)
            if why:
                self._call(item, why)
            self._check(item)

    def _is_settled(self, guard: Guard) -> bool:
        """Whether a guard is about shapes, which are the same in all runs of the program or checked, and holds."""
        if guard.function is None or not is_shape_guard(guard) or not all(map(self._has_known_shape, guard.args)):
            return False
        return bool(guard.function(*[np.broadcast_to(False, self.places[a].shape) for a in guard.args]) == guard.answer)

    def _has_known_shape(self, item: Any) -> bool:
        """Whether the shape of an item is that of its place in every run."""
        place = self.places.get(item)
        if place is None or not place.buffer.is_called:
            return place is not None
        return any(require is require_shape for require, _ in self._schedule.checks.get(item, ()))

    def _leaf(self, item: Any, value: Any) -> None:
        if item.memory and not elementwise.is_known(np.asarray(value).dtype):
            raise NotImplementedError(f"an array of {np.asarray(value).dtype} is written into")
        place = self.outside(np.asarray(item.raw_value if item in self._given else value), item)
        if item in self._given:
            self.given[item] = place
        if item.memory:  # it will be written into
            own = self.places[item] = dense(place.buffer.dtype, place.shape, item)
            self.map("copy", (_one_number(value, place) if self._is_unchanging(item) else place,), own)
        else:
            self.places[item] = place

    def _is_unchanging(self, item: Any) -> bool:
        """Whether an array has the same numbers before each run: those of variables may be set in between."""
        return not isinstance(item, VariableNode) and item not in self._given

    def _compile(self, item: Any) -> str:
        """Append the steps of an item; or say why it has none."""
        plain, function = item.raw_value, item.function
        if isinstance(function, ops.Output):
            return "it is one of several results"
        if not elementwise.is_known(np.asarray(plain).dtype):
            return f"its numbers are {plain.dtype}"
        if function in VIEWS or function is ops.getitem:
            return self._view(item)
        if function in (np.matmul, ops.stacked_matmul) or (function is ops.NUMPY.dot and max(map(np.ndim, item.args)) < 3):
            return self._product(item, [self.place(a) for a in item.args])
        if type(function) is ops.Configured and function.options.keys() == {"dtype"} and plain.dtype.kind == "f":
            function = function.function
        if function is ops.astype or (name := _elementwise_name(function)):
            name = "copy" if function is ops.astype else name
            return self._elementwise(item, function, name, [self.operand(a) for a in item.args])
        if function in (ops.copy, np.copy, ops.input_of, ops.copy_as_laid, ops.flatten):
            return self._copy(item, self.place(item.args[0]))
        if function in (np.zeros_like, np.ones_like):
            self.places[item] = place = dense(plain.dtype, plain.shape, item)
            self.map("copy", (function is np.ones_like,), place)
            return ""
        make = kinds.maker(function)
        return "NumPy's own code is called" if make is None else make(self, item)

    # ------------------------------------------------------------------------------------------ kinds of items

    def _view(self, item: Any) -> str:
        if isinstance(item.args[0], Value) and (source := self.places.get(item.args[0])) is not None:
            found = view_of(item, source)
            is_known = elementwise.is_known(source.buffer.dtype)
            if found is not None and is_known and found.shape == np.shape(item.raw_value):
                if self.is_shared(item) or not self.is_mutable(source):
                    self.places[item] = found
                else:
                    self.places[item] = own = dense(found.buffer.dtype, found.shape, item)
                    self.map("copy", (found,), own)
                return ""
        return indexing.getitem(self, item) if item.function is ops.getitem else joining.reshaped(self, item)

    def _copy(self, item: Any, source: Any) -> str:
        if not isinstance(source, Place):
            return "what is copied is not known to the compiler"
        own = dense(source.buffer.dtype, np.shape(item.raw_value), item)
        if source.shape != own.shape:  # flatten
            if not source.is_dense or item.options.get("order", "C") != "C":
                return "NumPy's own code is called"
            source = Place(source.buffer, source.offset, own.shape, own.strides)
        if not item.memory and not self.is_mutable(source):  # nobody writes into either, so that one does for both
            self.places[item] = source
            return ""
        self.places[item] = own
        self.map("copy", (source,), own)
        return ""

    def _elementwise(self, item: Any, function: Any, name: str, operands: list[Any]) -> str:
        dtype = np.asarray(item.raw_value).dtype
        operands = operands[:1] if function is ops.astype else operands
        if any(o is None for o in operands) or (item.options and function is not ops.astype):
            return "an operand or an option is not known to the compiler"
        if function is ops.astype and not set(item.options) <= {"dtype", "order", "casting", "copy"}:
            return "an option is not known to the compiler"
        if name == "relu":
            name, operands = "maximum", [*operands, 0]
        computed = self._computed_in(name, operands, dtype)
        if (
            name == "power"
            and not isinstance(operands[1], Place)
            and float(operands[1]) in _OF_A_CONSTANT
            and (computed.kind == "f" or (computed.kind in "iu" and operands[1] > 0))
        ):
            name, operands = _OF_A_CONSTANT[float(operands[1])], operands[:1]
        elif name == "power" and not isinstance(operands[1], Place) and computed.kind == "f" and operands[1] == 0:
            name, operands = "copy", [1.0]  # of nan too
        if any(type(o) is int and not fits(o, computed) for o in operands):
            return f"a number is out of the range of {computed}"
        if not elementwise.is_known(computed) or not elementwise.can_compute(name, computed):
            return f"{name} of {computed} is not compiled"
        if self.is_exact and name not in elementwise.EXACT:
            return "exact=True asks for NumPy's bits"
        self.places[item] = out = dense(dtype, np.shape(item.raw_value), item)
        self.map(name, operands, out, computed)
        return ""

    @staticmethod
    def _computed_in(name: str, operands: Sequence[Any], dtype: Any) -> Any:
        """The dtype to which NumPy converts the operands of an operation."""
        kinds = [o.buffer.dtype if isinstance(o, Place) else o for o in operands]
        kinds = [k.dtype if isinstance(k, np.generic) else k for k in kinds]
        if name == "copy":
            return kinds[0] if isinstance(kinds[0], np.dtype) else np.result_type(kinds[0])
        if name == "where":
            return dtype
        if dtype.kind == "b":
            found = np.result_type(*kinds)
            if found.kind == "f" and all(isinstance(k, np.dtype) and k.kind in "iu" for k in kinds):
                return np.dtype(object)  # int64 with uint64, which NumPy compares exactly: not compiled
            return np.dtype(bool) if name.startswith("logical_") else found
        return dtype

    def _product(self, item: Any, operands: list[Any]) -> str:
        """A product of matrices, or a stack of them."""
        dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
        if not all(isinstance(o, Place) and o.shape for o in operands) or item.options:
            return "an operand or an option is not known to the compiler"
        if dtype.kind != "f" or self.is_exact:
            return f"{item.opname} of {dtype} is not compiled"
        if item.function is ops.NUMPY.dot and any(prod(o.shape) == 1 for o in operands):
            return contracting.scaled(self, item, operands)
        a, b = (o if o.buffer.dtype == dtype else self.copied(o, dtype) for o in operands)
        a = a if len(a.shape) > 1 else Place(a.buffer, a.offset, (1, *a.shape), (0, *a.strides))
        b = b if len(b.shape) > 1 else Place(b.buffer, b.offset, (*b.shape, 1), (*b.strides, 0))
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        self.places[item] = place = dense(dtype, shape, item)
        full = (*stack, a.shape[-2], b.shape[-1])
        out = Place(place.buffer, 0, full, c_strides(full))
        if 0 in (*full, a.shape[-1]):
            self.map("copy", (0.0,), place)
            return ""
        append_product(self, a, b, out)
        return ""

    def _write(self, item: Write) -> None:
        root = self._roots[id(item.memory)]
        value, whole = self.operand(item.args[0]), self._written_place(item, root)
        target = part_of(whole, item.index if isinstance(item.index, tuple) else (item.index,))
        given = value.buffer.dtype if isinstance(value, Place) else np.asarray(value).dtype
        if target is None and indexing.written(self, whole, item.index, value):
            return
        if target is None or value is None or not fits(value, whole.buffer.dtype):
            places = {a: self.places[a] for a in item.args if isinstance(a, Value) and a in self.places}
            self.steps.append(Call(item, places, whole, "it writes at an index of arrays"))
        elif 0 not in target.shape:
            if isinstance(value, Place):
                extra = len(value.shape) - len(target.shape)
                value = Place(value.buffer, value.offset, value.shape[max(extra, 0) :], value.strides[max(extra, 0) :])
                if value.buffer is target.buffer and value.broadcast(target.shape) != target:  # they may overlap
                    value = self.copied(value, given)
            self.map("copy", (value,), target, given if isinstance(value, Place) else whole.buffer.dtype, is_write=True)

    def _written_place(self, item: Write, root: Any) -> Place:
        """Where the part of an array lies of which a write names elements."""
        whole = self.places[root]
        if item.window is root.raw_value:
            return whole
        place, size = place_in(root.raw_value, item.window), whole.buffer.dtype.itemsize
        if not root.raw_value.flags.c_contiguous or place["dtype"] != whole.buffer.dtype or place["offset"] % size:
            raise NotImplementedError("it writes into an array that does not lie in C order")
        strides = tuple(s // size for s in place["strides"])
        return Place(whole.buffer, whole.offset + place["offset"] // size, place["shape"], strides)

    # ------------------------------------------------------------------------------------------ steps

    def _call(self, item: Any, why: str) -> None:
        """Leave an item to NumPy."""
        out = None
        read = [a for a in item.args if isinstance(a, Value)]
        may_share = isinstance(item, MultiOutput) or (isinstance(item, Value) and self.is_shared(item))
        if may_share and any(a in self.places and self.is_mutable(self.places[a]) for a in read):
            raise NotImplementedError(f"{_name_of(item)} may be a view of an array that is written into")
        if isinstance(item, Value):
            if item.memory:
                raise NotImplementedError(f"the result of {item.opname}, which is not compiled, is written into")
            array = np.asarray(item.raw_value)
            if elementwise.is_known(array.dtype):
                out = self.places[item] = dense(array.dtype, array.shape, item)
                out.buffer.is_called = True
        places = {a: self.places[a] for a in read if a in self.places}
        self.steps.append(Call(item, places, out, why))

    def _check(self, item: Any) -> None:
        """Enter what has to be checked of a result; of one whose shape cannot be another nothing has."""
        checks = self._schedule.checks.get(item, ())
        last = self.steps[-1] if self.steps else None
        if not checks:
            return
        if isinstance(last, Call) and last.item is item:
            last.checks += checks
            return
        wanted = [c for c in checks if c[0] is not require_shape]  # shapes of what is compiled are known
        if wanted:
            self.steps.append(Call(item, {item: self.places[item]}, None, "", list(wanted)))
