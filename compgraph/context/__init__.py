"""What holds for the code inside a ``with`` statement: recording, scopes, precision. Also automatic names, and locks."""

from .contexts import Context, Setting, apart, apart_once, is_quick, layered, settle
from .late import imported
from .locks import callbacks_lock, renewed
from .modes import (
    NoGraph,
    buffers_wrapped,
    called,
    calling,
    collector,
    default_dtype,
    default_float,
    derived,
    following,
    guarded,
    guarding,
    held,
    holding,
    in_scope,
    is_cut,
    is_deriving,
    is_following,
    is_recording,
    next_level,
    no_graph,
    noting,
    observers,
    of_numbers,
    open_scopes,
    profiled,
    profiler,
    recording,
    recording_again,
    recording_on,
    sealed_until,
    sealed_up_to,
    watched,
    watcher,
    wrappers,
)
from .names import automatic_name, restart_names
from .scopes import scope

__all__ = [
    "Context", "NoGraph", "Setting", "apart", "apart_once", "automatic_name", "buffers_wrapped", "callbacks_lock", "called",
    "calling", "collector", "default_dtype", "default_float", "derived", "following", "guarded", "guarding", "held", "holding",
    "imported", "in_scope", "is_cut", "is_deriving", "is_following", "is_quick", "is_recording", "layered", "next_level",
    "no_graph", "noting", "observers", "of_numbers", "open_scopes", "profiled", "profiler", "recording", "recording_again",
    "recording_on", "renewed", "restart_names", "scope", "sealed_until", "sealed_up_to", "settle", "watched", "watcher",
    "wrappers",
]  # fmt: skip
