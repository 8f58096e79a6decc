"""Garbage collection during a test run."""

from __future__ import annotations

import gc


def freeze_existing_objects() -> None:
    """Freeze all existing objects, so that a collection during a test does not traverse them."""
    gc.collect()
    gc.freeze()
