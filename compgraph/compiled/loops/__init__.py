"""Python loops in a trace: found as turns that repeat, and cut to a few turns, by which all others are known."""

from .cutting import NotAlikeError, Shortening
from .finding import STEP
from .periods import LEAST_TURNS, Run, runs_of

__all__ = ["LEAST_TURNS", "STEP", "NotAlikeError", "Run", "Shortening", "runs_of"]
