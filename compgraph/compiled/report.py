"""What is told of a compiled function: its programs, their times, and what runs as NumPy and why."""

from __future__ import annotations

from collections.abc import Iterable

from .variants import Programs, Variant


def report(name: str, backend: str, entries: Iterable[Programs], notes: Iterable[str]) -> str:
    """A text of several lines; for each key its title, and for each program of it times and runs."""
    lines = [f"{name}, compiled by {backend}"]
    lines += [f"  runs as NumPy: {note}" for note in notes]
    for programs in entries:
        lines.append(f"  ({programs.title})")
        if programs.refusal is not None:
            lines.append(f"    runs as NumPy: {programs.refusal}")
        lines += [f"    not compiled so far: {note}" for note in dict.fromkeys(programs.notes)]
        if not programs.variants and programs.refusal is None:
            lines.append(f"    {_calls(programs.calls)} so far, as NumPy")
        for number, variant in enumerate(programs.variants, 1):
            lines += _of_variant(number, variant)
    if len(lines) == 1:
        lines.append("  not called so far")
    return "\n".join(lines)


def _of_variant(number: int, variant: Variant) -> list[str]:
    times = ", ".join(f"{what} {_time(seconds)}" for what, seconds in variant.times.items())
    mean = f", {_time(variant.seconds / variant.timed)} each" if variant.timed else ""
    lines = [f"    program {number}: {variant.size} operations; {times}; {_runs(variant.runs)}{mean}"]
    return lines + [f"      {line}" for line in getattr(variant.program, "report", ())]


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"
