"""Every derivative rule, as ``opname_grad(adjoint, node) -> adjoints of the operands``.

Each module holds a family of operations, and what it names ``*_grad`` is public here. Editors and type checkers read the
names in ``__init__.pyi``, which ``python -m compgraph._stubs`` writes.
"""

from importlib import import_module
from pkgutil import walk_packages

_families = [import_module(module.name) for module in walk_packages(__path__, f"{__name__}.") if not module.ispkg]
_rules = {name: rule for family in _families for name, rule in vars(family).items() if name.endswith("_grad")}
globals().update(_rules)
__all__ = sorted(_rules)
