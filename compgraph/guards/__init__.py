"""What Python was told of values while a graph was recorded: guards, which are asked again, and escapes, which cannot be."""

from . import escapes, raising
from .escapes import SHOWN, Leak, collecting_leaks, format_leaks, note_saved, note_taken, note_text, open_leaks, recent_leaks
from .graphs import guards_among, guards_of, warn_leaks
from .guards import (
    EvaluationGuard,
    Guard,
    GuardError,
    OtherProgramError,
    ShapeGuard,
    collecting_guards,
    evaluate_guarded,
    guarded_value,
    ignoring_guards,
    note_copy,
    note_guard,
    note_layout,
    note_nothing,
    note_points,
)
from .hashes import hash_scalars_by_value, scalar_hash
from .lineage import Recipe, reduce_ancestors, sort_recipes
from .logs import GuardLog, is_forgetful, log_guard, log_lost_guard, logged_guards, lost_guards, note_loaded, reset
from .shapes import (
    Shape,
    guarded_flags,
    guarded_strides,
    is_length_guard,
    is_shape_guard,
    needs_no_shape_guard,
    note_length,
    note_lengths,
    watch_shapes,
)
from .unread import UnchangedGuard, UntrackedGuard, log_untracked

__all__ = [
    "SHOWN", "EvaluationGuard", "Guard", "GuardError", "GuardLog", "Leak", "OtherProgramError", "Recipe", "Shape", "ShapeGuard",
    "UnchangedGuard", "UntrackedGuard", "collecting_guards", "collecting_leaks", "escapes", "evaluate_guarded", "format_leaks",
    "guarded_flags", "guarded_strides", "guarded_value", "guards_among", "guards_of", "hash_scalars_by_value",
    "ignoring_guards", "is_forgetful", "is_length_guard", "is_shape_guard", "log_guard", "log_lost_guard", "log_untracked",
    "logged_guards", "lost_guards", "needs_no_shape_guard", "note_copy", "note_guard", "note_layout", "note_length",
    "note_lengths", "note_loaded", "note_nothing", "note_points", "note_saved", "note_taken", "note_text", "open_leaks",
    "raising", "recent_leaks", "reduce_ancestors", "reset", "scalar_hash", "sort_recipes", "warn_leaks", "watch_shapes",
]  # fmt: skip
