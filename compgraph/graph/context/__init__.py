"""What holds for the code inside a ``with`` statement: recording, scopes, precision. Also automatic names, and locks."""

from .contexts import Context, Setting, apart, apart_once, is_quick, layered, settle
from .locks import callbacks_lock, renewed
from .modes import (
    NoGraph,
    buffers_wrapped,
    default_dtype,
    default_float,
    derived,
    guarded,
    guarding,
    held,
    holding,
    in_scope,
    is_deriving,
    is_recording,
    no_graph,
    of_numbers,
    open_scopes,
    recording_on,
    scopes_and_watcher,
    sealed_until,
    sealed_up_to,
    watched,
    watcher,
    wrappers,
)
from .names import automatic_name, restart_names
from .scopes import scope

__all__ = [
    "Context", "NoGraph", "Setting", "apart", "apart_once", "automatic_name", "buffers_wrapped", "callbacks_lock",
    "default_dtype", "default_float", "derived", "guarded", "guarding", "held", "holding", "in_scope", "is_deriving",
    "is_quick", "is_recording", "layered", "no_graph", "of_numbers", "open_scopes", "recording_on", "renewed",
    "restart_names", "scope", "scopes_and_watcher", "sealed_until", "sealed_up_to", "settle", "watched", "watcher",
    "wrappers",
]  # fmt: skip
