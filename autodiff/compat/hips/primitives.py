"""Primitives that users define, and the registration of their derivatives."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.context import NoGraph, recording_on
from compgraph.graph import as_operands, to_values
from compgraph.values import Value

from ...arguments import flatten, unflatten
from ...custom import CallFunction, has_node, instantiate_zeros, transpose_pull
from .boxes import contains_box, getval, isbox
from .vspaces import dense, vspace

Function = Callable[..., Any]

# By the primitive: (argnums, ans, args, kwargs) -> (g -> cotangents), and (argnums, gs, ans, args, kwargs) -> tangent.
primitive_vjps: dict[Any, Function] = {}
primitive_jvps: dict[Any, Function] = {}
_notrace_primitives: set[Any] = set()


class VJPNode:
    """The name of reverse mode, for `register_notrace`."""


class JVPNode:
    """The name of forward mode, for `register_notrace`."""


def primitive(f_raw: Function) -> Function:
    """Make a function a primitive: a call with boxes is one operation, whose derivative `defvjp` and `defjvp` define.

    Parameters
    ----------
    f_raw : callable
        A function that is called with plain arguments. Boxes may be positional arguments, or nested in them.

    Returns
    -------
    callable
        The primitive.

    Raises
    ------
    NotImplementedError
        When differentiated: if the derivative with respect to an argument that holds boxes was not defined.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)
    (np.float64(12.0), np.float64(12.0))
    """

    @functools.wraps(f_raw, updated=())
    def f_wrapped(*args: object, **kwargs: object) -> Any:
        boxed = [position for position, argument in enumerate(args) if contains_box(argument)]
        if not boxed:
            return f_raw(*map(_plain_of_box, args), **kwargs)
        if f_wrapped in _notrace_primitives:
            return f_raw(*map(_plain_leaves, args), **kwargs)
        leaves, structure = flatten([args[position] for position in boxed])
        call = _Call(f_wrapped, f_raw, args, kwargs, boxed, structure)
        outputs = bind(CallFunction(f"autograd_{_name_of(f_raw)}"), as_operands(tuple(leaves)), {"call": call})
        return unflatten(call.results, outputs if isinstance(outputs, (tuple, list)) else [outputs])

    wrapper: Any = f_wrapped
    wrapper.__dict__.pop("__wrapped__", None)
    wrapper.fun, wrapper._is_autograd_primitive = f_raw, True
    wrapper.defvjp, wrapper.defgrad = _deprecated_method(wrapper, "defvjp"), _deprecated_method(wrapper, "defgrad")
    wrapper.defvjp_is_zero = functools.partial(_deprecated_zero, wrapper)
    return wrapper  # type: ignore[no-any-return]


def _name_of(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))


def _plain_of_box(value: object) -> Any:
    """Return the numbers of a node without a derivative, such as a mask, and other values unchanged."""
    return getval(value) if isinstance(value, Value) else value


def _plain_leaves(value: object) -> Any:
    """Return a value with the numbers of its boxes."""
    leaves, structure = flatten(value)
    return unflatten(structure, [*map(getval, leaves)])


class _Call:
    """One call of a primitive with boxes; see `autodiff.custom.call`."""

    def __init__(
        self, function: Function, f_raw: Function, args: Sequence[Any], kwargs: dict[str, Any], boxed: list[int], structure: Any
    ) -> None:
        self.function, self.f_raw = function, f_raw
        self.args = [None if position in boxed else _plain_of_box(argument) for position, argument in enumerate(args)]
        self.kwargs, self.boxed, self.structure = kwargs, boxed, structure
        self.results: Any = None
        self.point: tuple[Any, tuple[Any, ...]] = None, ()  # the plain value and operands
        self.transposable: set[int] = set()  # positions whose VJP was found to be linear

    def compute(self, *operands: object) -> Any:
        """The value."""
        leaves, self.results = flatten(self.f_raw(*self._arguments(operands), **self.kwargs))
        values = tuple(np.asarray(to_values(leaf))[()] for leaf in leaves)
        for value in values:
            if value.dtype.kind not in "biufc":
                raise TypeError(f"primitive: {_name_of(self.function)} returned an array of dtype {value.dtype}, not of numbers")
        result = values[0] if self.results.is_leaf() else values
        self.point = result, operands
        return result

    def pull(self, cotangent: Any, out: Any, *operands: object) -> list[Any]:
        """The cotangents of the operands."""
        maker = primitive_vjps.get(self.function)
        if maker is None:
            raise NotImplementedError(f"VJP of {_name_of(self.function)} wrt argnums {tuple(self.boxed)} not defined")
        is_recorded = has_node(cotangent, *operands)
        with recording_on() if is_recorded else NoGraph():
            output_cotangent = instantiate_zeros(cotangent, out) if isinstance(out, tuple) else cotangent
            vjp = maker(tuple(self.boxed), self._tree(out), self._arguments(operands), self.kwargs)
            argument_cotangents = [*vjp(self._tree(output_cotangent))]
            leaves = self._cotangents(argument_cotangents, operands)
        return leaves if is_recorded else [to_values(leaf) for leaf in leaves]

    def push(self, position: int, tangent: Any, out: Any, *operands: Any) -> Any:
        """The tangent of the value from that of one operand."""
        maker = primitive_jvps.get(self.function)
        if maker is None:
            self._require_transposable(position)
            return transpose_pull(lambda g: self.pull(g, out, *operands)[position], out, tangent)
        tangents = [tangent if k == position else np.zeros_like(x) for k, x in enumerate(operands)]
        counts = itertools.accumulate(child.num_leaves for child in self.structure.children())
        k = next(k for k, end in enumerate(counts) if position < end)
        argument_tangent = unflatten(self.structure, tangents)[k]
        output_tangent = maker((self.boxed[k],), (argument_tangent,), self._tree(out), self._arguments(operands), self.kwargs)
        leaves = self.results.flatten_up_to(dense(output_tangent))
        return tuple(leaves) if isinstance(out, tuple) else leaves[0]

    def _require_transposable(self, position: int) -> None:
        """Raise unless the VJP is linear, so that forward mode can transpose it; one that uses `getval` may not be."""
        if position in self.transposable:
            return
        out, operands = self.point
        rng = np.random.default_rng(0)
        is_tuple = isinstance(out, tuple)
        parts = [rng.normal(size=np.shape(part)).astype(part.dtype)[()] for part in (out if is_tuple else (out,))]
        tangent = rng.normal(size=np.shape(operands[position])).astype(operands[position].dtype)[()]
        pulled = self.pull(tuple(parts) if is_tuple else parts[0], out, *operands)[position]
        pushed = transpose_pull(lambda g: self.pull(g, out, *operands)[position], out, tangent)
        terms = [part * t for part, t in zip(parts, pushed if is_tuple else (pushed,), strict=True)]
        actual, expected = sum(np.sum(term) for term in terms), np.sum(pulled * tangent)
        size = sum(np.sum(np.abs(term)) for term in terms) + np.sum(np.abs(pulled * tangent))
        if not np.abs(actual - expected) <= 1e-3 * size:
            name = _name_of(self.function)
            raise NotImplementedError(
                f"JVP of {name} wrt argnums {tuple(self.boxed)} not defined, and its VJP cannot be transposed: it is not linear "
                "in the cotangent, or takes its numbers out of the graph (getval). Define it with defjvp, or use reverse mode"
            )
        self.transposable.add(position)

    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, with `operands` as the leaves of arguments that hold boxes."""
        args = list(self.args)
        for position, tree in zip(self.boxed, unflatten(self.structure, [*operands]), strict=True):
            args[position] = tree
        return tuple(args)

    def _tree(self, values: object) -> Any:
        """Leaves of the value, nested as the function returned them."""
        return unflatten(self.results, [*values] if isinstance(values, tuple) else [values])

    def _cotangents(self, cotangents: list[Any], operands: Sequence[Any]) -> list[Any]:
        """The cotangents of all operands, from those of the arguments that hold boxes."""
        if len(cotangents) != len(self.boxed):
            raise ValueError(
                f"primitive: the VJP of {_name_of(self.function)} returned {len(cotangents)} cotangents for "
                f"arguments {self.boxed}"
            )
        leaves: list[Any] = []
        for cotangent, child in zip(cotangents, self.structure.children(), strict=True):
            operands_of_argument = operands[len(leaves) : len(leaves) + child.num_leaves]
            parts = [None] * len(operands_of_argument) if cotangent is None else child.flatten_up_to(dense(cotangent))
            leaves += [
                np.zeros_like(to_values(x)) if part is None else dense(part)
                for part, x in zip(parts, operands_of_argument, strict=True)
            ]
        return [leaf if isinstance(leaf, np.ndarray) or isbox(leaf) else np.asarray(leaf)[()] for leaf in leaves]


# ------------------------------------------------------------------------------------------- registration


def defvjp_argnums(fun: Function, vjpmaker: Function) -> None:
    """Define the derivative of a primitive in reverse mode, for several arguments at once.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions, NumPy's among them, the definition has no effect.
    vjpmaker : callable
        ``(argnums, ans, args, kwargs)`` returns a function of the cotangent of the value that returns those of the
        arguments `argnums`.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> times = primitive(lambda x, y: x * y)
    >>> defvjp_argnums(times, lambda argnums, ans, args, kwargs: lambda g: [g * args[1 - k] for k in argnums])
    >>> grad(times, (0, 1))(2.0, 3.0)
    (np.float64(3.0), np.float64(2.0))
    """
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Function, vjpmaker: Function) -> None:
    """Define the derivative of a primitive in reverse mode, for each argument by one function.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions the definition has no effect.
    vjpmaker : callable
        ``(argnum, ans, args, kwargs)`` returns a function of the cotangent of the value that returns that of the
        argument `argnum`.
    """

    def make_vjp_of_argnums(argnums: Sequence[int], *rest: object) -> Function:
        pulls = [vjpmaker(argnum, *rest) for argnum in argnums]
        return lambda g: [pull(g) for pull in pulls]

    defvjp_argnums(fun, make_vjp_of_argnums)


def defvjp(fun: Function, *vjpmakers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """Define the derivative of a primitive in reverse mode.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions, NumPy's among them, the definition has no effect.
    *vjpmakers : callable or None
        For each argument, ``(ans, *args, **kwargs)`` returns a function of the cotangent of the value that returns that
        of the argument; None where the derivative is zero.
    argnums : sequence of int, optional
        The arguments of `vjpmakers`; by default the first ones.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> square = primitive(lambda x: x * x)
    >>> defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    >>> grad(square)(3.0)
    np.float64(6.0)
    """
    makers = dict(zip(itertools.count() if argnums is None else argnums, vjpmakers, strict=False))

    def make_vjp_of_argnum(argnum: int, ans: object, args: Sequence[Any], kwargs: dict[str, Any]) -> Function:
        if argnum not in makers:
            raise NotImplementedError(f"VJP of {_name_of(fun)} wrt argnum {argnum} not defined")
        maker = makers[argnum]
        return (lambda g: vspace(args[argnum]).zeros()) if maker is None else maker(ans, *args, **kwargs)

    defvjp_argnum(fun, make_vjp_of_argnum)


def defjvp_argnums(fun: Function, jvpmaker: Function) -> None:
    """Define the derivative of a primitive in forward mode, for several arguments at once.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions the definition has no effect.
    jvpmaker : callable
        ``(argnums, gs, ans, args, kwargs)`` returns the tangent of the value, given the tangents `gs` of the arguments
        `argnums`.
    """
    primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun: Function, jvpmaker: Function) -> None:
    """Define the derivative of a primitive in forward mode, for each argument by one function.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions the definition has no effect.
    jvpmaker : callable
        ``(argnum, g, ans, args, kwargs)`` returns the tangent of the value, given the tangent of the argument `argnum`.
    """

    def jvp_of_argnums(
        argnums: Sequence[int], gs: Sequence[Any], ans: object, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        tangents = [jvpmaker(argnum, g, ans, args, kwargs) for argnum, g in zip(argnums, gs, strict=True)]
        return functools.reduce(vspace(ans).add, map(dense, tangents))

    defjvp_argnums(fun, jvp_of_argnums)


def defjvp(fun: Function, *jvpfuns: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """Define the derivative of a primitive in forward mode. Without it, forward mode transposes reverse mode.

    Parameters
    ----------
    fun : callable
        A primitive; for other functions the definition has no effect.
    *jvpfuns : callable, "same" or None
        For each argument, ``(g, ans, *args, **kwargs)`` returns the tangent of the value, given the tangent of the
        argument; "same" if the function is linear in it, None if the tangent is zero.
    argnums : sequence of int, optional
        The arguments of `jvpfuns`; by default the first ones.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import make_jvp
    >>> square = primitive(lambda x: x * x)
    >>> defjvp(square, lambda g, ans, x: g * 2 * x)
    >>> make_jvp(square)(3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """
    funs = dict(zip(itertools.count() if argnums is None else argnums, jvpfuns, strict=False))

    def jvp_of_argnum(argnum: int, g: Array, ans: object, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if argnum not in funs:
            raise NotImplementedError(f"JVP of {_name_of(fun)} wrt argnum {argnum} not defined")
        definition = funs[argnum]
        if definition is None:
            return vspace(ans).zeros()
        if definition == "same":
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return definition(g, ans, *args, **kwargs)  # type: ignore[operator]

    defjvp_argnum(fun, jvp_of_argnum)


def def_linear(fun: Function) -> None:
    """Define the derivative in forward mode of a primitive that is linear in each argument."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs))


def notrace_primitive(f_raw: Function) -> Function:
    """Make a function that is called with plain arguments, so that its derivative is zero.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> largest = notrace_primitive(np.max)
    >>> grad(lambda x: np.sum(x) / largest(x))(np.array([1.0, 4.0]))
    array([0.25, 0.25])
    """

    @functools.wraps(f_raw)
    def f_wrapped(*args: object, **kwargs: object) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return f_wrapped


def register_notrace(trace_type: type, primitive_fun: Function) -> None:
    """Make the derivative of a primitive zero, in both modes."""
    _notrace_primitives.add(primitive_fun)


# ------------------------------------------------------------------------------------------- deprecated methods


def _deprecated_method(primitive_function: Function, method: str) -> Function:
    """The method `defvjp` or `defgrad` of a primitive, of versions of autograd before 1.2."""
    makers: dict[int, Function] = {}

    def define(maker: Function, argnum: int = 0) -> None:
        warnings.warn(
            f"the method {method} of primitives is deprecated; use the function defvjp", DeprecationWarning, stacklevel=2
        )

        def staged(ans: object, *args: object, **kwargs: object) -> Function:
            return lambda g: maker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        makers[argnum] = staged if method == "defvjp" else maker
        defvjp(primitive_function, *makers.values(), argnums=[*makers])

    return define


def _deprecated_zero(primitive_function: Function, argnums: Sequence[int] = (0,)) -> None:
    """The method `defvjp_is_zero` of a primitive, of versions of autograd before 1.2."""
    warnings.warn("the method defvjp_is_zero of primitives is deprecated; use defvjp", DeprecationWarning, stacklevel=2)
    defvjp(primitive_function, *[None] * len(argnums), argnums=argnums)
