"""`OpSpec`: an operation as data, except for its derivative.

The *policy* is the treatment of a call with a node:

=============  ============================================================================================
rule           recorded; its derivative rule is declared in `autodiff.grads` under the same opname
packed         like rule; the first argument is a sequence of the operands
piecewise      recorded; piecewise constant, so it needs no rule
composed       NumPy's own Python code runs on the nodes, and its steps are recorded
replaced       an equivalent function runs, and its steps are recorded
plain          runs on plain values; its result is not part of the graph
writes         writes into its first argument
unsupported    raises a TypeError with the alternative
undispatched   NumPy does not dispatch it to nodes; see `families.unrecorded`
=============  ============================================================================================

The *kind* is the dependence of result elements on operand elements. It determines batching, sparsity and compilation:

=============  ============================================================================================
elementwise    each element depends on one element of each operand, after broadcasting
shape          moves elements, along ``axis`` if that is an option
reduction      over the given axes, by default over all
position       a reduction to an index, such as argmax; of the flattened array by default
cumulative     along one axis; of the flattened array by default
ordering       along one axis, the last by default; of the flattened array if the axis is None
along          along one axis, the last by default
matrices       the last two axes are those of matrices, the others those of the stack
transform      along several axes: Fourier transforms and shifts
sequential     a batch is computed one element after the other
own            another dependence; its batching rule is registered by opname
=============  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Function = Callable[..., Any]
Policy = Literal["rule", "packed", "piecewise", "composed", "replaced", "plain", "writes", "unsupported", "undispatched"]
Kind = Literal[
    "elementwise",
    "shape",
    "reduction",
    "position",
    "cumulative",
    "ordering",
    "along",
    "matrices",
    "transform",
    "sequential",
    "own",
]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """An operation.

    Attributes
    ----------
    function : callable
        The function that users call.
    policy, kind : str
        See the tables above.
    opname : str
        The name of the operation in rules, pictures and pickles; by default the function's name, after ``linalg_`` or ``fft_``.
    operands : str
        The parameters that may be nodes, in order, separated by spaces. For ufuncs, all may be nodes.
    replacement : callable, optional
        With the policy "replaced": the equivalent function.
    advice : str
        With the policy "unsupported": what to use instead.
    method : str
        The method of arrays that calls the function.
    aliases : tuple of callable
        Equivalent functions.
    complex_form : callable, optional
        The operation that is recorded for complex operands.
    fold : (ufunc, str), optional
        The equivalent method of a ufunc, such as ``(np.add, "reduce")``.
    warns : {"never", "floats", "casts", "indices", "maybe"}
        Whether the function may warn or raise for values of operands of valid shapes: only for floating-point ones ("floats"),
        if a cast loses information ("casts"), or if indices are operands ("indices").
    quiet_with : {"", "nonzero", "naturals"}
        The constant second operands for which only overflow and infinite operands cause warnings.
    operator : str
        The Python operator: ``"+"``, or ``"-"`` before a single operand.
    formula : str
        The result in SymPy's functions of the operands ``x``, ``y`` and ``z``; semicolons separate several outputs. The prefix
        ``"bool: "`` restricts it to booleans, which are the numbers 0 and 1. Comparisons are
        ``Lt``, ``Le``, ``Gt``, ``Ge``, ``Eq`` and ``Ne``; ``where``, ``clip``, ``trunc`` and ``power`` are those of
        `printing.symbolic_arrays`.
    real_formula : str
        The formula for real operands, if it differs.
    lowering : str
        The name of the compiler's lowering; by default, for elementwise ufuncs of NumPy, the ufunc's name.
    shape_depends_on : {"", "values", "integers"}
        "values" if the shape of the result depends on operand values; "integers" if only on those of integers and booleans.
    real_on : {"", "x >= 0", "abs(x) <= 1", "unknown"}
        If the result is real or complex, depending on operand values: the real operands ``x`` for which it is real.
    fill : {None, 0, 1, "any"}
        The value of all elements of the result, if it depends on the operand's shape and dtype alone.
    scalar_result : {"scalar", "like operands", "array"}
        The result for operands without axes: a scalar; an array if an operand is one; always an array.
    is_view : bool
        Whether the result is a view where the strides of the operand allow one, else a copy.
    out_by_keyword : bool
        Whether NumPy deprecates the argument `out` by position.
    moves_elements : bool
        Whether each element of the result is an element of an operand; by default for the kind "shape".
    corner : {"", "length", "undefined"}
        "length" if the result is a length of a vector, which has a corner at 0; "undefined" if the operation marks a second
        derivative that does not exist.
    is_higher_order : bool
        Whether it calls a user's function, which may use nodes that are not among the arguments.
    is_inlined : bool
        Whether executors record the steps of its own code in its place, to eliminate common subexpressions.
    lists : {"arrays", "sequence", "unchanged"}
        How lists with nodes are passed to a function in steps: as arrays; the first as a sequence of arrays; or unchanged.
    reads : {"values", "types", "shapes", "memory"}
        With the policy "plain": the property of the arguments that determines the result; "types" are shapes and dtypes.
    is_guarded : bool
        With the policy "plain": whether Python may branch on the result, so that it is a guard.
    returns_indices : bool
        With the policy "plain": whether it returns indices that depend on the shape of its operand alone.
    converts : {"", "lists", "elements"}
        With the policy "undispatched": whether it converts nested lists, or its arguments, to an array.
    keeps_subclasses : bool
        Whether a conversion returns arrays of subclasses unchanged.
    returns_buffer : bool
        Within operators: whether the result for plain arguments is a buffer, into which nodes may be written.
    external : {"", "files", "print options", "settings", "other objects"}
        The state other than its arguments that it reads or writes, at the call or later.
    """

    function: Any
    policy: Policy
    kind: Kind = "own"
    opname: str = ""
    operands: str = ""
    replacement: Function | None = None
    advice: str = ""
    method: str = ""
    aliases: tuple[Function, ...] = ()
    complex_form: Function | None = None
    fold: tuple[np.ufunc, str] | None = None
    warns: Literal["never", "floats", "casts", "indices", "maybe"] = "maybe"
    quiet_with: Literal["", "nonzero", "naturals"] = ""
    operator: str = ""
    formula: str = ""
    real_formula: str = ""
    lowering: str = ""
    shape_depends_on: Literal["", "values", "integers"] = ""
    real_on: Literal["", "x >= 0", "abs(x) <= 1", "unknown"] = ""
    fill: Literal[0, 1, "any"] | None = None
    scalar_result: Literal["scalar", "like operands", "array"] = "scalar"
    is_view: bool = False
    out_by_keyword: bool = False
    moves_elements: bool = False
    corner: Literal["", "length", "undefined"] = ""
    is_higher_order: bool = False
    is_inlined: bool = False
    lists: Literal["arrays", "sequence", "unchanged"] = "arrays"
    reads: Literal["values", "types", "shapes", "memory"] = "values"
    is_guarded: bool = False
    returns_indices: bool = False
    converts: Literal["", "lists", "elements"] = ""
    keeps_subclasses: bool = False
    returns_buffer: bool = False
    external: Literal["", "files", "print options", "settings", "other objects"] = ""


def is_elementwise(function: Callable[..., Any]) -> bool:
    """Whether a function is a ufunc of single elements."""
    return isinstance(function, np.ufunc) and function.signature is None


def _recorded_spec(policy: Policy, function: Callable[..., Any], operands: str, data: dict[str, Any]) -> OpSpec:
    if is_elementwise(function):
        data.setdefault("kind", "elementwise")
        data.setdefault("lowering", function.__name__)
    if data.get("kind") == "shape":
        data.setdefault("warns", "never")
        data.setdefault("moves_elements", True)
    data.setdefault("opname", default_opname(function))
    return OpSpec(function, policy, operands=operands, **data)


def default_opname(function: Callable[..., Any]) -> str:
    """The name of a NumPy function, prefixed by ``linalg_`` or ``fft_`` for functions of these modules."""
    module = str(getattr(function, "__module__", "")).removeprefix("numpy").strip(".")
    return f"{module}_{function.__name__}" if module in ("linalg", "fft") else str(function.__name__)


def rule(function: Callable[..., Any], operands: str = "", **data: Any) -> OpSpec:
    """An operation with a rule."""
    return _recorded_spec("rule", function, operands, data)


def packed(function: Callable[..., Any], **data: Any) -> OpSpec:
    """An operation with a rule whose operands are packed in a sequence."""
    return _recorded_spec("packed", function, "", {"lists": "sequence", **data})


def piecewise(function: Callable[..., Any], operands: str = "", **data: Any) -> OpSpec:
    """A recorded operation that is piecewise constant."""
    return _recorded_spec("piecewise", function, operands, data)


def composed(function: Any, **data: Any) -> OpSpec:
    """A function whose own code runs on nodes."""
    return OpSpec(function, "composed", **data)


def replaced(function: Any, replacement: Function, **data: Any) -> OpSpec:
    """A function that is replaced by an equivalent one in recorded steps."""
    return OpSpec(function, "replaced", replacement=replacement, **data)


def plain(function: Any, **data: Any) -> OpSpec:
    """A function whose result is not part of the graph."""
    return OpSpec(function, "plain", **data)


def writes(function: Callable[..., Any]) -> OpSpec:
    """A function that writes into its first argument."""
    return OpSpec(function, "writes")


def unsupported(function: Callable[..., Any], advice: str) -> OpSpec:
    """A function that raises."""
    return OpSpec(function, "unsupported", advice=advice)


def undispatched(function: Callable[..., Any], **data: Any) -> OpSpec:
    """A function that NumPy does not dispatch to nodes."""
    return OpSpec(function, "undispatched", **data)
