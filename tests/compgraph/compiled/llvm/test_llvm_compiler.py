"""Object code may be loaded at any address, also in a process that has mapped several GB of libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

# Leaves a gap of a few pages among the libraries, and the next one 3 GB below: the sections of a program do not fit side by side.
PROGRAM = """
import ctypes, sys
import numpy as np
import autodiff as ad
import compgraph as cg

def function(x):
    for _ in range(12):
        x = np.tanh(x) * np.exp(-x * x) + np.sin(x) * 0.37
    return np.sum(x)

x = np.linspace(0, 1, 50)
expected = ad.grad(function)(x)
cg.jit(lambda x: x * 2 + 1, cache=False).compile(x)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PRIVATE, NORESERVE, NOREPLACE, SIZE = 0x22, 0x4000, 0x100000, 3 << 30
block = libc.mmap(None, SIZE, 0, PRIVATE | NORESERVE, -1, 0)
spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in open("/proc/self/maps")]
for (_, start), (stop, _) in zip(spans, spans[1:]):
    if block < start < stop < start + (1 << 40):
        libc.mmap(start, stop - start, 0, PRIVATE | NORESERVE | NOREPLACE, -1, 0)
pages = int(sys.argv[1]) * 4096
libc.munmap(block + SIZE - pages, pages)
jitted = cg.jit(ad.value_and_grad(function), cache=sys.argv[2] == "cache").compile(x)
assert "program 1" in jitted.report()
np.testing.assert_allclose(jitted(x)[1], expected, rtol=1e-12)
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["1", ""], ["4", "cache"]])
def test_llvm_compiles_among_large_mappings(arguments: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert (process.returncode, process.stdout) == (0, "done\n"), process.stderr
