"""Primitives (the user's functions as one node), NumPy's functions with an argument ``name=``, and `stop_gradient`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from .. import ops
from ..bind import bind
from ..context import constant_holder
from ..graph import as_operands, flatten_sequences
from ..interpreters import inert_leaf
from ..tracing import without_tracing
from ..values import ConstantNode, Value
from .functions import call_on_nodes
from .hints import FOREIGN_OPTIONS

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """A function of arrays that is one node of the graph. Created by `primitive`."""

    def __init__(self, function: Callable[..., Any], opname: str | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.opname = opname or function.__name__

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, *args: object, name: str | None = None, **options: object) -> Any:
        """Apply the function. The result is a node if an operand is one, or if it is given a name."""
        if not options and name is None:
            if len(args) == 1 and isinstance(args[0], Value):
                return bind(self.function, args)
            return bind(self.function, as_operands(args))
        try:
            bound = self._signature.bind(*args, **options)
        except TypeError as error:
            ops.raise_for_foreign_options(self.opname, options.keys() - self._signature.parameters.keys(), FOREIGN_OPTIONS)
            raise TypeError(f"{self.opname}() {error}") from None
        for key in [k for k, v in bound.kwargs.items() if isinstance(v, Value)]:
            raise TypeError(f"{self.opname}: {key}= is keyword-only and cannot be a node; pass node.value")
        args, options = bound.args, bound.kwargs
        if name is None and not any(isinstance(a, Value) for a in args):
            return self.function(*args, **options)
        return _set_name(name, bind(self.function, as_operands(_with_first_as_node(args, name)), options))

    def __repr__(self) -> str:
        return f"<primitive {self.opname}>"

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: object) -> Primitive:
        return self


@overload
def primitive(function: F) -> F: ...
@overload
def primitive(*, opname: str) -> Callable[[F], F]: ...


def primitive(function: Callable[..., Any] | None = None, *, opname: str | None = None) -> Any:
    """Make a function of arrays a primitive: each call of it with nodes is one node of the graph.

    Parameters
    ----------
    function : callable
        A function of plain arrays, of any shapes and dtypes, that returns an array, or a tuple or list of arrays. Its positional
        parameters are operands, which may be nodes; its keyword-only parameters are options, which may not.
    opname : str, optional
        The name of the operation; by default that of the function.

    Returns
    -------
    callable
        The same function, for plain arrays and for nodes, with one more argument ``name=``. Its derivative is declared
        with ``autodiff.rule``.

    Raises
    ------
    TypeError
        If `function` cannot be called or has no name, or `opname` is not a string.
    ValueError
        If another module has an operation of that name.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> @cg.primitive
    ... def power_of_three(x):
    ...     return x**3
    >>> y = power_of_three(cg.variable(2.0, "x"))
    >>> print(y, y.opname)
    8.0 power_of_three
    """
    if opname is not None and not isinstance(opname, str):
        raise TypeError(f"cg.primitive: opname is the name of the operation, a string, not {opname!r}")
    if function is None:
        return lambda f: primitive(f, opname=opname)  # type: ignore[call-overload]
    if not callable(function):
        raise TypeError(f"cg.primitive makes an operation of a function of arrays, not of a {type(function).__name__}")
    if opname is None and not hasattr(function, "__name__"):
        raise TypeError(f"cg.primitive: a {type(function).__name__} has no name; pass one, cg.primitive(opname=...)")
    new_primitive = Primitive(function, opname)
    existing = ops.function_by_opname(new_primitive.opname)
    if existing is not None and getattr(existing, "__module__", None) != function.__module__:
        raise ValueError(f"an operation called {new_primitive.opname!r} exists; pass another, cg.primitive(opname=...)")
    ops.register_user_function(function, new_primitive.opname)
    return new_primitive


def _with_first_as_node(args: tuple[Any, ...], name: str | None) -> tuple[Any, ...]:
    """Return the arguments; if ``name=`` is passed and none is a node, with the first as a node."""
    if name is None or any(isinstance(a, Value) for a in args):
        return args
    return (ConstantNode.create_using(args[0]), *args[1:])


def _set_name(name: str | None, result: Any) -> Any:
    """Set the name of `result` if it is a node; of several results, append a number to the name."""
    if name is not None:
        is_sequence = isinstance(result, (tuple, list))
        for k, node in enumerate(result if is_sequence else [result]):
            if isinstance(node, Value):
                node._name = f"{name}_{k}" if is_sequence else name
    return result


def accept_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an argument ``name=`` to a NumPy function: the name of the result, which becomes a node even of plain arguments."""

    @functools.wraps(function)
    def call(*args: object, name: str | None = None, **kwargs: object) -> Any:
        if kwargs:
            ops.raise_for_foreign_options(function.__name__, kwargs, FOREIGN_OPTIONS)
        if not any(isinstance(x, Value) for x in flatten_sequences((args, tuple(kwargs.values())))):
            if function in ops.REPLACED_FUNCTIONS:
                return _set_name(name, _compute_without_nodes(function, args, kwargs, name))
            if name is None:
                return function(*args, **kwargs)
            args = _with_operand_as_node(function, args)
        before = {id(a) for a in args}
        result = call_on_nodes(function, args, kwargs)
        if name is not None and id(result) in before:  # the function returned an argument, which keeps its own name
            result = bind(ops.copy, (result,))
        return _set_name(name, result)

    return call


def mirror_module(numpy_module: object, name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module `name`: a NumPy module's functions, wrapped by `accept_name`."""
    functions = ops.public_functions(numpy_module)
    get_function = functools.cache(lambda attribute: accept_name(functions[attribute]))

    def get(attribute: str) -> Any:
        if attribute not in functions:
            raise AttributeError(f"{name} has no {attribute!r}")
        return get_function(attribute)

    return get, lambda: sorted(functions)


def _compute_without_nodes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None) -> Any:
    """Call a function that is recorded in steps on plain arguments; with ``name=``, its results become nodes without operands."""
    may_use_nodes = function in ops.HIGHER_ORDER_FUNCTIONS  # through the functions that it calls
    result = call_on_nodes(function, args, kwargs) if may_use_nodes else function(*args, **kwargs)
    if name is None or isinstance(result, Value):
        return result
    return _without_operands(result)


def _without_operands(value: Any) -> Any:
    """Convert the arrays in `value` to nodes without operands."""
    return type(value)(map(_without_operands, value)) if isinstance(value, (tuple, list)) else inert_leaf(value)


def _with_operand_as_node(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert the first operand to a node; of a sequence of operands, its first."""
    position = 1 if args and isinstance(args[0], str) else 0  # einsum begins with its subscripts
    if len(args) <= position:
        raise TypeError(f"{function.__name__}: with name=, operands must be passed by position, but none were")
    operand = args[position]
    if (spec := ops.spec_of(function)) is not None and spec.lists == "sequence":
        first_operand: Any = [ConstantNode.create_using(operand[0]), *operand[1:]]
    else:
        first_operand = ConstantNode.create_using(operand)
    return (*args[:position], first_operand, *args[position + 1 :])


def expand(x: object, axis: int | tuple[int, ...] = -1, *, name: str | None = None) -> Any:
    """`x` with more axes of length one, so that it broadcasts: a vector becomes a column.

    Parameters
    ----------
    x : array_like or Node
        Of any shape.
    axis : int or tuple of int
        The position of each new axis in the result, as in ``np.expand_dims``; the last by default.
    name : str, optional
        A name for the node.

    Returns
    -------
    array or Node
        Of the same dtype.

    Raises
    ------
    numpy.exceptions.AxisError
        If the result has no such axis.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.expand([1.0, 2.0]) * [10.0, 100.0]
    array([[ 10., 100.],
           [ 20., 200.]])
    """
    return accept_name(np.expand_dims)(x, axis, name=name)


def stop_gradient(x: object) -> Any:
    """The value of `x`, treated as a constant by differentiation.

    Parameters
    ----------
    x : array_like or Node
        Of any shape and dtype.

    Returns
    -------
    array or Node
        The same value: an inert node if `x` is a node, else plain. It remains in the graph, and an executor recomputes it.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable(3.0)
    >>> gradient(x * cg.stop_gradient(x))[x]
    np.float64(3.0)
    """
    with without_tracing():  # the result is an array, not a tracer
        result = bind(ops.stop_gradient, as_operands((x,)))
    wrap_constant = constant_holder.get()
    return result if wrap_constant is None or isinstance(result, Value) else wrap_constant(result)
