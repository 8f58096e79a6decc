"""Profiles of time and memory: `profile` records each operation while its block runs.

Within the block, `recorder.ProfilingInterpreter` wraps the interpreter of operations, and sweeps report to the active profiler.
Methods with separate entries (of compiled functions, executors, values with tangents) are patched while a profile runs: those of
`compgraph` by `recorder`, others by `patch_method`. Inactive profiles add no overhead.

==========  ==========================================================================================
`profile`   `profile`, and the `Profile` that it returns
`recorder`  the recorder of one block: time by entries, bytes by weak references; methods that are patched while it runs
`entries`   the tree of entries; live bytes over time, their peak, and its holders
`reports`   the table, and the data of the flame graph and of the picture of memory
==========  ==========================================================================================
"""

from .entries import BACKWARD, BATCHED, FORWARD, TANGENT
from .profile import Profile, profile
from .recorder import patch_method

__all__ = ["BACKWARD", "BATCHED", "FORWARD", "TANGENT", "Profile", "patch_method", "profile"]
