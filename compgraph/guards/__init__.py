"""What Python was told of values while a graph was recorded: guards, which are asked again, and escapes, which cannot be."""

from . import escapes, raising
from .escapes import SHOWN, Escape, collecting_escapes, escaped, note_saved, note_taken, note_text, open_escapes, told
from .graphs import guards_among, guards_of, tell_escaped
from .guards import (
    Computed,
    Count,
    Guard,
    GuardError,
    OtherProgramError,
    decided,
    derived_again,
    frozen,
    note,
    note_copy,
    note_layout,
    note_nothing,
    note_points,
    remembering,
)
from .hashes import hash_scalars_by_value, scalar_hash
from .lineage import Lineage, gathered_up, in_order
from .logs import Log, copied, enter, enter_lost, is_forgetful, note_loaded, noted, reset
from .shapes import (
    Shape,
    freezes_nothing,
    guarded_flags,
    guarded_strides,
    is_about_lengths,
    is_of_a_shape,
    note_length,
    note_lengths,
    watch_shapes,
)
from .unread import Unchanged, Watch, enter_unread

__all__ = [
    "SHOWN", "Computed", "Count", "Escape", "Guard", "GuardError", "Lineage", "Log", "OtherProgramError", "Shape", "Unchanged",
    "Watch", "collecting_escapes", "copied", "decided", "derived_again", "enter", "enter_lost", "enter_unread", "escaped",
    "escapes", "freezes_nothing", "frozen", "gathered_up", "guarded_flags", "guarded_strides", "guards_among", "guards_of",
    "hash_scalars_by_value", "in_order", "is_about_lengths", "is_forgetful", "is_of_a_shape", "note", "note_copy", "note_layout",
    "note_length", "note_lengths", "note_loaded", "note_nothing", "note_points", "note_saved", "note_taken", "note_text", "noted",
    "open_escapes", "raising", "remembering", "reset", "scalar_hash", "tell_escaped", "told", "watch_shapes",
]  # fmt: skip
