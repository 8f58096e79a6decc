"""Profiles of time and memory: `profile` records each operation while its block runs.

Within the block, an interpreter that measures another one processes operations (`recorder.ProfilingInterpreter`), and sweeps
check for an active profiler. Methods with entries of their own (of compiled functions, executors, values with tangents) are
patched while one is active: those of `compgraph` here, others by `patch_method`. Inactive profiles add no overhead.

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
