"""What Python was told of values while a graph was recorded: answers to be asked for again, and numbers that escaped."""

from . import escapes
from .escapes import notice_saved, noticed, noticing, told
from .graphs import guards_of
from .guards import (
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
    remembering,
)
from .lineage import Lineage, gathered_up
from .logs import Log, copied, enter_lost, is_forgetful, noted, reset
from .shapes import Shape, freezes_nothing, note_length, note_lengths, noticing_flags, noticing_strides, watch_shapes

__all__ = [
    "Guard", "GuardError", "Lineage", "Log", "OtherProgramError", "Shape", "copied", "decided", "derived_again", "enter_lost",
    "escapes", "freezes_nothing", "frozen", "gathered_up", "guards_of", "is_forgetful", "note", "note_copy", "note_layout",
    "note_length", "note_lengths", "note_nothing", "noted", "notice_saved", "noticed", "noticing", "noticing_flags",
    "noticing_strides", "remembering", "reset", "told", "watch_shapes",
]  # fmt: skip
