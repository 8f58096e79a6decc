"""The operations as data: which callables are recorded as nodes, under which opname, with which operands.

An opname is the name of an operation in rules, pictures and pickles. `families` has one `OpSpec` per operation: all its data
except the derivative. `tables` derives tables for other packages. `compositions` reimplements some NumPy functions in recorded
steps. The package `compgraph.scipy` registers SciPy's functions. No module here imports nodes.
"""

from . import compositions
from .callables import (
    EXTERNAL_REGISTRIES,
    Configured,
    Keyworded,
    OnAxes,
    Output,
    Packed,
    UfuncMethod,
    added_at,
    astype,
    complex_sign,
    configured,
    copy,
    copy_as_laid,
    einsum,
    external_data,
    flatten,
    get_attached,
    getitem,
    input_of,
    on_axes,
    output,
    power,
    set_attached,
    stacked_matmul,
    stop_gradient,
    ufunc_method,
    view,
)
from .compositions import ensure_array
from .families import OPERATIONS, UNDISPATCHED
from .hints import AdviceFinder, MissingAttribute, missing_name_error, reject_options, with_advice, without_missing_attributes
from .opnames import (
    FUNCTIONS_BY_OPNAME,
    PUBLIC_NAMES,
    function_by_opname,
    keyworded,
    operand_count,
    operand_names,
    opname_of,
    public_functions,
    register_operation,
    register_piecewise,
    register_user_function,
    spec_of,
)
from .private_numpy import (
    ARRAY_API,
    ARRAY_CONVERTER,
    CLIP,
    DISPATCHED_FUNCTION_TYPE,
    METHODS_MODULE,
    NO_VALUE,
    NUMPY,
    dispatchers,
    implementation,
    resolve_copy_option,
    sequence_of_arrays,
)
from .spec import OpSpec, is_elementwise
from .tables import (
    ALIASES,
    BINARY_OPERATORS,
    COMPARISONS,
    COMPOSED_FUNCTIONS,
    FLOAT_SCALARS,
    FOLDS,
    HIGHER_ORDER_FUNCTIONS,
    INDEXING_FUNCTIONS,
    INFIX,
    INLINED_FUNCTIONS,
    METHODS,
    OPNAMES,
    PACKED_FUNCTIONS,
    PIECEWISE,
    PIECEWISE_FUNCTIONS,
    PIECEWISE_UFUNCS,
    PLAIN_FUNCTIONS,
    PLAIN_METHODS,
    PREFIX,
    REPLACED_FUNCTIONS,
    SMOOTH_FUNCTIONS,
    SMOOTH_UFUNCS,
    SPECS,
    UNARY_OPERATORS,
    UNSUPPORTED_FUNCTIONS,
    UNSUPPORTED_METHODS,
    VIEW_FUNCTIONS,
    WRITING_FUNCTIONS,
    WRITING_METHODS,
    has_value_dependent_shape,
)

__all__ = [
    "ALIASES", "ARRAY_API", "ARRAY_CONVERTER", "BINARY_OPERATORS", "CLIP", "COMPARISONS", "COMPOSED_FUNCTIONS",
    "DISPATCHED_FUNCTION_TYPE", "EXTERNAL_REGISTRIES", "FLOAT_SCALARS", "FOLDS", "FUNCTIONS_BY_OPNAME",
    "HIGHER_ORDER_FUNCTIONS", "INDEXING_FUNCTIONS", "INFIX", "INLINED_FUNCTIONS", "METHODS", "METHODS_MODULE", "NO_VALUE",
    "NUMPY", "OPERATIONS", "OPNAMES", "PACKED_FUNCTIONS", "PIECEWISE", "PIECEWISE_FUNCTIONS", "PIECEWISE_UFUNCS",
    "PLAIN_FUNCTIONS", "PLAIN_METHODS", "PREFIX", "PUBLIC_NAMES", "REPLACED_FUNCTIONS", "SMOOTH_FUNCTIONS", "SMOOTH_UFUNCS",
    "SPECS", "UNARY_OPERATORS", "UNDISPATCHED", "UNSUPPORTED_FUNCTIONS", "UNSUPPORTED_METHODS", "VIEW_FUNCTIONS",
    "WRITING_FUNCTIONS", "WRITING_METHODS", "AdviceFinder", "Configured", "Keyworded", "MissingAttribute", "OnAxes", "OpSpec",
    "Output", "Packed", "UfuncMethod", "added_at", "astype", "complex_sign", "compositions", "configured", "copy",
    "copy_as_laid", "dispatchers", "einsum", "ensure_array", "external_data", "flatten", "function_by_opname", "get_attached",
    "getitem", "has_value_dependent_shape", "implementation", "input_of", "is_elementwise", "keyworded", "missing_name_error",
    "on_axes", "operand_count", "operand_names", "opname_of", "output", "power", "public_functions", "register_operation",
    "register_piecewise", "register_user_function", "reject_options", "resolve_copy_option", "sequence_of_arrays",
    "set_attached", "spec_of", "stacked_matmul", "stop_gradient", "ufunc_method", "view", "with_advice",
    "without_missing_attributes",
]  # fmt: skip
