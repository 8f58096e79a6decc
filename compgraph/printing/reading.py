"""How a graph becomes formulas: one for each result, and one for each value in between that has a name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from .. import operations
from ..graph import walk
from ..operations import Configured, Keyworded, Output
from ..storage import Write
from ..values import ConstantNode, Joint, Value, settled
from . import expressions as ex
from .elementwise import ELEMENTWISE
from .expressions import Call, Expression
from .names import is_automatic, is_number
from .selections import is_diagonal, is_identity, on_diagonal, placed

LARGE = 32  # a formula of so many symbols and operations gets a line of its own
SHARED = 12  # and one that is used more than once, of so many
SAME = {"positive", "copy", "input", "broadcast_to", "ascontiguousarray", "stop_gradient"}
OF_REAL = {"conj", "real"}
FILLED = {"ones_like": 1, "zeros_like": 0}
SHAPING = {"getitem", "reshape", "ravel", "expand_dims", "squeeze", "swapaxes", "transpose", "moveaxis", "flatten"}
ALL = slice(None)
COLUMN, ROW = ((..., None), (ALL, None)), ((None, ...), (None, ALL), (..., None, ALL))
FIRST_COLUMN, FIRST_ROW = ((..., 0), (ALL, 0)), ((0, ...), (..., 0, ALL))


class Reader:
    """Reads graphs as formulas.

    Parameters
    ----------
    named : mapping from str to array
        Names of plain arrays.

    Attributes
    ----------
    lines : dict
        The formulas that got a name: for each name its own.
    symbols : dict
        The shape and dtype of each array, by its name.
    """

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.lines: dict[str, Expression] = {}
        self.symbols: dict[str, tuple[ex.Shape, Any]] = {}
        self._known: dict[Any, Expression] = {}
        self._constants: dict[Any, Expression] = {}
        self._taken: set[str] = set(named)
        self._counts = {"c": 0, "C": 0, "z": 0}
        for name, array in named.items():
            self._enter(name, np.asarray(array))

    def read(self, nodes: list[Any], keep: frozenset[Any]) -> list[Expression]:
        """The formulas of some nodes; those of `keep` are not given a line of their own."""
        items = sorted(walk(nodes, _operands), key=lambda item: (bool(item.args), item.tick))
        uses: dict[Any, int] = {}
        for item in items:
            if isinstance(item, Write) or (isinstance(item, Value) and item.memory):
                raise ValueError(
                    f"latex: an array was written in place ({item.line or 'its line was not recorded'}), and mathematics has no "
                    "word for that; compgraph.program(node) writes the steps, in order"
                )
            for operand in _operands(item):
                uses[operand] = uses.get(operand, 0) + 1
        self._reserve(items)
        for item in items:
            if item not in self._known:
                found = self._leaf(item) if not item.args else self._operation(item)
                own = item not in keep and isinstance(item, Value) and bool(item.args) and found.head not in ("symbol", "number")
                own = own and (found.ndim != 2 or ex.as_vector(found) is None)  # the next step takes the vector from it
                chosen = own and not is_automatic(item)
                if chosen or (own and found.size >= (LARGE if uses.get(item, 0) < 2 else SHARED)):
                    found = self._line(found, item.name if chosen else None)
                self._known[item] = found
        return [self._known[node] for node in nodes]

    def name_of(self, node: Any) -> str:
        """The name by which formulas call a node that has been read."""
        known = self._known.get(node)
        return str(known.data if known is not None and known.head == "symbol" else node.name)

    # ---------------------------------------------------------------------------------------------- leaves

    def _reserve(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, Value) and not is_automatic(item):
                self.symbols.setdefault(item.name, (item.shape, item.dtype))

    def _new(self, letter: str) -> str:
        while True:
            self._counts[letter] += 1
            name = f"{letter}_{self._counts[letter]}"
            if name not in self.symbols:
                return name

    def _line(self, found: Expression, name: str | None) -> Expression:
        name = self._new("z") if name is None else self._free(name)
        self.lines[name] = found
        return ex.symbol(name, found.shape)

    def _leaf(self, node: Any) -> Expression:
        if isinstance(node, ConstantNode) and is_automatic(node):
            return self._constant(node.plain)
        name = self._free(node.name)
        self.symbols[name] = node.shape, node.dtype
        return ex.symbol(name, node.shape)

    def _free(self, name: str) -> str:
        """A name, with primes if others have it."""
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        return name

    def _enter(self, name: str, array: Any) -> Expression:
        """A plain array by a name, also as its transpose and with the other sign, as derivatives use it."""
        found = ex.symbol(name, array.shape)
        self.symbols[name] = array.shape, array.dtype
        self._constants.setdefault(_key(array), found)
        if array.dtype.kind in "fc":
            self._constants.setdefault(_key(-array), ex.mul([ex.number(-1), found], array.shape))
        if array.ndim == 2:
            self._constants.setdefault(_key(array.T), ex.transpose(found))
        return found

    def _constant(self, value: Any) -> Expression:
        array = np.asarray(value)
        known = self._constants.get(_key(array)) if array.ndim else None
        if known is None and is_identity(array):
            return ex.mul([ex.number(array[0, 0]), ex.identity(len(array))], array.shape)
        if known is None and array.size and (array.ndim == 0 or (array.ravel()[:1] == array).all()):
            return ex.number(array.ravel()[0], array.shape)
        return self._enter(self._new("C" if array.ndim > 1 else "c"), array) if known is None else known

    # ------------------------------------------------------------------------------------------ operations

    def _operand(self, value: Any) -> Expression:
        if isinstance(value, (Value, Joint)):
            return self._constant(value.plain) if isinstance(value, Value) and is_number(value) else self._known[value]
        value = settled(value)
        if isinstance(value, (tuple, list, slice, str, dict)) or value is None or value is Ellipsis:  # an index, a choice
            return ex.call(Call("option", None, {"value": value}, False, (_said(value),)), [], ())
        return self._constant(value)

    def _operation(self, item: Any) -> Expression:
        opname, shape = item.opname, getattr(item, "shape", ())
        if opname in FILLED:
            return ex.number(FILLED[opname], shape)
        if isinstance(item.function, Output):
            return ex.call(
                Call("component", item.function, {}, False, (item.function.index,)), [self._operand(item.args[0])], shape
            )
        first = self._operand(item.args[0]) if opname in SHAPING else None
        if first is not None and first.is_number():
            return ex.number(first.data, shape)
        simple = getattr(self, f"_{opname}", None) if not isinstance(item.function, Configured) else None
        args = [self._operand(a) for a in item.args] if item.function is not operations.getitem else []
        if opname in SAME or (opname in OF_REAL and item.args[0].dtype.kind != "c") or self._is_cast(item):
            return _broadcast(args[0], shape)
        made: Expression | None = None
        is_ufunc = isinstance(item.function, np.ufunc) or item.function is operations.power or opname == "over"
        if opname in ELEMENTWISE and is_ufunc and (not item.options or opname == "over"):
            made = ELEMENTWISE[opname](args, shape)
        elif simple is not None:
            made = simple(item, args)
        return self._call(item) if made is None else made

    def _is_cast(self, item: Any) -> bool:
        """Whether an operation only changes the dtype, to one that holds the same numbers."""
        return item.opname == "astype" and item.dtype.kind in "fc" and item.args[0].dtype.kind in "biuf"

    def _call(self, item: Any) -> Expression:
        function, options = item.function, dict(item.options)
        elementwise = isinstance(function, np.ufunc) and function.signature is None and function.nout == 1
        elementwise |= item.opname in ("relu", "sigmoid", "softplus", "where")
        if function is operations.getitem:
            index = item.args[1] if len(item.args) == 2 else tuple(item.args[1:])
            what = Call("getitem", function, {"index": index}, False, (_said(index),))
            return ex.call(what, [self._operand(item.args[0])], item.shape)
        said = tuple([(name, _said(value)) for name, value in _chosen(options).items()])
        what = Call(item.opname, function, options, elementwise and not options, said)
        return ex.call(what, [self._operand(a) for a in item.args], getattr(item, "shape", ()))

    # Each of the following gives the formula of an operation, or None where it is to be a call.

    def _getitem(self, item: Any, _: Any) -> Expression | None:
        """Of indices those that make a vector a column or a row, and take it from one."""
        x, index = self._operand(item.args[0]), item.args[1] if len(item.args) == 2 else None
        if index is Ellipsis:
            return x
        if not x.ndim and isinstance(index, tuple) and all(i is None or i is Ellipsis for i in index):
            return ex.Expression("mul", (x,), item.shape)
        if isinstance(index, np.ndarray) and index.dtype == bool and index.all() and x.shape == item.shape:
            return x
        is_plain = isinstance(index, tuple) and all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index)
        if not is_plain:
            return None
        if x.ndim == 1 and index in COLUMN:
            return ex.column(x)
        if x.ndim == 1 and index in ROW:
            return ex.row(x)
        is_first = (index in FIRST_COLUMN and x.shape[1:] == (1,)) or (index in FIRST_ROW and x.ndim == 2 and x.shape[0] == 1)
        return ex.as_vector(x) if is_first else None

    def _sum(self, item: Any, args: list[Expression]) -> Expression | None:
        if isinstance(item.function, Keyworded) or not set(_chosen(item.options)) <= {"axis", "keepdims"}:
            return None
        return ex.sum_over(args[0], _axes(item), bool(item.options.get("keepdims", False)), item.shape)

    def _mean(self, item: Any, args: list[Expression]) -> Expression | None:
        total = self._sum(item, args)
        count = math.prod(args[0].shape[axis] for axis in _axes(item)) if total is not None else 0
        return ex.mul([ex.number(Fraction(1, count)), total], item.shape) if total is not None and count else None

    def _matmul(self, item: Any, args: list[Expression]) -> Expression | None:
        a, b = args
        if a.ndim == 1 and b.ndim == 2:
            return ex.matmul([ex.transpose(b), a], item.shape)
        return ex.matmul([a, b], item.shape) if 0 < a.ndim <= 2 and 0 < b.ndim <= 2 else None

    def _dot(self, item: Any, args: list[Expression]) -> Expression | None:
        return ex.mul(args, item.shape) if not args[0].ndim or not args[1].ndim else self._matmul(item, args)

    def _inner(self, item: Any, args: list[Expression]) -> Expression | None:
        return self._dot(item, args) if max(args[0].ndim, args[1].ndim) <= 1 else None

    def _vdot(self, item: Any, args: list[Expression]) -> Expression | None:
        is_real = all(self._dtype(a).kind != "c" for a in item.args)
        return self._inner(item, args) if is_real else None

    def _vecdot(self, item: Any, args: list[Expression]) -> Expression | None:
        return self._vdot(item, args)

    def _outer(self, item: Any, args: list[Expression]) -> Expression | None:
        a, b = args
        return ex.matmul([ex.column(a), ex.row(b)], item.shape) if a.ndim == b.ndim == 1 else None

    def _transpose(self, item: Any, args: list[Expression]) -> Expression | None:
        axes = item.options.get("axes")
        return ex.transpose(args[0]) if args[0].ndim <= 2 and (axes is None or tuple(axes) in ((1, 0), (-1, -2))) else None

    def _swapaxes(self, item: Any, args: list[Expression]) -> Expression | None:
        x, axes = args[0], {item.options.get("axis1", 0) % 2, item.options.get("axis2", 0) % 2}
        return ex.transpose(x) if x.ndim == 2 and len(axes) == 2 and set(item.options) == {"axis1", "axis2"} else None

    def _reshape(self, item: Any, args: list[Expression]) -> Expression | None:
        if args[0].shape == item.shape:
            return args[0]
        source = item.args[0]
        if getattr(source, "opname", None) == "scatter" and len(source.args) == 3 and source.ndim == 1:
            index = settled(source.args[2])
            if isinstance(index, np.ndarray) and is_diagonal(index, item.shape):
                return on_diagonal(self._operand(source.args[1]), item.shape)
        return None

    def _ravel(self, item: Any, args: list[Expression]) -> Expression | None:
        return self._reshape(item, args)

    def _where(self, item: Any, args: list[Expression]) -> Expression | None:
        if len(args) != 3 or not args[0].is_number():
            return None
        return _broadcast(args[1] if args[0].data else args[2], item.shape)

    def _expand_dims(self, item: Any, args: list[Expression]) -> Expression | None:
        if args[0].ndim != 1:
            return None if args[0].ndim else ex.Expression("mul", (args[0],), item.shape)
        return ex.column(args[0]) if item.options.get("axis") in (1, -1) else ex.row(args[0])

    def _squeeze(self, item: Any, args: list[Expression]) -> Expression | None:
        return ex.as_vector(args[0]) if args[0].ndim == 2 and item.ndim == 1 else None

    def _linalg_norm(self, item: Any, args: list[Expression]) -> Expression | None:
        return (
            ex.call(Call("norm", np.linalg.norm), args, ())
            if not any(v for v in item.options.values()) and item.ndim == 0
            else None
        )

    def _linalg_inv(self, item: Any, args: list[Expression]) -> Expression | None:
        return ex.call(Call("inverse", np.linalg.inv), args, item.shape) if item.ndim == 2 else None

    def _linalg_solve(self, item: Any, args: list[Expression]) -> Expression | None:
        a, b = args
        return (
            ex.matmul([ex.call(Call("inverse", np.linalg.inv), [a], a.shape), b], item.shape)
            if a.ndim == 2 and b.ndim < 3
            else None
        )

    def _scatter(self, item: Any, _: Any) -> Expression | None:
        """The derivative of elements and parts: a sum of pieces, each at its place."""
        pieces: list[Expression] = []
        start = 1
        for count in item.options["layout"]:
            index = tuple([settled(part) for part in item.args[start + 1 : start + 1 + count]])
            index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
            piece = placed(self._operand(item.args[start]), index, item.shape)
            if piece is None:
                return None
            pieces.append(piece)
            start += 1 + count
        return ex.add(pieces, item.shape)

    def _dtype(self, value: Any) -> np.dtype[Any]:
        return value.dtype if isinstance(value, Value) else np.asarray(value).dtype


def _operands(item: Any) -> tuple[Any, ...]:
    """What a formula of an item speaks of: of arrays that are filled with a number nothing."""
    if isinstance(item, Write):
        return ()
    written = item.memory.log if isinstance(item, Value) and item.memory else ()
    return (*written, *[item.args[p] for p in item.edges]) if getattr(item, "opname", None) not in FILLED else ()


def _axes(item: Any) -> tuple[int, ...]:
    axis, ndim = item.options.get("axis"), np.ndim(item.args[0])
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(int(each) % ndim for each in (axis if isinstance(axis, tuple) else (axis,)))) if ndim else ()


def _broadcast(x: Expression, shape: ex.Shape) -> Expression:
    """An expression repeated to a shape."""
    if x.is_number():
        return ex.number(x.data, shape)
    return x if x.shape == shape else ex.Expression("mul", (x,), shape)


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options, without those that say what holds anyway."""
    usual = {"where": True, "keepdims": False}
    return {name: value for name, value in options.items() if value is not None and value is not usual.get(name)}


def _said(value: Any) -> Any:
    """A value that options are compared and written by."""
    return (
        tuple(map(_said, value)) if isinstance(value, (tuple, list)) else value.name if isinstance(value, Value) else repr(value)
    )


def _key(array: Any) -> Any:
    return array.shape, array.tobytes(), array.dtype
