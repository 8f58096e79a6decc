"""The programs that `comparing` runs: users' NumPy programs, leaks of the graph, and programs in each package's own API."""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------ programs in NumPy's words

# What users have: plain NumPy and SciPy. Each is a function f of three numbers that returns one.
UNCHANGED = {
    "`np.sum(np.sin(x) * x)`": "def f(x): return np.sum(np.sin(x) * x)",
    "`np.array([x[0], x[1]])`": "def f(x): return np.sum(np.array([x[0], x[1]]) ** 2)",
    "`y = np.zeros_like(x); y[0] = x[0]`": """
        def f(x):
            y = np.zeros_like(x)
            y[0] = x[0]
            y[1:] = x[1:] * x[:-1]
            return np.sum(y**2)
        """,
    "`y = np.zeros(3); y[:] = x`": """
        def f(x):
            y = np.zeros(3)
            y[:] = x
            return np.sum(y**2)
        """,
    "`y = x * 1; y *= x`": """
        def f(x):
            y = x * 1
            y *= x
            return np.sum(y * x)
        """,
    "a view is written into: `v = y[1:]; v *= 2`": """
        def f(x):
            y = x * x
            v = y[1:]
            v *= 2
            return np.sum(y * x)
        """,
    "`np.exp(x, out=y)`": """
        def f(x):
            y = np.empty_like(x)
            np.exp(x, out=y)
            return np.sum(y * x)
        """,
    "`for`, `if x[0] > 0.5`": """
        def f(x):
            total = x[0] * 0
            for k in range(3):
                total = total + (x[k] ** 2 if x[k] > 0.5 else x[k])
            return total
        """,
    "`np.sort`, `np.linalg.solve`, `np.fft.rfft`": """
        def f(x):
            a = np.eye(3) + np.outer(x, x)
            return np.sum(np.linalg.solve(a, np.sort(x))) + np.sum(np.abs(np.fft.rfft(x)))
        """,
    "`scipy.special.erf`": "def f(x): return np.sum(scipy.special.erf(x) * x)",
    "`scipy.linalg.expm`": "def f(x): return np.sum(scipy.linalg.expm(np.outer(x, x)))",
    "`scipy.stats.norm.logpdf`": "def f(x): return np.sum(scipy.stats.norm.logpdf(x, 0.1, 2.0) * x)",
    "`scipy.interpolate.CubicSpline`": """
        def f(x):
            return np.sum(scipy.interpolate.CubicSpline(np.arange(3.0), x)(np.linspace(0.2, 1.8, 5)) ** 2)
        """,
    "`scipy.integrate.solve_ivp`": """
        def f(x):
            return scipy.integrate.solve_ivp(lambda t, y: -x[1] * y, (0.0, 1.0), x[:1], rtol=1e-10, atol=1e-12).y[0, -1]
        """,
    "`scipy.optimize.root`": """
        def f(x):
            return np.sum(scipy.optimize.root(lambda y: y**3 + y - x, np.ones(3), tol=1e-12).x ** 2)
        """,
    "`scipy.sparse` matrix times `x`": """
        def f(x):
            return np.sum((scipy.sparse.diags_array([1.0, 2.0, 3.0]) @ x) ** 2)
        """,
}

# Values that leave the graph, beside a term that keeps it: the derivative of the rest is not that of the program.
LEAVING = {
    "`float(x[0]) * x[1]`": "def f(x): return float(x[0]) * x[1]",
    "`x[0].item() * x[1]`": "def f(x): return x[0].item() * x[1]",
    "`math.sin(x[0]) * x[1]`": "def f(x): return math.sin(x[0]) * x[1]",
    "`np.asarray(x)[0] * x[1]`": "def f(x): return np.asarray(x)[0] * x[1]",
    "`np.array(x.tolist())[0] * x[1]`": "def f(x): return np.array(x.tolist())[0] * x[1]",
    "`plain[0] = x[0]`": """
        def f(x):
            plain = np.zeros(3)
            plain[0] = x[0]
            return np.sum(plain * x[1])
        """,
    "`pandas.Series(x).mean() * x[1]`": "def f(x): return pandas.Series(x).mean() * x[1]",
    "`scipy.special.zeta(x, 1)[0] * x[1]`": "def f(x): return scipy.special.zeta(x + 1, 1)[0] * x[1]",
}

# -------------------------------------------------------------------------------------------- programs in each one's own words

# The rows: for each peer a program whose `answer` is shown; a tuple is shown unchanged, with the missing features.
OWN: dict[str, dict[str, str]] = {
    "forward mode: `jvp` of `np.sort(x) * x`": {
        "compgraph": "answer = agreement(ad.jvp(lambda x: np.sort(x) * x, (X,), (X,))[1], 2 * np.sort(X) * X)",
        "autograd": "answer = agreement(autograd.make_jvp(lambda x: anp.sort(x) * x)(X)(X)[1], 2 * np.sort(X) * X)",
        "jax": "answer = agreement(jax.jvp(lambda x: jnp.sort(x) * x, (X,), (X,))[1], 2 * np.sort(X) * X)",
        "torch": "answer = agreement(torch.func.jvp(lambda x: torch.sort(x)[0] * x, (T,), (T,))[1].numpy(), 2 * np.sort(X) * X)",
    },
    "third derivative of `sin`": {
        "compgraph": "answer = agreement(ad.grad(ad.grad(ad.grad(np.sin)))(0.3), -np.cos(0.3))",
        "autograd": "g = autograd.grad; answer = agreement(g(g(g(anp.sin)))(0.3), -np.cos(0.3))",
        "jax": "g = jax.grad; answer = agreement(g(g(g(jnp.sin)))(0.3), -np.cos(0.3))",
        "torch": "g = torch.func.grad; answer = agreement(g(g(g(torch.sin)))(torch.tensor(0.3)), -np.cos(0.3), 1e-6)",
        "mygrad": """
            x = mg.tensor(0.3)
            mg.sin(x).backward()
            answer = "first order alone" if isinstance(x.grad, np.ndarray) and not isinstance(x.grad, mg.Tensor) else "yes"
            """,
    },
    "`vmap`": {
        "compgraph": "answer = agreement(ad.vmap(lambda x: np.sum(x**2))(np.ones((4, 3))), np.full(4, 3.0))",
        "jax": "answer = agreement(jax.vmap(lambda x: jnp.sum(x**2))(np.ones((4, 3))), np.full(4, 3.0))",
        "torch": "answer = agreement(torch.func.vmap(lambda x: torch.sum(x**2))(torch.ones(4, 3)), np.full(4, 3.0))",
    },
    "`vmap` where a buffer is filled": {
        "compgraph": """
            def f(x):
                y = np.zeros(3)
                y[0], y[1:] = x[0], x[1:] * x[:-1]
                return y
            answer = agreement(ad.vmap(f)(np.ones((4, 3))), np.ones((4, 3)))
            """,
        "jax": """
            def f(x):
                y = np.zeros(3)
                y[0], y[1:] = x[0], x[1:] * x[:-1]
                return y
            answer = agreement(jax.vmap(f)(np.ones((4, 3))), np.ones((4, 3)))
            """,
        "torch": """
            def f(x):
                y = torch.zeros(3)
                y[0], y[1:] = x[0], x[1:] * x[:-1]
                return y
            answer = agreement(torch.func.vmap(f)(torch.ones(4, 3)), np.ones((4, 3)))
            """,
    },
    "compiled: a loop of writes, unchanged": {
        "compgraph": """
            def f(x):
                y = np.zeros(50)
                for i in range(1, 50):
                    y[i] = y[i - 1] * 0.5 + x[i]
                return np.sum(y)
            step = cg.jit(f)
            step.compile(np.ones(50))
            answer = agreement(step(np.ones(50)), f(np.ones(50)))
            """,
        "jax": """
            def f(x):
                y = np.zeros(50)
                for i in range(1, 50):
                    y[i] = y[i - 1] * 0.5 + x[i]
                return jnp.sum(y)
            answer = agreement(jax.jit(f)(np.ones(50)), f(np.ones(50)))
            """,
        "torch": """
            def f(x):
                y = torch.zeros(50)
                for i in range(1, 50):
                    y[i] = y[i - 1] * 0.5 + x[i]
                return torch.sum(y)
            answer = agreement(torch.compile(f, backend="eager")(torch.ones(50)), f(torch.ones(50)))
            """,
    },
    "compiled: `if x > 0`, both ways": {
        "compgraph": """
            step = cg.jit(lambda x: x * 2 if x > 0 else -x)
            step.compile(1.0)
            answer = agreement(np.array([step(1.0), step(-3.0)]), [2.0, 3.0])
            """,
        "jax": """
            step = jax.jit(lambda x: x * 2 if x > 0 else -x)
            answer = agreement(np.array([step(1.0), step(-3.0)]), [2.0, 3.0])
            """,
        "torch": """
            step = torch.compile(lambda x: x * 2 if x > 0 else -x, backend="eager")
            answer = agreement(np.array([step(torch.tensor(1.0)), step(torch.tensor(-3.0))]), [2.0, 3.0])
            """,
    },
    "a sparse Jacobian": {
        "compgraph": "answer = agreement(ad.jacobian(lambda x: x**2, sparse=True)(X).toarray(), np.diag(2 * X))",
    },
    "gradient of `abs(z)**2` at `1 + 2j`": {
        "compgraph": "answer = format_value(ad.grad(lambda z: np.abs(z) ** 2)(1 + 2j))",
        "autograd": "answer = format_value(autograd.grad(lambda z: anp.abs(z) ** 2)(1 + 2j))",
        "jax": "answer = format_value(jax.grad(lambda z: jnp.abs(z) ** 2)(1 + 2j))",
        "torch": "answer = format_value(torch.func.grad(lambda z: torch.abs(z) ** 2)(torch.tensor(1 + 2j)).numpy())",
    },
    "derivative of `where(x > 0, sqrt(x), 0)` at 0": {
        "compgraph": "answer = format_value(ad.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0))(0.0))",
        "autograd": "answer = format_value(autograd.grad(lambda x: anp.where(x > 0, anp.sqrt(x), 0.0))(0.0))",
        "mygrad": """
            x = mg.tensor(0.0)
            mg.where(x > 0, mg.sqrt(x), 0.0).backward()
            answer = format_value(x.grad)
            """,
        "jax": "answer = format_value(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0))",
        "torch": """
            f = lambda x: torch.where(x > 0, torch.sqrt(x), 0.0)
            answer = format_value(torch.func.grad(f)(torch.tensor(0.0)).numpy())
            """,
    },
    "derivative with respect to an unused argument": {
        "compgraph": "x = cg.variable(1.0, 'x'); y = cg.variable(2.0, 'y'); answer = error_of(lambda: ad.gradient(x * x, y))",
        "autograd": "answer = format_value(autograd.grad(lambda x, y: x * x, 1)(1.0, 2.0))",
        "mygrad": """
            x, y = mg.tensor(1.0), mg.tensor(2.0)
            (x * x).backward()
            answer = format_value(y.grad)
            """,
        "jax": "answer = format_value(jax.grad(lambda x, y: x * x, 1)(1.0, 2.0))",
        "torch": """
            x, y = (torch.tensor(v, requires_grad=True) for v in (1.0, 2.0))
            (x * x).backward()
            answer = format_value(y.grad)
            """,
    },
    "gradient at an array of integers": {
        "compgraph": "answer = error_of(lambda: ad.grad(lambda x: np.sum(x * x))(np.arange(3)))",
        "autograd": "answer = error_of(lambda: autograd.grad(lambda x: anp.sum(x * x))(np.arange(3)))",
        "mygrad": "answer = error_of(lambda: mg.tensor(np.arange(3), constant=False))",
        "jax": "answer = error_of(lambda: jax.grad(lambda x: jnp.sum(x * x))(np.arange(3)))",
        "torch": "answer = error_of(lambda: torch.func.grad(lambda x: torch.sum(x * x))(torch.arange(3)))",
    },
    "the graph as a picture": {
        "compgraph": "p = cg.visualize_at(cg.variable(1.0) * 2); answer = 'SVG, PNG, HTML' if 'digraph' in p.source else 'no'",
        "mygrad": "g = importlib.import_module('mygrad.computational_graph'); answer = 'yes' if g.build_graph else 'no'",
        "jax": "answer = 'as text' if str(jax.make_jaxpr(jnp.sin)(1.0)).startswith('{') else 'no'",
    },
    "several machines": {
        "compgraph": "import autodiff.distributed as d; answer = f'`{d.DataParallel.__name__}`, `{d.Split.__name__}`'",
        "jax": "answer = '`jax.distributed`, sharding' if callable(jax.distributed.initialize) else 'no'",
        "torch": "answer = '`torch.distributed`' if torch.distributed.is_available() else 'no'",
    },
}
