"""`Split`: a graph divided into parts on different machines.

The client assigns operations to parts (`layout`), divides the graph into stages (`plan`), sends them to machines
(`hosts`), and runs micro-batches through them (`pipeline`). A machine serves its parts (`server`): each runs its stages (`part`)
on the micro-batches of a pass (`part_pass`), and answers by `messages`: a result, or an error that the client raises.
"""

from .splitting import Split

__all__ = ["Split"]
