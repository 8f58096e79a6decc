"""What holds for the code inside a ``with`` statement: recording, scopes, precision. Also automatic names, and locks."""

from .contexts import Context, Setting, is_quick, layered_variable, run_isolated, run_isolated_once, sync_variables
from .late import import_lazily
from .locks import callbacks_lock, reset_after_fork
from .modes import (
    NoGraph,
    active_profiler,
    active_watcher,
    buffers_wrapped,
    call_function,
    call_wrapper,
    collector,
    constant_holder,
    default_dtype,
    default_float,
    following,
    holding_constants,
    is_blocked_level,
    is_deriving,
    is_following,
    is_recording,
    next_level,
    no_graph,
    observers,
    open_scopes,
    profiler,
    recording,
    recording_derivative,
    recording_for_replay,
    recording_on,
    records_for_replay,
    rerecording,
    scope_change,
    sealed_until,
    sealing,
    trace_guards,
    watcher,
    with_default_dtype,
    wrappers,
)
from .names import automatic_name, restart_names
from .scopes import scope

__all__ = [
    "Context", "NoGraph", "Setting", "active_profiler", "active_watcher", "automatic_name", "buffers_wrapped", "call_function",
    "call_wrapper", "callbacks_lock", "collector", "constant_holder", "default_dtype", "default_float", "following",
    "holding_constants", "import_lazily", "is_blocked_level", "is_deriving", "is_following", "is_quick", "is_recording",
    "layered_variable", "next_level", "no_graph", "observers", "open_scopes", "profiler", "recording", "recording_derivative",
    "recording_for_replay", "recording_on", "records_for_replay", "rerecording", "reset_after_fork", "restart_names",
    "run_isolated", "run_isolated_once", "scope", "scope_change", "sealed_until", "sealing", "sync_variables", "trace_guards",
    "watcher", "with_default_dtype", "wrappers",
]  # fmt: skip
