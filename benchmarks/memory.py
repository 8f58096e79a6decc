"""Memory of the reverse sweep, here and in PyTorch, for a network of 50 equal layers in double precision.

The unit is the size of one layer's activations. `forward` is the memory of the graph; `sweep` is the peak beyond that while the
gradients of all weights, or of the first alone, are computed and the graph is kept. The second table measures value and gradients
together, without keeping a graph: `between` is the memory held between calls, such as the workspace of a compiled program, and
`peak` the memory of a call beyond that. Modules that a process loads once are not counted. The third table measures the peak of
a compilation, with the arguments, in units of the peak of the call that NumPy runs.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from typing import Any

import numpy as np

import autodiff
import compgraph as cg
from autodiff.reverse import gradient

LAYERS, SIZE = 50, 256
LAYER = 8 * SIZE * SIZE


def data() -> tuple[Any, list[Any]]:
    """The inputs and the weights."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(SIZE, SIZE)), [rng.normal(size=(SIZE, SIZE)) / SIZE**0.5 for _ in range(LAYERS)]


def ours(first_only: bool) -> tuple[float, float]:
    """Return the memory of this package after the forward pass, and its further needs."""
    inputs, arrays = data()
    weights = [cg.variable(a) for a in arrays]
    gc.collect()
    tracemalloc.start()
    h = inputs
    for w in weights:
        h = np.tanh(h @ w)
    loss = np.sum(h * h)
    resident = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    gradients = gradient(loss, weights[:1] if first_only else weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(gradients) == (1 if first_only else LAYERS)
    return resident / LAYER, (peak - resident) / LAYER


def torchs(first_only: bool) -> tuple[float, float]:
    """The same of PyTorch, by its own profiler."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch.profiler import ProfilerActivity, profile  # type: ignore[import-not-found, unused-ignore]

    torch.set_num_threads(1)
    inputs, arrays = data()
    x, weights = torch.from_numpy(inputs), [torch.from_numpy(a).requires_grad_() for a in arrays]

    def measure(backward: bool) -> float:
        """The peak of a run, of the forward pass alone or of both."""
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
            h = x
            for w in weights:
                h = torch.tanh(h @ w)
            loss = (h * h).sum()
            if backward:
                gradients = torch.autograd.grad(loss, weights[:1] if first_only else weights, retain_graph=True)
                assert len(gradients)
        return float(_sizes(run).max() if backward else _sizes(run)[-1]) / LAYER

    resident = measure(False)
    return resident, measure(True) - resident


def loss(inputs: Any, weights: list[Any]) -> Any:
    """The differentiated function."""
    h = inputs
    for w in weights:
        h = np.tanh(h @ w)
    return np.sum(h * h)


def together(is_compiled: bool) -> tuple[float, float]:
    """Return the memory between calls for value and gradients, compiled or not, and the peak of a call beyond that."""
    inputs, weights = data()
    run: Any = autodiff.value_and_grad(loss, argnums=1)
    if is_compiled:  # all modules are loaded
        cg.jit(run, threads=1).compile(inputs[:2, :2], [weights[0][:2, :2]])
    gc.collect()
    tracemalloc.start()
    if is_compiled:
        run = cg.jit(run, threads=1).compile(inputs, weights)
        gc.collect()
    resident = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    _, gradients = run(inputs, weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(gradients) == LAYERS
    return resident / LAYER, (peak - resident) / LAYER


def torch_together() -> tuple[float, float]:
    """The same of PyTorch, which frees its graph as it sweeps."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    inputs, arrays = data()
    h, weights = torch.from_numpy(inputs), [torch.from_numpy(a).requires_grad_() for a in arrays]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        for w in weights:
            h = torch.tanh(h @ w)
        value = (h * h).sum()
        gradients = torch.autograd.grad(value, weights)
    assert len(gradients) == LAYERS
    return 0.0, float(_sizes(run).max()) / LAYER


def compiling() -> dict[str, float]:
    """Return the peak memory of compilations, in units of that of NumPy's call; both include the arguments."""
    matrix, vector = np.random.default_rng(0).normal(size=(4000, 4000)), np.ones(4000)
    functions: dict[str, Any] = {
        "matrix-vector product": lambda a, x: a @ x,
        "value and gradients": autodiff.value_and_grad(lambda a, x: np.sum(np.tanh(a @ x)), (0, 1)),
    }
    ratios = {}
    for name, f in functions.items():
        cg.jit(f, cache=False).compile(matrix[:2, :2].copy(), vector[:2])  # all modules are loaded
        peaks = []
        for call in (f, cg.jit(f, cache=False, threads=1).compile):
            gc.collect()
            tracemalloc.start()
            call(matrix, vector)
            peaks.append(matrix.nbytes + tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        ratios[name] = peaks[1] / peaks[0]
    return ratios


def _sizes(run: Any) -> Any:
    """The allocated bytes of a profiled run after each allocation."""
    events = [e for e in run.profiler.kineto_results.events() if e.name() == "[memory]"]
    return np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-torch", action="store_true", help="measure this package alone")
    alone = parser.parse_args().without_torch
    print("gradients of      who        forward  sweep")
    for first_only in (False, True):
        for name, measure in (("compgraph", ours), *(() if alone else (("PyTorch", torchs),))):
            resident, swept = measure(first_only)
            print(f"{'the first weight' if first_only else 'all weights':17} {name:9} {resident:8.1f} {swept:6.1f}")
    print("\nvalue and gradients at once  between   peak")
    ways: dict[str, Any] = {"compgraph": lambda: together(False), "cg.jit": lambda: together(True)} | (
        {} if alone else {"PyTorch": torch_together}
    )
    for name, way in ways.items():
        resident, peak = way()
        print(f"{name:27} {resident:8.1f} {peak:6.1f}")
    print("\ncompilation of            / NumPy")
    for name, ratio in compiling().items():
        print(f"{name:27} {ratio:6.1f}")


if __name__ == "__main__":
    main()
