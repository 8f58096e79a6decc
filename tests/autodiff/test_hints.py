"""Spellings of other packages work, or raise with the spelling to use; they are never silently ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.optimizers import SGD, Adam, RMSProp, StepController
from tests.support.for_each import for_each

X = cg.variable(3.0, "x")
V = cg.variable([1.0, 2.0], "v")
LOSS = X * X
GRADIENTS = ad.gradient(LOSS)
REBOUND = X - 0.1


def set_on(node: Any, name: str) -> None:
    setattr(node, name, True)


RAISING: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "backward": (lambda: LOSS.backward(), AttributeError, r"autodiff\.gradient\(loss\)"),
    "grad of a node": (lambda: X.grad, AttributeError, r"gradients\[x\]"),
    "requires_grad": (lambda: V.requires_grad, AttributeError, r"cg\.variable"),
    "requires_grad, set": (lambda: set_on(X, "requires_grad"), AttributeError, r"cg\.variable"),
    "grad, set": (lambda: set_on(X, "grad"), AttributeError, "not stored in variables"),
    "requires_grad=": (lambda: cg.variable(1.0, requires_grad=True), TypeError, r"variable takes no requires_grad="),
    "constant=": (lambda: cg.variable(1.0, constant=False), TypeError, r"cg\.constant"),
    "detach": (lambda: X.detach(), AttributeError, "stop_gradient"),
    "requires_grad_": (lambda: V.requires_grad_(), AttributeError, r"cg\.variable"),
    "zero_grad of a node": (lambda: V.zero_grad(), AttributeError, "nothing to clear"),
    "register_hook": (lambda: V.register_hook(print), AttributeError, r"autodiff\.gradient\(loss, \[x\]\)"),
    "creator": (lambda: V.creator, AttributeError, r"x\.operands"),
    "cuda": (lambda: V.cuda(), AttributeError, "main memory"),
    "pow": (lambda: V.pow(2), AttributeError, r"x \*\* y"),
    "float": (lambda: V.float(), AttributeError, r"astype\(np\.float32\)"),
    "numel": (lambda: V.numel(), AttributeError, r"x\.size"),
    "cg.make_jaxpr": (lambda: cg.make_jaxpr, AttributeError, r"cg\.program"),
    "cg.visualize": (lambda: cg.visualize, AttributeError, r"cg\.visualize_at\(node\)"),
    "retain_graph=": (lambda: ad.gradient(LOSS, retain_graph=True), TypeError, "lives as long as its nodes"),
    "cg.compile": (lambda: cg.compile, AttributeError, r"cg\.jit"),
    "cg.lax": (lambda: cg.lax, AttributeError, "for, while and if"),
    "ad.scan": (lambda: ad.scan, AttributeError, "for, while and if"),
    "ad.jet": (lambda: ad.jet, AttributeError, r"autodiff\.taylor"),
    "ad.gradcheck": (lambda: ad.gradcheck, AttributeError, "check_grads"),
    "ad.tree_map": (lambda: ad.tree_map, AttributeError, "arguments nest"),
    "numpy()": (lambda: X.numpy(), AttributeError, r"x\.value"),
    "at": (lambda: V.at[0].set(1.0), AttributeError, r"x\[i\] = value"),
    "tensor": (lambda: cg.tensor, AttributeError, r"cg\.variable"),
    "no_grad": (lambda: cg.no_grad(), AttributeError, r"cg\.no_graph"),
    "cg.grad": (lambda: cg.grad, AttributeError, r"autodiff\.grad"),
    "an unknown name": (lambda: cg.nothing, AttributeError, r"compgraph has no 'nothing'$"),
    "ad.jit": (lambda: ad.jit, AttributeError, r"compgraph\.jit"),
    "make_vjp": (lambda: ad.make_vjp, AttributeError, r"autodiff\.vjp"),
    "another unknown name": (lambda: ad.nothing, AttributeError, r"autodiff has no 'nothing'$"),
    "a gradient by cg": (lambda: cg.gradient(LOSS), TypeError, r"autodiff\.gradient"),
    "a gradient by cg with a variable": (lambda: cg.gradient(LOSS, X), TypeError, r"autodiff\.gradient"),
    "a gradient by cg with wrt": (lambda: cg.gradient(V, wrt=X), TypeError, r"autodiff\.gradient"),
    "the gradient of a function": (lambda: ad.gradient(np.sin), TypeError, r"derivative of a function, call autodiff\.grad"),
    "grad of a loss": (lambda: ad.grad(LOSS), TypeError, r"autodiff\.gradient\(node, wrt\)"),
    "hessian of a loss": (lambda: ad.hessian(LOSS), TypeError, r"autodiff\.gradient\(node, wrt\)"),
    "argnum and argnums": (lambda: ad.grad(np.multiply, 0, argnum=1), TypeError, "same parameter"),
    "lr": (lambda: Adam([V], lr=0.1), TypeError, r"learning_rate="),
    "step_size": (lambda: SGD([V], step_size=0.1), TypeError, r"learning_rate="),
    "beta1": (lambda: Adam([V], beta1=0.9), TypeError, r"betas="),
    "alpha": (lambda: RMSProp([V], alpha=0.9), TypeError, "decay"),
    "zero_grad": (lambda: Adam([V]).zero_grad(), AttributeError, "arguments of step"),
    "in_dims": (lambda: ad.vmap(np.sin, in_dims=0), TypeError, "in_axes="),
    "static_argnums": (lambda: cg.jit(np.sin, static_argnums=0), TypeError, "static_argnames="),
    "step without gradients": (lambda: Adam([V]).step(), TypeError, r"optimizer\.step\(autodiff\.gradient\(loss\)\)"),
    "a variable that was rebound": (lambda: GRADIENTS[REBOUND], KeyError, r"sub .*test_hints.*: write `w -= step`"),
    "a gradient by an unused variable": (lambda: GRADIENTS[V], KeyError, r"variable 'v'.*unused='zero'"),
    "a gradient by a constant": (lambda: GRADIENTS[cg.constant(1.0, "c")], KeyError, r"constant 'c'.*Make it a cg\.variable"),
    "a gradient by position": (
        lambda: GRADIENTS[0],
        KeyError,
        "by a variable or its name, not by an object of type int; known: 'x'",
    ),
    "a gradient by a value": (
        lambda: GRADIENTS[V.value],
        KeyError,
        "by a variable or its name, not by an object of type ndarray",
    ),
    "a step along all gradients": (lambda: X - 0.1 * GRADIENTS, TypeError, r"w -= 0\.1 \* gradients\[w\]"),
    "gradients less a number": (lambda: np.ones(2) - GRADIENTS, TypeError, r"mapping, without arithmetic"),
    "wrt a value": (lambda: ad.gradient(LOSS, X.value), TypeError, "plain ndarray. Pass the variable x itself"),
    "wrt a plain array": (lambda: ad.gradient(LOSS, np.ones(2)), TypeError, "plain ndarray. Pass the variable x itself"),
    "wrt a number": (lambda: ad.gradient(LOSS, 3.0), TypeError, "plain float. Pass the variable x itself"),
    "wrt a new node": (lambda: ad.gradient(LOSS, V[0]), ValueError, r"result of getitem.*Each call makes a new node: pass"),
    "a gradient of a gradient": (lambda: ad.gradient(GRADIENTS["x"]), TypeError, "a derivative without create_graph=True"),
    "a gradient of losses": (
        lambda: ad.gradient([LOSS]),
        TypeError,
        "one node, not a list. Add the nodes, or call gradient for each",
    ),
    "grad of a name": (lambda: ad.grad("x"), TypeError, r"grad takes a function, not 'x' \(a str\)\. Pass the function without"),
    "grad of a number": (lambda: ad.grad(3.0), TypeError, "Pass the function without calling it"),
    "vmap of a number": (lambda: ad.vmap(3.0), TypeError, "vmap takes a function, not 3.0"),
    "vjp of a node": (lambda: ad.vjp(LOSS, 1.0), TypeError, "vjp takes a function, not the result of mul"),
    "jvp of a node": (lambda: ad.jvp(LOSS, (1.0,), (1.0,)), TypeError, "jvp takes a function, not the result of mul"),
    "minimize, swapped": (lambda: ad.minimize(np.ones(2), np.sum), TypeError, "minimize takes a function, not array"),
    "grad(f, x)": (lambda: ad.grad(np.sum, np.ones(2)), TypeError, r"argnums must be.*write grad\(f\)\(x\)"),
    "grad(f, x) of a variable": (lambda: ad.grad(np.sum, X), TypeError, r"argnums must be.*write grad\(f\)\(x\)"),
    "jacobian(f, (x, y))": (lambda: ad.jacobian(np.dot, (V, V)), TypeError, r"write jacobian\(f\)\(x\)"),
    "hessian(f, argnums=x)": (lambda: ad.hessian(np.sum, argnums=[1.0, 2.0]), TypeError, r"write hessian\(f\)\(x\)"),
    "hvp(f, x, v)": (lambda: ad.hvp(np.sum, V, V), TypeError, r"write hvp\(f\)\(x, v\)"),
    "vmap(f, x)": (lambda: ad.vmap(np.sin, np.ones(2)), TypeError, r"in_axes must be.*write vmap\(f\)\(x\)"),
    "grad(f)()": (lambda: ad.grad(np.sum)(), ValueError, r"0 positional arguments\. Write grad\(f\)\(x\)"),
    "vjp(f)(x)": (lambda: ad.vjp(np.sin)(1.0), TypeError, r"takes the arguments of the function too\. Write vjp\(f, x\)"),
    "linearize(f)(x)": (lambda: ad.linearize(np.sin)(1.0), TypeError, r"Write linearize\(f, x\)"),
    "vmap of shared arguments": (lambda: ad.vmap(np.dot)(np.ones((3, 2)), V), ValueError, r"in_axes=\(0, None\) shares"),
    "a list as an array": (lambda: ad.grad(lambda x: sum(x**2))([1.0, 2.0]), TypeError, r"grad: A list of numbers.*np\.array"),
    "step of a loss": (lambda: Adam([V]).step(LOSS), TypeError, r"not the result of mul.*step\(autodiff\.gradient\(loss\)\)"),
    "step of a closure": (lambda: SGD([V], 0.1).step(lambda: LOSS), TypeError, r"not a function.*autodiff\.gradient\(loss\)"),
    "step of a number": (lambda: Adam([V]).step(3.0), ValueError, r"Pass autodiff\.gradient\(loss\)"),
    "step of a loss, one parameter": (lambda: Adam(V).step(LOSS), ValueError, r"its gradient \(\)\. Pass autodiff\.gradient"),
    "step of a pair": (lambda: Adam([V]).step((1.0, [V.value])), ValueError, r"value_and_grad returns.*pass the second"),
    "step without a loss": (lambda: StepController([V]).step(GRADIENTS), TypeError, r"step\(autodiff\.gradient\(loss\), loss\)"),
    "step, swapped": (lambda: StepController([V]).step(LOSS, GRADIENTS), TypeError, r"step\(autodiff\.gradient\(loss\), loss\)"),
    "a generator of parameters": (lambda: Adam(v for v in [V]), TypeError, "a generator.*Pass a list of parameters"),
    "rate as text": (lambda: Adam([V], learning_rate="0.1"), TypeError, "learning_rate must be a number, not '0.1'"),
    "rate as text, SGD": (lambda: SGD([V], learning_rate="0.1"), TypeError, "learning_rate must be a number, not '0.1'"),
    "no rate": (lambda: StepController([V], learning_rate=None), TypeError, "learning_rate must be a number, not None"),
    "rate in words": (lambda: Adam([V], learning_rate="fast"), TypeError, "learning_rate must be a number, not 'fast'"),
    "one beta": (lambda: Adam([V], betas=0.9), TypeError, r"betas must be a pair of numbers, such as \(0\.9, 0\.999\)"),
    "minimize of an optimizer": (lambda: Adam([V]).minimize(LOSS), AttributeError, r"autodiff\.minimize"),
    "update": (lambda: Adam([V]).update(GRADIENTS), AttributeError, r"optimizer\.step\(gradients\)"),
    "to": (lambda: V.to("cuda"), AttributeError, r"x\.astype\(dtype\)"),
    "clamp": (lambda: V.clamp(0), AttributeError, r"np\.clip"),
    "cpu": (lambda: V.cpu(), AttributeError, "main memory"),
    "relu": (lambda: V.relu(), AttributeError, r"cg\.relu\(x\)"),
    "assign_sub": (lambda: V.assign_sub(1.0), AttributeError, "x -= value"),
    "zero_": (lambda: V.zero_(), AttributeError, r"x\[\.\.\.\] = value"),
    "view of a shape": (lambda: V.view(-1), TypeError, r"x\.reshape\(shape\)"),
    "value, set": (lambda: setattr(V, "value", 1.0), AttributeError, r"Write x\[\.\.\.\] = array"),
    "mean(dim=)": (lambda: V.mean(dim=0), TypeError, "mean takes no dim=: NumPy calls it axis="),
    "cg.sum(keepdim=)": (lambda: cg.sum(V, keepdim=True), TypeError, "NumPy calls it keepdims="),
    "cg.softmax(dim=)": (lambda: cg.softmax(V, dim=0), TypeError, "softmax takes no dim=: NumPy calls it axis="),
    "an unknown option": (lambda: cg.softmax(V, ax=0), TypeError, r"softmax\(\) got an unexpected keyword argument 'ax'"),
    "a name as a value": (lambda: cg.variable("x", 3.0), TypeError, "The value comes before the name"),
    "a node into a variable": (lambda: V.__setitem__(0, X), TypeError, r"np\.copy\(variable\)"),
    "range": (lambda: range(X), TypeError, r"variable 'x'.*int\(x\) converts"),
    "range in grad": (lambda: ad.grad(lambda x: sum(x for _ in range(x)))(3.0), TypeError, r"int\(x\) converts"),
    "no suffix": (lambda: cg.visualize_at(LOSS, "g"), ValueError, r"Write a path such as 'g\.svg'"),
    "visualize_at, swapped": (
        lambda: cg.visualize_at("g.svg", LOSS),
        TypeError,
        r"the node comes first, visualize_at\(node, path\)",
    ),
    "cg.scan": (lambda: cg.scan, AttributeError, "for, while and if"),
    "ad.random": (lambda: ad.random, AttributeError, r"np\.random\.default_rng"),
    "ad.sin": (lambda: ad.sin, AttributeError, r"np\.sin is recorded"),
    "cg.GradientTape": (lambda: cg.GradientTape, AttributeError, r"autodiff\.gradient\(loss\)"),
    "ad.nn": (lambda: ad.nn, AttributeError, "a network is a function of its parameters"),
    "cg.SGD": (lambda: cg.SGD, AttributeError, "from autodiff.optimizers import SGD"),
    "root, swapped": (lambda: ad.root(1.0, np.sin), TypeError, "root takes a function, not 1.0"),
    "checkpoint of a result": (lambda: ad.checkpoint(2.0), TypeError, "checkpoint takes a function, not 2.0"),
    "grad_outputs=": (lambda: ad.gradient(V * 2, grad_outputs=V), TypeError, "gradient takes no grad_outputs=: use adjoint="),
    "allow_unused=": (lambda: ad.gradient(LOSS, [V], allow_unused=True), TypeError, "use unused='zero'"),
    "wrt=": (lambda: ad.grad(np.sum, wrt=0), TypeError, "grad takes no wrt=: use argnums="),
    "holomorphic=": (lambda: ad.grad(np.sum, holomorphic=True), TypeError, r"autodiff\.jacobian"),
    "device= of jit": (lambda: cg.jit(np.sin, device="gpu"), TypeError, "jit takes no device=: backend="),
    "device=": (lambda: cg.variable(1.0, device="cuda"), TypeError, "main memory"),
    "vmap of a list": (lambda: ad.vmap(np.sin)([1.0, 2.0]), ValueError, r"use np\.array"),
    "no vector": (lambda: ad.hessian_vector_product(np.sin)(1.0), TypeError, "the last argument"),
}


@for_each("name", RAISING)
def test_hints_name_spelling_to_use(name: str) -> None:
    wrong, error, message = RAISING[name]
    with pytest.raises(error, match=message):
        wrong()


IMPORTS = {
    "import autodiff.numpy as np": "cannot import 'numpy' from 'autodiff': write `import numpy as np`",
    "import autodiff.numpy.random": "write `import numpy as np`",
    "from autodiff import numpy": "write `import numpy as np`",
    "from autodiff import lax": "for, while and if are recorded",
    "import compgraph.numpy": "cannot import 'numpy' from 'compgraph': write `import numpy as np`",
    "from compgraph import no_grad": r"with cg\.no_graph\(\)",
    "import autodiff.optim": "from autodiff.optimizers import Adam",
    "import autodiff.nothing": "No module named 'autodiff.nothing'",
    "from compgraph import nothing": "cannot import name 'nothing'",
}


@for_each("statement", IMPORTS)
def test_hints_imports_of_foreign_modules_raise_with_advice(statement: str) -> None:
    error = ImportError if "name" in IMPORTS[statement] else ModuleNotFoundError
    with pytest.raises(error, match=IMPORTS[statement]):
        exec(statement)


W, U = cg.variable(np.ones((3, 4)), "W"), cg.variable(np.ones(3), "U")
WRONG_SHAPES: dict[str, tuple[Callable[[], Any], str]] = {
    "matmul": (lambda: W @ U, r"in matmul of the variable 'W' \(shape \(3, 4\), float64\), the variable 'U' \(shape \(3,\)"),
    "matmul with an array": (lambda: W @ np.ones(3), r"in matmul of the variable 'W' .*, an array \(shape \(3,\), float64\)"),
    "an array at the left": (lambda: np.ones(3) + W, r"in add of an array .*, the variable 'W'"),
    "a ufunc": (lambda: np.hypot(W, U), "in hypot of the variable 'W'"),
    "a function": (lambda: np.dot(W, U), "in dot of the variable 'W'"),
    "a method": (lambda: W.reshape(5, 2), "in reshape of the variable 'W'"),
    "a result": (lambda: np.tanh(W) * U, r"in mul of the result of tanh \(shape \(3, 4\)"),
    "in grad": (lambda: ad.grad(lambda w: np.sum(w @ np.ones(3)))(np.ones((3, 4))), r"in matmul of the value \(shape \(3, 4\)"),
}


@for_each("name", WRONG_SHAPES)
def test_numpy_errors_name_operands(name: str) -> None:
    wrong, note = WRONG_SHAPES[name]
    with pytest.raises(ValueError, match=note) as raised:
        wrong()
    assert len(raised.value.__notes__) == 1


def test_gradient_key_may_be_any_name() -> None:
    x = cg.variable(3.0, 0)  # type: ignore[arg-type]
    assert ad.gradient(x * x)[0] == 6.0


def test_hints_missing_attributes_are_missing() -> None:
    for name in ("grad", "backward", "numpy", "requires_grad"):
        assert not hasattr(X, name)
        assert name not in dir(X)
    assert getattr(X, "grad", None) is None
    assert "sum" in dir(X)


@for_each(
    "operator",
    ["grad", "value_and_grad", "jacobian", "jacrev", "jacfwd", "hessian", "hessian_diagonal", "elementwise_grad", "hvp"],
)
def test_argnum_is_accepted(operator: str) -> None:
    apply = getattr(ad, operator)

    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y**3

    args = (0.5, 1.0, 2.0) if operator == "hvp" else (0.5, 2.0)
    if operator == "hvp":
        assert apply(f, argnum=0)(*args) == apply(f)(*args)
        return
    for argnum in (1, (0, 1)):
        assert apply(f, argnum=argnum)(*args) == apply(f, argnum)(*args)


def test_hessian_vector_product_follows_autograd() -> None:
    def f(x: Any, a: Any) -> Any:
        return np.sum(x**3 * a)

    x, a, v = np.array([1.0, 2.0]), np.array([2.0, 3.0]), np.array([1.0, -1.0])
    np.testing.assert_allclose(ad.hessian_vector_product(f)(x, a, v), 6 * x * a * v)


def test_gradient_is_found_under_its_names() -> None:
    assert ad.gradient(LOSS)["x"] == 6.0
    assert ad.gradient is ad.reverse.gradient
    np.testing.assert_array_equal(cg.gradient(V * 2), np.gradient(V.value * 2))
    assert cg.gradient(np.array([1.0, 4.0, 9.0]), name="slope").name == "slope"
    assert ad.minimize is ad.optimizers.minimize
