"""Views and copies of a node that NumPy created without recording them raise at their first use."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient, gradients, unbroadcast_adjoint
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

KINDS: dict[str, Callable[[Any], Any]] = {
    "operational": lambda x: x * 1,
    "variable": lambda x: x,
    "constant": lambda x: cg.constant(x),
    "inert": lambda x: np.floor(x),
    "scalar": lambda x: x[0, 0] * 1,
    "inert scalar": lambda x: np.floor(x[0, 0]),
}
BEHIND: dict[str, Callable[[Any], Any]] = {
    "view": lambda node: np.ndarray.view(node),
    "getitem": lambda node: np.ndarray.__getitem__(node, ...),
    "copy": lambda node: np.ndarray.copy(node),
    "array": lambda node: np.array(node, subok=True),
    "as_strided": lambda node: np.lib.stride_tricks.as_strided(node, subok=True),
}


def lost(kind: str, how: str = "view") -> Any:
    return BEHIND[how](KINDS[kind](cg.variable([[1.0, 2.0], [3.0, 4.5]])))


ACTIONS = """n + 1|1 + n|n + good|good + n|n * one|one * n|one @ n|n @ n|-n|abs(n)|n > 1|1 > n|n == 'a'|n == good|n != [1]
divmod(n, 2)|n += 1|n -= good|n *= 2|n /= 2|n //= 2|n **= 2|n %= 2|n @= n|good += n|good[0] = n|good[...] = n
n[0] = 1|n[...] = good|n[...]|n[()]|n.fill(1)|n.sort()|n.partition(0)|n.put([0], 1)|n.real = 1|n.imag = 1|n.flat[0] = 1
np.sin(n)|np.sum(n)|np.add(one, 1, out=n)|np.add(good, 1, out=n)|np.sum(good, axis=0, out=n)|np.matmul(good, one, out=n)
np.copyto(n, 1)|np.copyto(n, good)|np.copyto(good, n)|np.put(n, [0], 1)|np.putmask(n, np.ones(n.shape, bool), 1)
np.place(n, np.ones(n.shape, bool), 1)|np.add.at(n, (0, 0), 1)|np.add.reduce(n)|np.concatenate([n, n])|np.stack([good, n])
np.linalg.inv(n)|np.where(n, 1, 2)|np.where(True, n, good)|np.reshape(n, -1)|np.copy(n)|np.zeros_like(n)|np.result_type(n)
np.allclose(n, n)|np.array2string(n)|np.einsum('...->...', n)|np.broadcast_arrays(n, n)|np.median(n)|np.unique(n)|np.block([n, n])
np.meshgrid(n, n)|np.vstack([n, n])|np.argmax(n)|np.real(n)|np.imag(n)|np.iscomplexobj(n)|np.clip(n, 0, 1)|np.ravel(n)
np.kron(n, n)|np.interp(n, [1.0, 2.0], [1.0, 2.0])|np.sum(good, where=n > 0)|np.sum(good, initial=n)|good[n]|good.clip(n, 2)
cg.array(n)|cg.asarray([n, n])|cg.full(2, n)|cg.relu(n)|cg.stop_gradient(n)|cg.softmax(n)|cg.logsumexp(n)|cg.variable(n)
cg.constant(n)|cg.visualize_at(n)|cg.as_strided(n)|cg.r_[n, n]|cg.c_[n]|cg.sin(n, name='s')|n.name|n.name = 'a'|n.line|n.opname
n.operands|n.operand_a|n.operand_b|n.value|n.sum()|n.mean()|n.T|n.real|n.imag|n.flat|n.reshape(-1)|n.transpose()|n.astype(float)
n.copy()|n.view()|n.flatten()|n.ravel()|n.clip(0, 1)|n.conj()|n.round()|n.dot(n)|n.squeeze()|n.nonzero()|n.item(0)|n.tolist()
n.tobytes()|n.dumps()|n.data|n.ctypes|n.__array__()|n.__array_interface__|n.resize(1)|n.setflags(write=False)|n.byteswap()
n.take(0)|n.argsort()|n.cumsum()|n.choose([1, 2])|round(n)|1.0 in n|str(n)|repr(n)|pickle.dumps(n)|copy.copy(n)|copy.deepcopy(n)
gradient(n)|gradient(n, n)|gradient(good * 1, n)|gradient(good * 1, n, unused='zero')|gradients(good * 1, [n])
gradient(good * 1, adjoint=n)|gradient(good * 1, adjoint=n, create_graph=True)|ad.grad(np.sum)(n)|ad.vjp(np.sin, n)
ad.jvp(np.sin, (n,), (one,))|ad.jvp(np.sin, (one,), (n,))|ad.grad(lambda x: np.sum(x) + n)(one)"""
CODES = [code for line in ACTIONS.splitlines() for code in line.split("|")]


@pytest.mark.parametrize("kind", KINDS)
def test_node_without_history_raises_on_use(kind: str) -> None:
    with Failures(kind) as failures:
        for code in CODES:
            with failures.case(code):
                check_that_it_raises(code, kind)


def check_that_it_raises(code: str, kind: str) -> None:
    """Run code on a node without history: it raises, and writes nothing."""
    around = {"n": lost(kind), "good": cg.variable(np.ones((2, 2))) * 1, "one": np.ones((2, 2)), "np": np, "cg": cg, "ad": ad}
    around |= {"pickle": pickle, "copy": copy, "gradient": gradient, "gradients": gradients}
    values = np.array(around["n"]).tolist()
    with pytest.raises(TypeError, match=r"its history is lost\. Make it by a NumPy function"):
        exec(code, around)
    assert np.array(around["n"]).tolist() == values
    assert around["good"].value.tolist() == [[1, 1], [1, 1]]


def test_active_node_without_history_raises_on_conversion() -> None:
    with Failures("conversions") as failures:
        for kind, convert in itertools.product(["operational", "variable", "scalar"], [float, int, bool, complex]):
            with failures.case(f"{convert.__name__} of {kind}"), pytest.raises(TypeError, match="its history is lost"):
                convert(lost(kind))


def test_lost_history_is_detected_for_every_bypass() -> None:
    with Failures("bypasses") as failures:
        for how, kind in itertools.product(BEHIND, KINDS):
            with failures.case(f"{how} of {kind}"):
                cg.interception(False)  # by which the names keep the history
                try:
                    n = lost(kind, how)
                finally:
                    cg.interception(True)
                assert isinstance(n, cg.Node)
                for act in (lambda n: n + 1, np.exp, lambda n: n[...], gradient, lambda n: n.T):
                    with pytest.raises(TypeError, match="its history is lost"):
                        act(n)


def test_lost_history_node_converts_to_plain_array() -> None:
    assert type(np.asarray(lost("operational"))) is np.ndarray
    assert lost("operational").shape == (2, 2)
    assert check_gradient(lambda x: x * 2, [np.asarray(lost("variable"))])
    assert unbroadcast_adjoint(cg.variable(1.0), np.ones(3)) == 3.0


def test_lost_history_error_of_ndarray_method_gives_replacement() -> None:
    plain, x = np.ones((4, 3)), cg.variable(np.ones(3))
    with pytest.raises(TypeError, match=r"its history is lost.* for X\.dot\(x\) write X @ x or np\.dot\(X, x\)"):
        np.sum(plain.dot(x))
    assert np.array_equal(gradient(plain @ x)[x], gradient(np.dot(plain, x))[x])
