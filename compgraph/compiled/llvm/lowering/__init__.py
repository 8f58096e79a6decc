"""From a schedule of the executor's to steps over buffers."""

from .lower import Lowered

__all__ = ["Lowered"]
