"""Differential operators with the signatures and conventions of HIPS/autograd."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.context import recording_on
from compgraph.frames import warn_user
from compgraph.values import Value

from ... import operators
from ...arguments import Arguments, as_direction, flatten, unflatten
from ...operators import Trace
from .boxes import getval, isbox
from .vspaces import vspace

Function = Callable[..., Any]
Argnum = int | tuple[int, ...] | list[int]

__all__ = [
    "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian", "hessian_tensor_product", "holomorphic_grad",
    "jacobian", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict",
    "tensor_jacobian_product", "unary_to_nary", "value_and_grad",
]  # fmt: skip


def unary_to_nary(unary_operator: Function) -> Function:
    """Extend an operator on functions of one argument to functions of several.

    Parameters
    ----------
    unary_operator : callable
        ``(fun, x, *options)``, where `fun` is a function of `x`.

    Returns
    -------
    callable
        ``(fun, argnum=0, *options)`` returns a function of the arguments of `fun`. Its argument `argnum`, or the tuple of
        its arguments `argnum`, is the `x` of `unary_operator`.

    Examples
    --------
    >>> @unary_to_nary
    ... def twice(fun, x):
    ...     return 2 * fun(x)
    >>> twice(lambda x, y: x - y)(3.0, 1.0)
    4.0
    """

    @functools.wraps(unary_operator)
    def nary_operator(fun: Function, argnum: Argnum = 0, *options: object, **named: object) -> Function:
        def nary_f(*args: object, **kwargs: object) -> Any:
            positions = [argnum] if isinstance(argnum, int) else [*argnum]

            def unary_f(x: Any) -> Any:
                arguments = list(args)
                for position, part in zip(positions, [x] if isinstance(argnum, int) else x, strict=True):
                    arguments[position] = part
                return fun(*arguments, **kwargs)

            unary_f.__name__ = getattr(fun, "__name__", "[unknown name]")
            x = args[argnum] if isinstance(argnum, int) else tuple(args[position] for position in argnum)
            return unary_operator(unary_f, x, *options, **named)

        return _set_name(nary_f, unary_operator.__name__, fun, argnum)

    return nary_operator


def _set_name(function: Function, operator: str, fun: Callable[..., Any], argnum: Argnum) -> Function:
    """Set the name and docstring of a derivative of `fun`, and return it."""
    name = getattr(fun, "__name__", "[unknown name]")
    function.__name__ = f"{operator}_of_{name}_wrt_argnum_{argnum}"
    function.__doc__ = f"{operator} of function {name} with respect to argument number {argnum}. Takes the arguments of {name}."
    return function


def _make_derivative(operator: Function, derive: Function, fun: Function, argnum: Argnum) -> Function:
    """Return the derivative that calls ``derive(args, kwargs)``, with integers to differentiate converted to floats."""

    def derived(*args: object, **kwargs: object) -> Any:
        return derive(_convert_integers(args, argnum), kwargs)

    return _set_name(derived, operator.__name__, fun, argnum)


def _convert_integers(args: Sequence[Any], argnum: Argnum) -> tuple[Any, ...]:
    """Convert integers to floats in the arguments to differentiate."""
    arguments = list(args)
    for position in (argnum,) if isinstance(argnum, int) else argnum:
        if not -len(args) <= position < len(args):
            raise IndexError(f"argnum is {position}, but the function was called with {len(args)} positional arguments")
        arguments[position] = integers_to_floats(arguments[position])
    return tuple(arguments)


def integers_to_floats(value: Any) -> Any:
    """Convert the integers of a value to floats."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biu":
        return value.astype(float)
    if isinstance(value, int):
        return float(value)
    if isinstance(value, list | tuple | dict):
        leaves, structure = flatten(value)
        return unflatten(structure, [*map(integers_to_floats, leaves)])
    return value


class Pullback:
    """The value of a function at a point, and its vector-Jacobian product.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    fun, args, kwargs, argnum : callable, sequence, mapping, int or sequence of int
        The function, its arguments, and which of them are differentiated.
    has_aux : bool
        Whether the function returns a pair, with the first differentiated.

    Raises
    ------
    TypeError
        If the value has no vector space, because it is not of real or complex numbers; LostGraphError if values left the graph.
    """

    def __init__(
        self, operator: str, fun: Function, args: Sequence[Any], kwargs: dict[str, Any], argnum: Argnum, has_aux: bool = False
    ) -> None:
        self.operator = operator
        self.trace = Trace(Arguments(operator, fun, args, kwargs, argnum), has_aux)
        self.is_independent = not any(map(isbox, self.trace.leaves))
        for k, leaf in enumerate(self.trace.leaves):
            if operator != "make_vjp":
                vspace(leaf)
            elif not isbox(leaf) and isinstance(leaf, Value):  # a comparison: its derivative is zero
                self.trace.leaves[k] = integers_to_floats(getval(leaf))
        self.outs = self.trace.outs()
        if self.is_independent:
            warn_user("Output seems independent of input.", UserWarning)
        with recording_on():
            self.raveled_outs = operators.concatenate_raveled(self.outs)

    @property
    def value(self) -> Any:
        """The result of the function."""
        return self.trace.convert_results(self.trace.result)

    @property
    def size(self) -> int:
        """The number of real numbers in the value."""
        return sum(out.size * (2 if out.dtype.kind == "c" else 1) for out in self.outs)

    def ones(self) -> list[Any]:
        """Cotangents of ones."""
        return [np.ones(out.shape, out.dtype) for out in self.outs]

    def vjp(self, g: object) -> Any:
        """The cotangent of the argument, from that of the value."""
        leaves, structure = flatten(g)
        if structure != self.trace.structure:
            raise ValueError(f"{self.operator}: the cotangent nests as {structure}, the value as {self.trace.structure}")
        cotangents = [_broadcast_cotangent(leaf, out) for leaf, out in zip(leaves, self.outs, strict=True)]
        return self.pull_leaves(cotangents)

    def pull_leaves(self, cotangents: list[Any]) -> Any:
        """The cotangent of the argument, from those of the leaves of the value."""
        return self.trace.arguments.nest(self.trace.pull(self.raveled_outs, operators.concatenate_raveled(cotangents)))


def _broadcast_cotangent(cotangent: Any, out: Any) -> Any:
    """A cotangent in the shape of a result; a single number is broadcast."""
    cotangent = integers_to_floats(cotangent)
    if np.shape(cotangent) != out.shape and np.size(cotangent) == 1:
        cotangent = np.broadcast_to(np.reshape(cotangent, ()), out.shape)
    return as_direction(cotangent, out, "the cotangent", "the value")


def make_vjp_at(fun: Function, x: Any) -> tuple[Function, Any]:
    """The derivative in reverse mode of a function of one argument, and its value: ``autograd.core.make_vjp``."""
    pullback = Pullback("make_vjp", fun, (integers_to_floats(x),), {}, 0)
    return pullback.vjp, pullback.value


def make_jvp_at(fun: Function, x: object) -> Function:
    """The derivative in forward mode of a function of one argument: ``autograd.core.make_jvp``."""
    return make_jvp(fun)(x)  # type: ignore[no-any-return]


def make_vjp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the derivative of `fun` in reverse mode, and its value.

    Parameters
    ----------
    fun : callable
        A function of arrays, which may nest, that returns such.
    argnum : int, or tuple or list of int
        The positions of the arguments to differentiate by.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (vjp, value)``: ``vjp(g)`` returns the cotangent of the argument, given that of the value; a
        tuple of them if `argnum` is a sequence.

    Examples
    --------
    >>> vjp, value = make_vjp(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> value, vjp(np.array([1.0, 10.0]))
    (array([1., 4.]), array([ 2., 40.]))
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Function, Any]:
        pullback = Pullback("make_vjp", fun, args, kwargs, argnum)
        return pullback.vjp, pullback.value

    return _make_derivative(make_vjp, derive, fun, argnum)


def make_jvp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the derivative of `fun` in forward mode.

    Parameters
    ----------
    fun : callable
        A function of arrays, which may nest, that returns such.
    argnum : int, or tuple or list of int
        The positions of the arguments to differentiate by.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jvp``: ``jvp(g)`` returns the value and its tangent, given that of the argument.

    Examples
    --------
    >>> make_jvp(lambda x: x**2)(3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Function:
        arguments = Arguments("make_jvp", fun, args, kwargs, argnum)
        leaves = tuple(arguments.arrays())

        def jvp(g: object) -> tuple[Any, Any]:
            tangents = [_broadcast_cotangent(t, x) for t, x in zip(arguments.flatten_tangents(g), leaves, strict=True)]
            return operators.jvp(arguments, leaves, tuple(tangents))

        return jvp

    return _make_derivative(make_jvp, derive, fun, argnum)


def grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        A function of arrays, which may nest, that returns one real number, of any shape.
    argnum : int, or tuple or list of int
        The positions of the arguments to differentiate by.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> gradient``, of the shape of the argument and nested as it is; a tuple of them if `argnum` is a
        sequence.

    Raises
    ------
    TypeError
        When called: if `fun` returns several numbers or a complex one, or values left the graph.

    Warns
    -----
    UserWarning
        If the result does not depend on the argument; the gradient is then zero.

    Examples
    --------
    >>> grad(lambda x, y: np.sum(x * y), 1)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([1., 2.])
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        pullback = Pullback("grad", fun, args, kwargs, argnum)
        _require_scalar(pullback)
        return pullback.pull_leaves(pullback.ones())

    return _make_derivative(grad, derive, fun, argnum)


def value_and_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the value and the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        As for `grad`.
    argnum : int, or tuple or list of int
        As for `grad`.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (value, gradient)``.

    Examples
    --------
    >>> value_and_grad(lambda x: x**3)(2.0)
    (np.float64(8.0), np.float64(12.0))
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        pullback = Pullback("value_and_grad", fun, args, kwargs, argnum)
        _require_scalar(pullback)
        return pullback.value, pullback.pull_leaves(pullback.ones())

    return _make_derivative(value_and_grad, derive, fun, argnum)


def _require_scalar(result: Pullback) -> None:
    if result.size != 1:
        shapes = ", ".join(f"{out.shape} {out.dtype}" for out in result.outs)
        raise TypeError(
            f"{result.operator.replace('grad', 'Grad', result.operator == 'grad')} only applies to real scalar-output functions. "
            f"Try jacobian, elementwise_grad or holomorphic_grad. The function returned {shapes}."
        )


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the sum of each column of the Jacobian of `fun`: for an elementwise function the derivative.

    Parameters
    ----------
    fun : callable
        A function of arrays that returns a real array.
    argnum : int, or tuple or list of int
        The positions of the arguments to differentiate by. Integers are converted to floats.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> derivative``, of the shape of the argument.

    Examples
    --------
    >>> elementwise_grad(np.sin)(np.array([0, 1]))
    array([1.        , 0.54030231])
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        pullback = Pullback("elementwise_grad", fun, args, kwargs, argnum)
        if any(out.dtype.kind == "c" for out in pullback.outs):
            raise TypeError("Elementwise_grad only applies to real-output functions.")
        return pullback.pull_leaves(pullback.ones())

    return _make_derivative(elementwise_grad, derive, fun, argnum)


def deriv(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the derivative of `fun` along the direction of ones, in forward mode.

    Examples
    --------
    >>> deriv(lambda x: x**3)(2.0)
    np.float64(12.0)
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        x = args[argnum] if isinstance(argnum, int) else tuple(args[position] for position in argnum)
        return make_jvp(fun, argnum)(*args, **kwargs)(vspace(x).ones())[1]

    return _make_derivative(deriv, derive, fun, argnum)


def jacobian(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the Jacobian of `fun`, of the shape of the value followed by that of the argument.

    Reverse mode computes it, as in autograd: primitives need no `defjvp`.

    Parameters
    ----------
    fun : callable
        A function of arrays that returns an array.
    argnum : int, or tuple or list of int
        The positions of the arguments to differentiate by.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> jacobian``; a tuple of them if `argnum` is a sequence.

    Examples
    --------
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return operators.jacrev(fun, argnum)(*args, **kwargs)

    return _make_derivative(jacobian, derive, fun, argnum)


def hessian(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the second derivatives of `fun`: the Jacobian of its Jacobian.

    Examples
    --------
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return operators.jacrev(operators.jacrev(fun, argnum), argnum)(*args, **kwargs)

    return _make_derivative(hessian, derive, fun, argnum)


def holomorphic_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the derivative of an analytic function of complex numbers.

    Examples
    --------
    >>> holomorphic_grad(lambda z: z**2)(3j)
    np.complex128(6j)
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        for position in (argnum,) if isinstance(argnum, int) else argnum:
            if np.asarray(getval(args[position])).dtype.kind != "c":
                warn_user("Input to holomorphic_grad is not complex", UserWarning)
        return grad(lambda *a, **k: np.real(fun(*a, **k)), argnum)(*args, **kwargs)

    return _make_derivative(holomorphic_grad, derive, fun, argnum)


def grad_named(fun: Function, argname: str) -> Function:
    """The function that returns the gradient of `fun` with respect to the parameter `argname`.

    Examples
    --------
    >>> grad_named(lambda x, y: x * y, "y")(2.0, 3.0)
    np.float64(2.0)
    """
    return grad(fun, [*inspect.signature(fun).parameters].index(argname))


def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the gradient of the first of two results of `fun`, and the second.

    Examples
    --------
    >>> grad_and_aux(lambda x: (x**2, x + 1))(3.0)
    (np.float64(6.0), np.float64(4.0))
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        pullback = Pullback("grad_and_aux", fun, args, kwargs, argnum, has_aux=True)
        return pullback.pull_leaves(pullback.ones()), pullback.trace.convert_results(pullback.trace.aux)

    return _make_derivative(grad_and_aux, derive, fun, argnum)


def multigrad_dict(fun: Function) -> Function:
    """The function that returns the gradients of `fun` with respect to all arguments, in a dictionary.

    Examples
    --------
    >>> gradients = multigrad_dict(lambda x, y=2.0: x * y)(3.0)
    >>> gradients["x"], gradients["y"]
    (np.float64(2.0), np.float64(3.0))
    """
    signature = inspect.signature(fun)

    def gradients(*args: object, **kwargs: object) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        names = [*bound.arguments]

        def call_with_values(*values: object) -> Any:
            bound_arguments = inspect.BoundArguments(signature, OrderedDict(zip(names, values, strict=True)))
            return fun(*bound_arguments.args, **bound_arguments.kwargs)

        values = [bound.arguments[name] for name in names]
        differentiable = [k for k, value in enumerate(values) if flatten(value)[0]]
        gradients_by_position = dict(zip(differentiable, grad(call_with_values, differentiable)(*values), strict=True))
        return OrderedDict((name, gradients_by_position.get(k, values[k])) for k, name in enumerate(names))

    return gradients


def make_hvp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the product of the Hessian of `fun` with a vector, as a function, and the gradient.

    Examples
    --------
    >>> hvp, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> hvp(np.array([1.0, 1.0])), gradient
    (array([ 6., 12.]), array([ 3., 12.]))
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Function, Any]:
        return make_vjp(grad(fun, argnum), argnum)(*args, **kwargs)  # type: ignore[no-any-return]

    return _make_derivative(make_hvp, derive, fun, argnum)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The function ``(*args, tensor, **kwargs)`` that returns the product of the Hessian of `fun` with a tensor.

    Examples
    --------
    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(gradient(*args[:-1], **kwargs), args[-1], np.ndim(args[-1]))

    return grad(product, argnum)


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """The function ``(*args, tensor, **kwargs)`` that returns the product of a tensor with the Jacobian of `fun`.

    Examples
    --------
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 2., 40.])
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(args[-1], fun(*args[:-1], **kwargs), np.ndim(args[-1]))

    return jacobian(product, argnum)


def make_jvp_reversemode(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns the product of the Jacobian of `fun` with a vector, as a function.

    Examples
    --------
    >>> make_jvp_reversemode(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    def derive(args: Sequence[Any], kwargs: dict[str, Any]) -> Function:
        jvp = make_jvp(fun, argnum)(*args, **kwargs)
        return lambda v: jvp(v)[1]

    return _make_derivative(make_jvp_reversemode, derive, fun, argnum)


def _half_square(x: Array) -> Any:
    return np.sum(x**2, axis=-1) / 2


def make_ggnvp(f: Function, g: Function = _half_square, f_argnum: Argnum = 0) -> Function:
    """The function that returns the product of a generalized Gauss-Newton matrix with a vector, as a function.

    Parameters
    ----------
    f, g : callable
        The matrix is ``J.T @ H @ J``, where J is the Jacobian of `f` and H the Hessian of `g` at the value of `f`; by default
        `g` is half the sum of squares.
    f_argnum : int, or tuple or list of int
        The positions of the arguments of `f` to differentiate by.

    Examples
    --------
    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([ 4., 16.])
    """

    def derived(*args: object, **kwargs: object) -> Function:
        f_vjp, value = make_vjp(f, f_argnum)(*args, **kwargs)
        f_jvp = make_jvp_reversemode(f, f_argnum)(*args, **kwargs)
        g_hvp = make_hvp(g)(value)[0]
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return derived
