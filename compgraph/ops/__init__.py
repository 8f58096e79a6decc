"""The operations as data: which callables are recorded as nodes, under which opname, with which operands.

An opname is the name of an operation in rules, pictures and pickles. `families` has one `OpSpec` per operation, with everything
except its derivative; `tables` derives the tables of other packages; `compositions` has functions in recorded steps that replace
some of NumPy's. The package `compgraph.scipy` registers SciPy's functions. No module here imports nodes.
"""

from . import compositions
from .attached import KNOWN_ELSEWHERE, keep, kept, known_elsewhere
from .callables import (
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
    flatten,
    getitem,
    input_of,
    on_axes,
    output,
    power,
    stacked_matmul,
    stop_gradient,
    ufunc_method,
    view,
)
from .compositions import ensure_array
from .families import OPERATIONS, UNDISPATCHED
from .hints import AdviceFinder, Missing, missing, refuse_options, saying, without_missing
from .opnames import (
    PUBLIC_NAMES,
    _by_opname,
    enter,
    enter_piecewise,
    enter_users,
    function_named,
    keyworded,
    operand_count,
    operand_names,
    opname_of,
    public_functions,
    spec_of,
)
from .private_numpy import (
    ARRAY_CONVERTER,
    CLIP,
    DISPATCHING,
    METHODS_MODULE,
    NO_VALUE,
    NUMPY,
    copies,
    dispatchers,
    implementation,
    sequence_of_arrays,
)
from .spec import OpSpec, is_elementwise
from .tables import (
    ALIASES,
    BINARY_OPERATORS,
    CALLING_FUNCTIONS,
    COMPARISONS,
    COMPOSED_FUNCTIONS,
    COUNTING,
    FOLDS,
    INDEXED,
    INDICES_OF_SHAPE,
    INFIX,
    INLINED,
    INSTEAD_FUNCTIONS,
    METHODS,
    OPNAMES,
    PACKED_FUNCTIONS,
    PIECEWISE,
    PIECEWISE_FUNCTIONS,
    PIECEWISE_UFUNCS,
    PLAIN_FUNCTIONS,
    PLAIN_METHODS,
    PREFIX,
    REFUSED_FUNCTIONS,
    REFUSED_METHODS,
    SAME_BITS,
    SMOOTH_FUNCTIONS,
    SMOOTH_UFUNCS,
    SPECS,
    STACKING_FUNCTIONS,
    UNARY_OPERATORS,
    VIEWS_IF_THEY_CAN,
    WRITING_FUNCTIONS,
    WRITING_METHODS,
    counts,
)

__all__ = [
    "ALIASES", "ARRAY_CONVERTER", "BINARY_OPERATORS", "CALLING_FUNCTIONS", "CLIP", "COMPARISONS", "COMPOSED_FUNCTIONS",
    "COUNTING", "DISPATCHING", "FOLDS", "INDEXED", "INDICES_OF_SHAPE", "INFIX", "INLINED", "INSTEAD_FUNCTIONS",
    "KNOWN_ELSEWHERE", "METHODS", "METHODS_MODULE", "NO_VALUE", "NUMPY", "OPERATIONS", "OPNAMES", "PACKED_FUNCTIONS",
    "PIECEWISE", "PIECEWISE_FUNCTIONS", "PIECEWISE_UFUNCS", "PLAIN_FUNCTIONS", "PLAIN_METHODS", "PREFIX", "PUBLIC_NAMES",
    "REFUSED_FUNCTIONS", "REFUSED_METHODS", "SAME_BITS", "SMOOTH_FUNCTIONS", "SMOOTH_UFUNCS", "SPECS", "STACKING_FUNCTIONS",
    "UNARY_OPERATORS", "UNDISPATCHED", "VIEWS_IF_THEY_CAN", "WRITING_FUNCTIONS", "WRITING_METHODS", "AdviceFinder",
    "Configured", "Keyworded", "Missing", "OnAxes", "OpSpec", "Output", "Packed", "UfuncMethod", "_by_opname", "added_at",
    "astype", "complex_sign", "compositions", "configured", "copies", "copy", "copy_as_laid", "counts", "dispatchers",
    "einsum", "ensure_array", "enter", "enter_piecewise", "enter_users", "flatten", "function_named", "getitem",
    "implementation", "input_of", "is_elementwise", "keep", "kept", "keyworded", "known_elsewhere", "missing", "on_axes",
    "operand_count", "operand_names", "opname_of", "output", "power", "public_functions", "refuse_options", "saying",
    "sequence_of_arrays", "spec_of", "stacked_matmul", "stop_gradient", "ufunc_method", "view", "without_missing",
]  # fmt: skip
