"""The parameters of an optimizer, and their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compgraph.guards import note_save
from compgraph.storage import owner_of
from compgraph.values import Value, VariableNode, describe, require_history, require_unbatched, require_unsealed

from ..arguments import flatten
from ..reverse import Gradients

Array = np.ndarray[Any, Any]


@dataclass
class Parameter:
    """A leaf of the tree of parameters.

    Attributes
    ----------
    name : str
        The name in messages: a variable's name, or the position in the tree.
    array : numpy.ndarray
        The value, which a step changes in place.
    node : VariableNode or None
        The variable, if the leaf is one.
    number : type or None
        The type of the leaf if it is a number, which Python cannot change in place; `array` is then a copy.
    """

    name: str
    array: Array
    node: VariableNode | None = None
    number: type | None = None

    @property
    def current(self) -> Any:
        """The parameter in the tree."""
        if self.node is not None:
            return self.node
        return self.array if self.number is None else self.number(self.array[()])

    def require_writable(self) -> None:
        """Raise unless a step can write into the array."""
        if not self.array.flags.writeable:
            raise ValueError(f"parameter {self.name} is read-only; pass a writable copy to the optimizer")
        if self.node is not None:
            require_unsealed(self.node)


def collect_parameters(tree: object) -> tuple[list[Parameter], Any]:
    """Return the checked parameters in a tree, and its structure.

    Parameters
    ----------
    tree : object
        Variables, floating-point arrays and numbers, nested in any way.

    Returns
    -------
    parameters : list of Parameter
        The arrays of the leaves, in the order of the tree.
    structure : optree.PyTreeSpec
        The nesting.

    Raises
    ------
    TypeError
        If a leaf is none of these, or the tree has no leaves.
    ValueError
        If two parameters share memory, or one is read-only.
    """
    leaves, structure = flatten(tree)
    if not leaves:
        raise TypeError(f"an optimizer needs parameters, but {tree!r} contains none")
    parameters = [_make_parameter(leaf, _path_text(path)) for leaf, path in zip(leaves, structure.paths(), strict=True)]
    for parameter in parameters:
        parameter.require_writable()
    _require_disjoint(parameters)
    return parameters, structure


def _path_text(path: Sequence[Any]) -> str:
    return "at " + "".join(f"[{key!r}]" for key in path) if path else "(the whole tree)"


def _make_parameter(leaf: object, place: str) -> Parameter:
    require_history(leaf)
    if isinstance(leaf, VariableNode):
        return _require_floating(Parameter(repr(leaf.name), leaf.raw_value, leaf))
    if isinstance(leaf, Value):
        raise TypeError(
            f"the {describe(leaf)}, {place}, is not a variable and cannot be updated; pass cg.variable(...) or an array"
        )
    if isinstance(leaf, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"the parameter {place} is a {type(leaf).__name__}. Pass a plain array (np.asarray)")
    if isinstance(leaf, np.ndarray):
        return _require_floating(Parameter(place, np.asarray(leaf)))
    if isinstance(leaf, (float, int, np.floating)) and not isinstance(leaf, bool):
        number = float if isinstance(leaf, (float, int)) and not isinstance(leaf, np.generic) else type(leaf)
        return Parameter(place, np.array(leaf, dtype=number), number=number)
    advice = ". Pass a list of parameters" if isinstance(leaf, Iterable) and not isinstance(leaf, str) else ""
    raise TypeError(
        f"the parameter {place} is a {type(leaf).__name__}, not a variable, a floating-point array or a number{advice}"
    )


def _require_floating(parameter: Parameter) -> Parameter:
    if parameter.array.dtype.kind == "c":
        raise TypeError(f"parameter {parameter.name} is complex; pass its real and imaginary parts as two parameters")
    if parameter.array.dtype.kind != "f":
        raise TypeError(
            f"parameter {parameter.name} has dtype {parameter.array.dtype}, in which no small step is possible; "
            "convert it to a floating-point array"
        )
    return parameter


def _require_disjoint(parameters: list[Parameter]) -> None:
    """Raise a ValueError if two parameters share memory: the same numbers would be updated twice."""
    spans = sorted((*np.lib.array_utils.byte_bounds(p.array), i) for i, p in enumerate(parameters) if p.array.size)
    open_spans: list[tuple[int, int]] = []
    for start, stop, i in spans:
        open_spans = [(end, j) for end, j in open_spans if end > start]
        for _, j in open_spans:
            if np.shares_memory(parameters[i].array, parameters[j].array):
                raise ValueError(
                    f"parameters {parameters[j].name} and {parameters[i].name} share memory and would be updated twice; "
                    "pass each array once"
                )
        open_spans.append((stop, i))


def match_gradients(gradients: object, parameters: list[Parameter], structure: object, squares_gradients: bool) -> list[Array]:
    """Return the gradient of each parameter, as a plain array of its shape and dtype.

    Parameters
    ----------
    gradients : Gradients, or tree
        A result of `autodiff.reverse.gradient`, or a tree nested like the parameters.
    parameters : list of Parameter
        The parameters.
    structure : optree.PyTreeSpec
        Their nesting.
    squares_gradients : bool
        Whether the optimizer squares gradients; a gradient whose square overflows then raises.

    Returns
    -------
    list of numpy.ndarray
        In the order of the parameters; none shares memory with a parameter.

    Raises
    ------
    TypeError, ValueError
        If a gradient is missing, nested differently, of a different shape, not real, infinite or NaN.
    """
    if isinstance(gradients, Gradients):
        gradient_leaves = [_look_up(gradients, p) for p in parameters]
    else:
        gradient_leaves, nesting = flatten(gradients)
        if nesting != structure:
            raise _nesting_error(gradients, nesting, structure)
    owners = {id(owner_of(p.array)) for p in parameters}
    checked = [check_gradient(g, p, squares_gradients) for g, p in zip(gradient_leaves, parameters, strict=True)]
    # A gradient may be a parameter (p for p * q by q), which a step could update before it reads the gradient.
    return [g.copy() if id(owner_of(g)) in owners else g for g in checked]


def _nesting_error(gradients: object, gradient_structure: object, structure: object) -> Exception:
    """Return the error for an argument of `step` that nests differently from the parameters."""
    if isinstance(gradients, Value) or callable(gradients):
        what = f"the {describe(gradients)}" if isinstance(gradients, Value) else "a function"
        return TypeError(f"step takes the gradients, not {what}. Write optimizer.step(autodiff.gradient(loss))")
    is_pair = isinstance(gradients, tuple) and len(gradients) == 2 and flatten(gradients[1])[1] == structure
    advice = (
        "value_and_grad returns (value, gradients): pass the second"
        if is_pair
        else "Pass autodiff.gradient(loss), or gradients nested as the parameters, as autodiff.grad(f)(parameters) returns them"
    )
    return ValueError(f"the gradients nest as {gradient_structure}, the parameters as {structure}. {advice}")


def _look_up(gradients: Gradients, parameter: Parameter) -> Any:
    if parameter.node is None:
        raise TypeError(
            f"the parameter {parameter.name} is a plain array, for which `gradient` returns no derivative; make it a "
            "cg.variable, or pass gradients nested like the parameters, as from autodiff.grad"
        )
    if parameter.node not in gradients:
        raise ValueError(
            f"there is no gradient for parameter {parameter.name}: the loss does not depend on it, or wrt= lacks it. "
            "gradient(loss, wrt=parameters, unused='zero') returns zeros"
        )
    return gradients[parameter.node]


def check_gradient(gradient: object, parameter: Parameter, squares_gradients: bool) -> Array:
    """Return a checked gradient as a plain array with the shape and dtype of its parameter; see `match_gradients`."""
    require_history(gradient)
    if isinstance(gradient, Value):
        require_unbatched("an optimizer's step", gradient)
        if gradient.level:
            raise TypeError(f"the gradient of parameter {parameter.name} carries tangents; take the step outside of jvp")
        note_save("step")
        gradient = gradient.raw_value
    if isinstance(gradient, np.ma.MaskedArray):
        raise TypeError(f"the gradient of parameter {parameter.name} is a masked array; fill it first (gradient.filled(0))")
    array = np.asarray(gradient)
    if array.shape != parameter.array.shape:
        raise ValueError(
            f"parameter {parameter.name} has shape {parameter.array.shape}, its gradient {array.shape}. Pass "
            "autodiff.gradient(loss), or gradients in the order of the parameters"
        )
    if array.dtype.kind not in "fiu":
        raise TypeError(f"the gradient of parameter {parameter.name} has dtype {array.dtype}; real numbers are needed")
    with np.errstate(over="ignore", invalid="ignore"):
        array = array.astype(parameter.array.dtype, copy=False)
        # The sum of squares is cheaper than an array of booleans. It may overflow, so the elements are checked if it is infinite.
        if np.isfinite(np.vdot(array, array)):
            return array
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"the gradient of parameter {parameter.name} contains NaN or infinity; nothing was updated. `with cg.debug():` "
                "finds their origin"
            )
        if squares_gradients and not np.isfinite(np.max(np.abs(array)) ** 2):
            raise ValueError(
                f"the gradient of parameter {parameter.name} is so large that its square overflows {array.dtype}; nothing was "
                "updated. Clip it (clip=lambda g: clip_by_global_norm(g, 1.0))"
            )
    return array
