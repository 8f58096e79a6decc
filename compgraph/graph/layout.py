"""What nodes have in memory: the slots of all kinds, so that an array made in time can become a node where it stands."""

from __future__ import annotations

from typing import Any

import numpy as np


class Layout(np.ndarray):
    """An array with room for what a node knows; see `Node` for what each is."""

    __slots__ = (
        "_name",
        "_operands",
        "_scope",
        "args",
        "code",
        "edges",
        "function",
        "instruction",
        "lineage",
        "memory",
        "options",
        "origin",
        "plain",
        "taken",
        "tick",
    )  # fmt: skip

    def numbers_now(self) -> Any:
        """A plain array of the numbers as they are, which nobody changes; of arrays that are no nodes."""
        raise NotImplementedError


class TangentLayout(Layout):
    """The same, with room for what a node knows that carries something; see `autodiff.forward`, `autodiff.batching`."""

    __slots__ = ("_primal", "_seen", "_shadow", "_tangent", "_values", "inputs", "is_lent", "is_scalar", "level", "root")
