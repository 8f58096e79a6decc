"""Reports on compiled functions: a verdict, then programs, times, and the NumPy calls that remain."""

from __future__ import annotations

from collections.abc import Sequence

from .specializations import Specialization, Specializations


def report(name: str, backend: str, entries: Sequence[Specializations], notes: Sequence[str]) -> str:
    """Return a report of several lines: a verdict, then the programs of each signature with their times.

    Parameters
    ----------
    name : str
        The name of the function.
    backend : str
        The name of the backend.
    entries : sequence of Specializations
        The programs by signature.
    notes : sequence of str
        Reasons why calls without a signature run as NumPy.
    """
    lines = [f"{name}: {_verdict(backend, entries, notes)}"]
    lines += [f"  runs as NumPy: {note}" for note in notes]
    for programs in entries:
        lines.append(f"  ({programs.title})")
        if programs.rejection is not None:
            lines.append(f"    runs as NumPy: {programs.rejection}")
        lines += [f"    not compiled so far: {note}" for note in dict.fromkeys(programs.notes)]
        if not programs.variants and programs.rejection is None:
            lines.append(f"    {_count(programs.calls, 'call')} so far, as NumPy")
        for number, variant in enumerate(programs.variants, 1):
            lines += _describe(number, variant)
    return "\n".join(lines)


def _verdict(backend: str, entries: Sequence[Specializations], notes: Sequence[str]) -> str:
    """Summarize whether calls run compiled, compiled with NumPy calls, or as NumPy, with the first reason."""
    reasons = [*notes, *(programs.rejection for programs in entries if programs.rejection is not None)]
    compiled_entries = [programs for programs in entries if programs.variants]
    if not compiled_entries:
        if reasons:
            return f"runs as NumPy: {reasons[0]}"
        return "not compiled so far" if entries else "not called so far"
    variants = [variant for programs in compiled_entries for variant in programs.variants]
    uncompiled = [reason for variant in variants if (reason := getattr(variant.program, "numpy_reason", ""))]
    if len(uncompiled) == len(variants):
        return f"runs as NumPy calls: {uncompiled[0]}"
    reasons += uncompiled
    verdict = f"compiled by {backend}"
    calls = max(getattr(variant.program, "numpy_calls", 0) for variant in variants)
    if calls:
        verdict += f", with {_count(calls, 'NumPy call')} in each run"
    if reasons:
        verdict += f", but some arguments run as NumPy: {reasons[0]}"
    return verdict


def _describe(number: int, variant: Specialization) -> list[str]:
    times = ", ".join(f"{what} {_time(seconds)}" for what, seconds in variant.times.items())
    mean = f", {_time(variant.seconds / variant.timed)} each" if variant.timed else ""
    lines = [f"    program {number}: {variant.size} operations; {times}; {_count(variant.runs, 'run')}{mean}"]
    if reason := getattr(variant.program, "numpy_reason", ""):
        lines.append(f"      runs as NumPy calls: {reason}")
    return lines + [f"      {line}" for line in getattr(variant.program, "report", ())]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"
