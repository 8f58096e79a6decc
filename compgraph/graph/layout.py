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

    def numbers_now(self) -> Any:
        """The present numbers as a plain array that nobody changes later; only arrays that are no nodes have it."""
        raise NotImplementedError


class TangentLayout(Layout):
    """A Layout that has also the slots of a node that carries something; see `autodiff.forward`, `autodiff.batching`."""

    __slots__ = (
        "_primal", "_seen", "_shadow", "_tangent", "_values", "inputs", "is_lent", "is_scalar", "level", "root",
    )  # fmt: skip
