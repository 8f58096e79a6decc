"""Guards on concrete values that steered Python while a graph was recorded, and leaks of numbers out of the graph."""

from . import conversions, guarded_errors
from .conversions import HiddenError, hash_scalars_by_value, scalar_hash
from .graph_guards import guards_of, select_guards, warn_leaks
from .guard import (
    EvaluationGuard,
    Guard,
    GuardError,
    GuardWarning,
    ProgramMismatchError,
    ShapeGuard,
    collecting_guards,
    evaluate_guarded,
    guarded_value,
    ignoring_guards,
    note_arange_length,
    note_copy,
    note_empty_write,
    note_guard,
    note_layout,
    strip_transforms,
)
from .guard_logs import (
    GuardLog,
    has_evicted_guards,
    log_guard,
    log_lost_guard,
    logged_guards,
    lost_guards,
    note_unpickling,
    reset,
)
from .guarded_shapes import (
    Shape,
    guarded_flags,
    guarded_strides,
    is_length_guard,
    is_shape_guard,
    make_raising_setter,
    needs_shape_guard,
    note_input_shapes,
    note_shape,
    watch_shapes,
)
from .leaks import (
    CONVERSIONS,
    MAX_SHOWN,
    Leak,
    candidate_leaks,
    collecting_leaks,
    format_leaks,
    is_within_operator,
    loses_derivative,
    note_conversion,
    note_dot_method,
    note_file,
    note_save,
    note_text,
    recent_leaks,
)
from .recipes import Recipe, reduce_ancestors, sort_recipes
from .untracked_indices import UnchangedGuard, UntrackedGuard, log_untracked

__all__ = [
    "CONVERSIONS", "MAX_SHOWN", "EvaluationGuard", "Guard", "GuardError", "GuardLog", "GuardWarning", "HiddenError", "Leak",
    "ProgramMismatchError", "Recipe", "Shape", "ShapeGuard", "UnchangedGuard", "UntrackedGuard", "candidate_leaks",
    "collecting_guards", "collecting_leaks", "conversions", "evaluate_guarded", "format_leaks", "guarded_errors",
    "guarded_flags", "guarded_strides", "guarded_value", "guards_of", "has_evicted_guards", "hash_scalars_by_value",
    "ignoring_guards", "is_length_guard", "is_shape_guard", "is_within_operator", "log_guard", "log_lost_guard",
    "log_untracked", "logged_guards", "loses_derivative", "lost_guards", "make_raising_setter", "needs_shape_guard",
    "note_arange_length", "note_conversion", "note_copy", "note_dot_method", "note_empty_write", "note_file", "note_guard",
    "note_input_shapes", "note_layout", "note_save", "note_shape", "note_text", "note_unpickling", "recent_leaks",
    "reduce_ancestors", "reset", "scalar_hash", "select_guards", "sort_recipes", "strip_transforms", "warn_leaks",
    "watch_shapes",
]  # fmt: skip
