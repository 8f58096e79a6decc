"""What code cannot do right, as an index that is out of range: the program runs again as NumPy, which has the last word."""

from __future__ import annotations

from .code import INT, Code, Value

REFUSED = 1 << 16  # in what a function returns, beside the exceptions of floating-point arithmetic


def refuse(code: Code, bits: Value) -> None:
    """Note that the results do not count if a bit is set in some lane."""
    if code.refused is None:
        code.refused = code.variable(INT, 0)
    there = code.refused
    now = code.select(code.any(bits), code.number(REFUSED, INT), code.number(0, INT))
    code.store(code.binary("or", code.load(there, INT, 4), now), there, 4)


def told(code: Code, raised: Value) -> Value:
    """What a function returns: which exceptions were seen, and whether it refused."""
    return raised if code.refused is None else code.binary("or", raised, code.load(code.refused, INT, 4))
