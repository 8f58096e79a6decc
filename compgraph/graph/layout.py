"""The slots that all kinds of node share: a `Promotable` has them too, so that it can become a node by a change of class."""

from __future__ import annotations

from typing import Any

import numpy as np


class Layout(np.ndarray):
    """An array with a slot for each attribute of a node; see `Node` for what each is."""

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

    def numbers_now(self, function: Any = None) -> Any:
        """The present numbers as an operand of `function`, which nobody changes later; only arrays that are no nodes have it."""
        raise NotImplementedError


class TangentLayout(Layout):
    """A Layout that has also the slots of a node with a tangent; see `autodiff.forward`."""

    __slots__ = ("_primal", "_shadow", "_tangent", "inputs", "is_scalar", "level", "root")
