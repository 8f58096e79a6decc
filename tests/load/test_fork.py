"""A process may fork while other threads record, draw, pickle, run and compile graphs: its children do not deadlock."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, pickle, signal, sys, threading
import numpy as np
import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient

x0 = np.array([1.0, 2.0])
p = cg.placeholder((2,), name="p")
executor = cg.Executor(np.sum(np.sin(p) * p))

def work():
    x = cg.variable(x0)
    y = np.sum(np.sin(x) * x)
    if y > 0:
        y = y * 2
    y.name
    pickle.loads(pickle.dumps(y))
    executor.run({p: x0})
    with cg.patched_numpy():
        np.array([x[0], x[1]])
    ad.grad(lambda tree: np.sum(tree["a"] ** 2))({"a": x0})
    assert np.allclose(gradient(y)[x], 2 * (np.sin(x0) + x0 * np.cos(x0)))

def always():
    while True:
        work()
        for _ in range(200):
            cg.variable(x0)

work()
for _ in range(4):
    threading.Thread(target=always, daemon=True).start()
sys.setswitchinterval(1e-5)
hung = wrong = 0
for _ in range(CHILDREN):
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            for _ in range(3):
                work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    hung += os.WIFSIGNALED(status)
    wrong += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
print(hung, wrong, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_fork_children_of_threaded_process_do_not_hang() -> None:
    program = PROGRAM.replace("CHILDREN", "10")
    ignore = ["-W", "ignore::DeprecationWarning"]  # that there are threads, from Python 3.12 on
    process = subprocess.run([sys.executable, *ignore, "-c", program], capture_output=True, text=True, timeout=500, check=False)
    assert process.stdout.split() == ["0", "0"], process.stderr


COMPILING = """
import gc, multiprocessing, os, signal, sys, time
import numpy as np
import autodiff as ad
import compgraph as cg

def function(n, k=1.0):
    def total(x):
        y = x
        for _ in range(n):
            z = y.copy()
            z[1:-1] = y[1:-1] + 0.1 * (y[2:] - 2 * y[1:-1] + y[:-2]) * np.cos(k * y[1:-1])
            y = z.copy()
            y[1:-1] = z[1:-1] + 0.1 * (z[2:] - 2 * z[1:-1] + z[:-2])
        return np.sum(y * y)
    return total

x = np.linspace(0, 1, 20)

def check(f, jitted):
    assert np.allclose(jitted(x), ad.grad(f)(x))

def work(jitteds):
    signal.alarm(30)
    for f, jitted in jitteds:
        check(f, jitted)
        jitted.compile(x)
        check(f, jitted)
    f = function(2, 2.0)
    new = cg.jit(ad.grad(f), cache=False)
    for _ in range(5):
        check(f, new)
    assert np.allclose(cg.Executor([x * cg.variable(x)], jit=True).run({})[0], x * x)
    jitteds.clear()
    del new, jitted
    gc.collect()
    return "right"

def compiling(n):
    "Functions that are being compiled, with up to n iterations."
    jitteds = []
    for count in (2, n):
        f = function(count)
        jitted = cg.jit(ad.grad(f), cache=False)
        for _ in range(4):
            jitted(x)
        jitteds.append((f, jitted))
    return jitteds

context = multiprocessing.get_context("fork")
for wait, n in CASES:
    jitteds = compiling(n)
    time.sleep(wait)
    queue = context.SimpleQueue()
    children = [context.Process(target=lambda: queue.put(work(jitteds))) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        print(child.exitcode, end=" ", flush=True)
    print(*[queue.get() for child in children if not child.exitcode], flush=True)
with context.Pool(2) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
@pytest.mark.parametrize(
    "cases",
    [
        pytest.param([(0.0, 4)], id="import of the back end"),
        pytest.param([(0.05, 4), (0.0, 25)], id="compilation", marks=pytest.mark.slow),  # the second outlasts what a fork waits
    ],
)
def test_fork_during_compilation_does_not_hang(cases: list[tuple[float, int]]) -> None:
    program = COMPILING.replace("CASES", repr(cases))
    ignore = ["-W", "ignore::DeprecationWarning"]
    process = subprocess.run([sys.executable, *ignore, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert process.stdout.split() == ["0", "0", "right", "right"] * len(cases), process.stderr
    assert process.stderr == ""
