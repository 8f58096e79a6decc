"""A process may fork while other threads record, draw, pickle and run graphs: its children hang at nothing."""

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
def test_children_of_a_process_with_threads() -> None:
    program = PROGRAM.replace("CHILDREN", "20")
    ignore = ["-W", "ignore::DeprecationWarning"]  # that there are threads, from Python 3.12 on
    done = subprocess.run([sys.executable, *ignore, "-c", program], capture_output=True, text=True, timeout=500, check=False)
    assert done.stdout.split() == ["0", "0"], done.stderr
