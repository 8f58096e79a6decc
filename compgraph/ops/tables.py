"""Tables derived from the operations: by policy, by name, the operators and methods of nodes; lookups in them.

For functions in no table, `protocols` raises a TypeError.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .callables import (
    Configured,
    Keyworded,
    Output,
    Packed,
    UfuncMethod,
    get_attached,
    getitem,
    input_of,
    power,
    set_attached,
    ufunc_method,
)
from .compositions import array_manipulation
from .families import OPERATIONS
from .spec import OpSpec, Policy, is_elementwise

Function = Callable[..., Any]


def _specs_with_policy(*policies: str) -> list[OpSpec]:
    return [spec for spec in OPERATIONS if spec.policy in policies]


def _functions_with_policy(*policies: str) -> frozenset[Any]:
    return frozenset(spec.function for spec in _specs_with_policy(*policies))


SPECS: dict[Any, OpSpec] = {spec.function: spec for spec in OPERATIONS}

# Recorded ufuncs with a rule, and piecewise constant ones.
SMOOTH_UFUNCS: frozenset[Any] = frozenset(s.function for s in _specs_with_policy("rule") if isinstance(s.function, np.ufunc))
PIECEWISE_UFUNCS: frozenset[Any] = frozenset(
    s.function for s in _specs_with_policy("piecewise") if isinstance(s.function, np.ufunc)
)
# Recorded functions, and the parameters that may be nodes, in order, separated by spaces. SciPy's are entered later.
SMOOTH_FUNCTIONS: dict[Function, str] = {s.function: s.operands for s in _specs_with_policy("rule") if s.operands}
PIECEWISE_FUNCTIONS: dict[Function, str] = {s.function: s.operands for s in _specs_with_policy("piecewise") if s.operands}
# Recorded functions whose first argument is a sequence of the operands.
PACKED_FUNCTIONS: dict[Function, Packed] = {s.function: Packed(s.function) for s in _specs_with_policy("packed")}
ALIASES: dict[Function, Function] = {alias: spec.function for spec in OPERATIONS for alias in spec.aliases}
FOLDS: dict[tuple[np.ufunc, str], Function] = {spec.fold: spec.function for spec in OPERATIONS if spec.fold}
COMPLEX_FORMS: dict[Function, Function] = {s.function: s.complex_form for s in OPERATIONS if s.complex_form is not None}
COMPOSED_FUNCTIONS: frozenset[Any] = _functions_with_policy("composed")
REPLACED_FUNCTIONS: dict[Function, Function] = {
    s.function: s.replacement for s in _specs_with_policy("replaced") if s.replacement is not None
}
HIGHER_ORDER_FUNCTIONS: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.is_higher_order)
PLAIN_FUNCTIONS: frozenset[Any] = _functions_with_policy("plain")
VIEW_FUNCTIONS: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.is_view)
MOVING_FUNCTIONS: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.moves_elements)
BLANK_FUNCTIONS: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.fill in (0, "any"))
FILL_VALUES: dict[Any, int] = {s.function: s.fill for s in OPERATIONS if isinstance(s.fill, int)}
WRITING_FUNCTIONS: frozenset[Any] = _functions_with_policy("writes")
UNSUPPORTED_FUNCTIONS: dict[Function, str] = {s.function: s.advice for s in _specs_with_policy("unsupported")}

# Special method -> (recorded ufunc, function that computes plain arrays). For FLOAT_SCALARS, Python's operators return the same
# bits as the ufunc in a quarter of the time.
BINARY_OPERATORS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "add": (np.add, operator.add),
    "sub": (np.subtract, operator.sub),
    "mul": (np.multiply, operator.mul),
    "truediv": (np.divide, operator.truediv),
    "pow": (power, power),
    "floordiv": (np.floor_divide, np.floor_divide),
    "mod": (np.remainder, np.remainder),
    "divmod": (np.divmod, np.divmod),
    "matmul": (np.matmul, np.matmul),
    "and": (np.bitwise_and, np.bitwise_and),
    "or": (np.bitwise_or, np.bitwise_or),
    "xor": (np.bitwise_xor, np.bitwise_xor),
    "lshift": (np.left_shift, np.left_shift),
    "rshift": (np.right_shift, np.right_shift),
}
COMPARISONS: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNARY_OPERATORS: dict[str, Any] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
# The Python operators of operations, between two operands or before one.
PREFIX: dict[Any, str] = {s.function: s.operator for s in OPERATIONS if s.operator and getattr(s.function, "nin", 2) == 1}
INFIX: dict[Any, str] = {s.function: s.operator for s in OPERATIONS if s.operator and s.function not in PREFIX}
# Operations whose result is a Python number if their operands are.
PYTHON_ARITHMETIC: frozenset[Any] = frozenset(
    {
        *[BINARY_OPERATORS[name][0] for name in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod")],
        *[UNARY_OPERATORS[name] for name in ("neg", "pos", "abs")],
        input_of,
    }
)
FLOAT_SCALARS = frozenset({np.float64, np.float32, np.float16})

# ndarray methods that are the NumPy function with the array as its first argument.
METHODS: dict[str, Function] = {s.method: s.function for s in OPERATIONS if s.method} | {
    "compress": array_manipulation.compress_method
}
# Methods that return plain values.
PLAIN_METHODS = frozenset({"item", "tolist", "tobytes", "tofile", "dump", "dumps", "to_device"})
# Methods that write into the array.
WRITING_METHODS = frozenset({"fill", "put", "sort", "partition"})
UNSUPPORTED_METHODS: dict[str, str] = {
    "byteswap": "astype(x.dtype.newbyteorder()) makes a node of other byte order",
    "getfield": "x.real and x.imag give the parts of a complex node",
    "setfield": "make a new array instead",
    "resize": "np.resize makes a new node",
    "setflags": "only write=False is accepted, within an operator; node.value is the plain array",
    "__array_wrap__": "a node is made by the operations on it",
    "__setstate__": "pickle.loads makes a new node",
}
# From NumPy 2.5 on, methods replace some assignments to attributes.
_SETTERS = {"_set_shape": "np.reshape makes a new node", "_set_dtype": "astype and view make new nodes"}
UNSUPPORTED_METHODS |= {name: instead for name, instead in _SETTERS.items() if hasattr(np.ndarray, name)}


# Functions whose arguments after the first are indices, which are not operands.
INDEXING_FUNCTIONS: set[Any] = {getitem}
# Folds of piecewise ufuncs with two operands return integers or booleans, so they are piecewise too. Except floor_divide:
# its fold returns the first element unchanged.
_PIECEWISE_FOLDABLE = [f for f in PIECEWISE_UFUNCS - {np.floor_divide} if f.nin == 2]
PIECEWISE: set[Any] = {
    *_functions_with_policy("piecewise"),
    *[ufunc_method(f, method) for f in _PIECEWISE_FOLDABLE for method in ("reduce", "accumulate", "reduceat")],
}
OPNAMES: dict[Any, str] = {s.function: s.opname for s in _specs_with_policy("rule", "piecewise")}
OPNAMES |= {PACKED_FUNCTIONS[s.function]: s.opname for s in _specs_with_policy("packed")}

VALUE_DEPENDENT_DTYPES: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.real_on)
# Functions whose result shape depends on operand values; for `_INTEGER_DEPENDENT_SHAPES`, on integers and booleans alone.
VALUE_DEPENDENT_SHAPES: frozenset[Any] = frozenset(s.function for s in OPERATIONS if s.shape_depends_on == "values")
_WHERE = np.where  # bound here, because the name in `np` is replaced within operators
_INTEGER_DEPENDENT_SHAPES = frozenset(s.function for s in OPERATIONS if s.shape_depends_on == "integers")


def has_value_dependent_shape(function: object, args: tuple[Any, ...], parent_argnums: tuple[int, ...]) -> bool:
    """Whether the shape of a result depends on the values of the operands at `parent_argnums`."""
    if function is getitem:  # a mask; with integers, the shape of the index determines the shape of the result
        return any(args[i].raw_value.dtype.kind == "b" for i in parent_argnums if i)
    if type(function) is Keyworded and function.counts:
        return True
    if function is _WHERE:
        return len(args) == 1
    if type(function) is FunctionType and get_attached(function, "opname") is not None:  # a user's primitive
        return True
    function = getattr(function, "function", function)
    return function in VALUE_DEPENDENT_SHAPES or (
        function in _INTEGER_DEPENDENT_SHAPES and any(args[i].raw_value.dtype.kind in "biu" for i in parent_argnums if i)
    )


# ----------------------------------------------------------------------------------------------------- lookups


def opname_of(function: Any) -> str:
    """The opname under which a function is recorded."""
    opname = OPNAMES.get(function) or get_attached(function, "opname")
    if opname is not None:
        return opname
    if isinstance(function, (Keyworded, Configured)):
        return opname_of(function.function)
    if isinstance(function, UfuncMethod):
        return f"{opname_of(function.ufunc)}_{function.method}"
    return "output" if isinstance(function, Output) else getattr(function, "__name__", str(function))


FUNCTIONS_BY_OPNAME: dict[str, Any] = {opname: function for function, opname in reversed(OPNAMES.items())}
_user_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()  # functions of users, whose opnames are attached to them


PUBLIC_NAMES: dict[Any, str] = {}  # for messages: the name by which users call a function that is defined in a private module


def function_by_opname(opname: str) -> Any:
    """The recorded function of an opname, or None."""
    function = FUNCTIONS_BY_OPNAME.get(opname)
    return _user_functions.get(opname) if function is None else function


def register_operation(function: Any, opname: str, policy: Policy = "rule", **data: Any) -> None:
    """Register a function as an operation with an opname, permanently; `data` are further fields of its `OpSpec`."""
    if is_elementwise(function):
        data.setdefault("kind", "elementwise")
    SPECS[function] = OpSpec(function, policy, opname=opname, **data)
    OPNAMES[function] = opname
    FUNCTIONS_BY_OPNAME[opname] = function


def register_user_function(function: Callable[..., Any], opname: str) -> None:
    """Register a user's function as an operation; its opname is free again when the function is garbage-collected."""
    if set_attached(function, "opname", opname):
        _user_functions[opname] = function
    else:
        register_operation(function, opname)


def register_piecewise(function: Callable[..., Any], opname: str, **data: Any) -> None:
    """Register a piecewise constant operation, which needs no rule; `data` are further fields of its `OpSpec`."""
    register_operation(function, opname, "piecewise", **data)
    PIECEWISE.add(function)


def spec_of(function: Callable[..., Any] | Packed) -> OpSpec | None:
    """The `OpSpec` of the function within adapters; None for a user's function."""
    while isinstance(function, (Configured, Keyworded, Packed)):
        function = function.function
    return SPECS.get(function)


def operand_names(function: Callable[..., Any] | Packed | UfuncMethod) -> tuple[str, ...]:
    """The names of the parameters of a function that may be nodes, in order."""
    if isinstance(function, UfuncMethod):
        return ("array", "initial", "where") if function.method == "reduce" else ("array",)
    return tuple(SMOOTH_FUNCTIONS.get(function, PIECEWISE_FUNCTIONS.get(function, "")).split())


@functools.cache
def keyworded(function: Callable[..., Any] | Packed | UfuncMethod, names: tuple[str, ...]) -> Keyworded:
    """Return `function` as a `Keyworded` with these names; a name that is not an operand of the function is a count."""
    operands = operand_names(function)
    return Keyworded(function, names, tuple(name for name in names if name not in operands))


def operand_count(function: Callable[..., Any] | Packed | None, argument_count: int) -> int:
    """The number of operands among the arguments of a recorded function; indices are not operands."""
    return 1 if function in INDEXING_FUNCTIONS else argument_count


@functools.cache
def public_functions(module: Any = np) -> dict[str, Any]:
    """The public functions of NumPy, or of one of its modules, that are recorded, by name."""
    recorded_functions = {
        *SMOOTH_UFUNCS,
        *PIECEWISE_UFUNCS,
        *SMOOTH_FUNCTIONS,
        *PACKED_FUNCTIONS,
        *PIECEWISE_FUNCTIONS,
        *COMPOSED_FUNCTIONS,
        *REPLACED_FUNCTIONS,
    }
    recorded_functions |= {*ALIASES, np.einsum}
    functions = {name: getattr(module, name) for name in module.__all__}
    return {name: f for name, f in functions.items() if callable(f) and f.__hash__ is not None and f in recorded_functions}
