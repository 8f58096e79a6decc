"""Where time and memory go: `profile`, which is told of each operation while its block runs.

While nobody profiles, nothing here is called. Within the block of a profile, operations are processed by an interpreter that
measures another one (`recorder.Profiling`), and a sweep asks once. Other methods that are to be entries of their own (a compiled
function, an executor, values with tangents) are exchanged for others as long as somebody profiles: those of `compgraph` here,
others by `exchange`.

============  =========================================================================================
`profile`     what users call: `profile`, and the `Profile` that it returns
`recorder`    what is told of operations and sweeps in one thread: time by entries, bytes by weak references
`entries`     the entries, a tree
`ledger`      bytes as they are allocated and freed, their peak, and what held it
`exchanges`   methods that are exchanged while somebody profiles
`table`       the table
`pages`       the flame graph, and the picture of memory, as HTML pages
============  =========================================================================================
"""

from .entries import BACKWARD, EXAMPLES, FORWARD, TANGENT
from .exchanges import exchange
from .profile import Profile, profile

__all__ = ["BACKWARD", "EXAMPLES", "FORWARD", "TANGENT", "Profile", "exchange", "profile"]
