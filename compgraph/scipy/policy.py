"""Policies for calls of a SciPy module's functions with nodes: the class `Policy`, and the registration of handlers.

The policy of a family of functions is registered whenever its module of SciPy is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import ops
from ..context import reset_after_fork
from ..graph import flatten_sequences
from ..interception import ImportHook, adapt_imported, is_loading, patch_code, python_implementation
from ..ops import Kind
from ..protocols import HANDLERS, bind_arguments, unsupported_message, with_user_line
from ..values import INERT, BatchedValueError, Value, variable_hooks
from .own_code import run_own_code


@dataclass(frozen=True)
class Policy:
    """The treatment of nodes among the arguments of each public function of a SciPy module.

    Names are relative to the module: a class, ``"CubicSpline"``, for the creation of instances, or a method,
    ``"CubicSpline.__call__"``. Functions in no attribute raise for nodes.

    Attributes
    ----------
    module : str
        The module, ``"scipy.linalg"``.
    smooth : mapping
        Functions with a rule, and the names of the parameters that may be nodes, separated by spaces.
    piecewise : mapping
        As `smooth`, for functions that are piecewise constant; they need no rule.
    smooth_ufuncs, piecewise_ufuncs : frozenset of str
        Ufuncs with a rule, and piecewise constant ones. They dispatch to nodes by NumPy's protocol.
    replacements : mapping
        Functions, each with an equivalent function of recorded steps.
    own_code : frozenset of str
        Functions and methods whose own Python code runs on tracers; see the module `own_code`.
    fixed_options : mapping
        For functions of `own_code`, parameters that must keep their default in calls with nodes, each with advice.
    always_replaced : frozenset of str
        Names in `own_code` and `replacements` whose arguments are user functions or objects. These may contain nodes, so the
        handler also runs for calls without nodes.
    plain : frozenset of str
        Names that are not patched, because they never receive nodes (errors, modules, functions of names and counts).
    lowered : mapping
        Ufuncs with a lowering to machine code, and its name.
    formulas : mapping
        Ufuncs that SymPy has, and their formulas; see `ops.OpSpec`.
    operation_kinds : mapping
        Functions with a rule whose `ops.OpSpec.kind` is not "own", and that kind.
    unsupported : mapping
        Names that raise a TypeError, each with an alternative that completes "use ...".
    """

    module: str
    smooth: Mapping[str, str] = field(default_factory=dict)
    piecewise: Mapping[str, str] = field(default_factory=dict)
    smooth_ufuncs: frozenset[str] = frozenset()
    piecewise_ufuncs: frozenset[str] = frozenset()
    replacements: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    own_code: frozenset[str] = frozenset()
    fixed_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    always_replaced: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    lowered: Mapping[str, str] = field(default_factory=dict)
    formulas: Mapping[str, str] = field(default_factory=dict)
    operation_kinds: Mapping[str, Kind] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Pairs of each name and its kind, which is the name of the attribute that contains it."""
        for kind in _KINDS:
            for name in getattr(self, kind):
                yield name, kind


_KINDS = ("smooth", "piecewise", "smooth_ufuncs", "piecewise_ufuncs", "own_code", "replacements", "plain", "unsupported")


Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def register_policy(policy: Policy, only: str | None = None) -> None:
    """Register handlers for the functions of a policy; all other public functions of its module raise for nodes.

    With `only`, only the function of that name gets a new handler.
    """
    module = importlib.import_module(policy.module)
    for name in _public(module) if only is None else ():
        if not any(name == policy_name.partition(".")[0] for policy_name, _ in policy.kinds()):
            _patch_to_raise(policy, name, getattr(module, name))
    for name, kind in policy.kinds():
        scipy_object = _resolve(getattr(module, "_ufuncs", module) if name.startswith("_") else module, name)
        if kind == "plain" or scipy_object is None or only not in (None, name):
            continue
        if kind == "unsupported":
            _patch_to_raise(policy, name, scipy_object)
            continue
        if kind in ("smooth_ufuncs", "piecewise_ufuncs"):
            ufunc_name = ufunc_opname(policy.module, scipy_object.__name__)
            if kind == "piecewise_ufuncs":
                ops.register_piecewise(scipy_object, ufunc_name)
            else:
                ops.register_operation(
                    scipy_object, ufunc_name, lowering=policy.lowered.get(name, ""), formula=policy.formulas.get(name, "")
                )
            continue
        function = _called_function(scipy_object)
        if kind in ("smooth", "piecewise"):
            names = getattr(policy, kind)[name]
            data = {"kind": policy.operation_kinds[name]} if name in policy.operation_kinds else {}
            _register_recorded(function, names, opname(policy.module, name), kind == "piecewise", data)
        elif kind == "replacements":
            HANDLERS[function] = _replacement_handler(policy.replacements[name])
        elif kind == "own_code" and python_implementation(function) is not None:  # scipy.special.sinc is a function of NumPy
            HANDLERS[function] = _own_code_handler(policy, name, function)
        _patch_function(policy, name, function, kind, only is not None)


def opname(module: str, name: str) -> str:
    """The opname of a function of SciPy: ``scipy_linalg_solve``."""
    return f"{module}_{name}".replace(".", "_")


def ufunc_opname(module: str, name: str) -> str:
    """The opname of a ufunc of SciPy: ``special_erf``."""
    return f"{module.removeprefix('scipy.')}_{name.strip('_')}"


def _public(module: object) -> list[str]:
    return [name for name in getattr(module, "__all__", dir(module)) if not name.startswith("_")]


def public_names(module: object) -> set[str]:
    """The public names of a module of SciPy, without its submodules."""
    return {name for name in _public(module) if not inspect.ismodule(getattr(module, name))}


def _resolve(module: object, name: str) -> Any:
    """Return the object of a dotted name; None if this version of SciPy does not have it."""
    return functools.reduce(lambda holder, part: getattr(holder, part, None), name.split("."), module)


def _called_function(scipy_object: object) -> Any:
    """Return the function that a call runs: ``__init__`` of a class, or the function of a bound method."""
    if inspect.ismethod(scipy_object):
        return scipy_object.__func__
    return inspect.getattr_static(scipy_object, "__init__") if inspect.isclass(scipy_object) else scipy_object


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _register_recorded(function: Callable[..., Any], names: str, opname: str, is_piecewise: bool, data: dict[str, Any]) -> None:
    (ops.PIECEWISE_FUNCTIONS if is_piecewise else ops.SMOOTH_FUNCTIONS)[function] = names
    (ops.register_piecewise if is_piecewise else ops.register_operation)(function, opname, **data)
    operands = tuple(names.split())

    def handler(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = _signature(function).bind(*args, **kwargs).arguments
        # Nodes are never overwritten, so `overwrite_a` and similar options have no effect.
        options = {key: value for key, value in arguments.items() if not key.startswith("overwrite_")}
        return bind_arguments(function, operands, (), options)

    HANDLERS[function] = handler


def _replacement_handler(replacement: Callable[..., Any]) -> Handler:
    handler: Handler = with_user_line(lambda function, args, kwargs: replacement(*args, **kwargs))
    return handler


def _own_code_handler(policy: Policy, name: str, function: Callable[..., Any]) -> Handler:
    handler = _replacement_handler(functools.partial(run_own_code, policy.module, name))
    options = policy.fixed_options.get(name)
    return handler if options is None else functools.partial(_with_fixed_options, f"{policy.module}.{name}", options, handler)


def _with_fixed_options(
    name: str,
    options: Mapping[str, str],
    handler: Handler,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a handler; raise if an option that must keep its default has another value."""
    signature = _signature(function)
    arguments = signature.bind(*args, **kwargs).arguments
    for option, advice in options.items():
        default = signature.parameters[option].default
        if option in arguments and arguments[option] is not default and arguments[option] != default:
            raise TypeError(f"{name}: {option}={arguments[option]!r} is not supported on nodes: {advice}")
    return handler(function, args, kwargs)


def _patch_function(policy: Policy, name: str, function: object, kind: str, replace: bool = False) -> None:
    implementation = python_implementation(function)
    if implementation is None:
        return  # implemented in C, which raises for tracers
    ops.PUBLIC_NAMES[function] = f"{policy.module}.{name}"

    def handle(
        implementation: Callable[..., Any], original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return HANDLERS[function](function, args, kwargs)

    handler: Any = handle
    # Methods of other modules may modify their object, so they are not called for each batch element.
    if implementation.__name__ != "__init__" and ("." not in name or policy.module == "scipy.stats"):
        handler = _sequential_if_batched(handler, f"{policy.module}.{name}")
    patch_code(implementation, handler, always=name in policy.always_replaced, replace=replace)


def _sequential_if_batched(handler: Callable[..., Any], name: str) -> Any:
    """Wrap a handler: if its steps depend on numbers that differ between elements of a batch, call it for each element."""

    def handle_batches(
        function: Callable[..., Any], original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            return handler(function, original, args, kwargs)
        except (BatchedValueError, IndexError) as error:  # a plain array raises an IndexError for a batched index
            leaves = flatten_sequences((args, tuple(kwargs.values())))
            batched: Any = next((x for x in leaves if isinstance(x, Value) and x.trace_kind == "batch"), None)
            if batched is None or (isinstance(error, IndexError) and "arrays used as indices" not in str(error)):
                raise
            return batched.map_elements(name, function, args, kwargs)

    return handle_batches


def _patch_to_raise(policy: Policy, name: str, scipy_object: object) -> None:
    function = _called_function(scipy_object)
    implementation = python_implementation(function)
    if implementation is None or function in HANDLERS or function in ops.OPNAMES:
        return
    qualified_name = ops.PUBLIC_NAMES[function] = f"{policy.module}.{name}"
    advice = policy.unsupported.get(name, "functions that keep the graph, or cg.primitive with a rule of your own")

    def dispatch(
        function: Callable[..., Any], original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        leaves = flatten_sequences((args, tuple(kwargs.values())))
        nodes = [leaf for leaf in leaves if isinstance(leaf, Value)]
        if not any(getattr(leaf, "_holds_node", False) for leaf in leaves) and all(type(node) in INERT for node in nodes):
            return original(*args, **kwargs)  # inert nodes are counts and indices; tracers raise when they are converted
        raise TypeError(unsupported_message(qualified_name, advice))

    patch_code(implementation, dispatch)


# By module of SciPy: the module of this package that has its policy.
FAMILIES = {
    "scipy.fft": "fft",
    "scipy.integrate": "integrate",
    "scipy.interpolate": "interpolate",
    "scipy.linalg": "linalg",
    "scipy.ndimage": "ndimage",
    "scipy.optimize": "optimize",
    "scipy.signal": "signal",
    "scipy.signal.windows": "signal.windows",
    "scipy.sparse": "sparse",
    "scipy.sparse.linalg": "sparse.linalg",
    "scipy.spatial": "spatial",
    "scipy.spatial.distance": "spatial.distance",
    "scipy.spatial.transform": "spatial.transform",
    "scipy.special": "special",
    "scipy.stats": "stats",
}

_registered_modules: set[str] = set()
_replacements: dict[str, dict[str, tuple[str, bool]]] = {}  # by module and name: `target` and `always` of `register_replacement`
_callbacks: list[Callable[[str], None]] = []
_lock = reset_after_fork(threading.RLock())
_pending_modules: list[str] = []
_is_registering = False
_module_count = 0


def register_imported() -> None:
    """Register the families whose SciPy modules were imported since the last call; others are registered on import.

    Other libraries that are adapted to nodes are treated likewise; see `interception.activation`.
    """
    global _module_count
    if len(sys.modules) == _module_count:
        return
    adapt_imported()
    with _lock:
        if not _module_count:
            # If a policy is imported first, it imports SciPy's module, which is registered when the policy is complete.
            policies = {f"{__package__}.{family}" for family in FAMILIES.values()}
            sys.meta_path.insert(0, ImportHook({*FAMILIES, *policies}, _on_import))
        _module_count = len(sys.modules)
        _pending_modules.extend([module for module in FAMILIES if module in sys.modules and not is_loading(sys.modules[module])])
        _register_pending()


def _on_import(modules: list[str]) -> None:
    """Register the families of modules that have just been loaded, for example while a function is traced.

    The importing thread holds the import lock of a module, for which a thread that registers families may wait. To avoid a
    deadlock, this does not wait for that thread, which processes the queue.
    """
    _pending_modules.extend([module for module in modules if module in FAMILIES])
    if _lock.acquire(blocking=False):
        try:
            _register_pending()
        finally:
            _lock.release()


def _register_pending() -> None:
    """Register the queued families; importing a policy may queue further ones."""
    global _is_registering
    if _is_registering:
        return
    _is_registering = True
    try:
        while _pending_modules:
            module = _pending_modules.pop(0)
            if module not in _registered_modules:
                _registered_modules.add(module)
                register_policy(policy_of(FAMILIES[module]))
                for callback in _callbacks:
                    callback(module)
    finally:
        _is_registering = False


def on_registration(callback: Callable[[str], None]) -> None:
    """Call `callback` with the SciPy module of each registered family now, and of each later one when it is registered."""
    with _lock:
        _callbacks.append(callback)
        for module in _registered_modules:
            callback(module)


variable_hooks.append(register_imported)


def register_replacement(module: str, name: str, target: str, always: bool = True) -> None:
    """Register a function of another package, such as a differentiable solver, as the replacement of a SciPy function.

    Parameters
    ----------
    module, name : str
        The module of SciPy, and the function, named as in its policy.
    target : str
        The replacement, ``"package.module:function"``; imported when it is first called.
    always : bool
        Whether it runs for calls without nodes as well, because a user's function among the arguments may use nodes.
    """
    with _lock:
        _replacements.setdefault(module, {})[name] = target, always
        if module in _registered_modules:
            register_policy(policy_of(FAMILIES[module]), only=name)


def policy_of(family: str) -> Policy:
    """The policy of a family, including the replacements by `register_replacement`."""
    policy: Policy = importlib.import_module(f"{__package__}.{family}").POLICY
    replacements = _replacements.get(policy.module)
    if not replacements:
        return policy
    return dataclasses.replace(
        policy,
        unsupported={name: advice for name, advice in policy.unsupported.items() if name not in replacements},
        replacements={**policy.replacements, **{name: _lazy_function(target) for name, (target, _) in replacements.items()}},
        always_replaced=policy.always_replaced | {name for name, (_, always) in replacements.items() if always},
    )


def _lazy_function(target: str) -> Any:
    """Return a function that imports ``"package.module:function"`` at its first call, and calls it."""
    module, _, name = target.partition(":")

    @functools.cache
    def resolve() -> Any:
        return getattr(importlib.import_module(module), name)

    return lambda *args, **kwargs: resolve()(*args, **kwargs)
