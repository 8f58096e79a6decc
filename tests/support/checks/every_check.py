"""The table of checks: the name of each transform, and its check of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec

from tests.support.arguments import Case
from tests.support.checks import rules
from tests.support.checks.animation import check_animation
from tests.support.checks.batching import check_vmap, check_vmap_of_pullback, check_vmap_of_tangent
from tests.support.checks.executor import check_executor, check_recorded_derivatives
from tests.support.checks.jacobian_node import check_jacobian_node
from tests.support.checks.jacobians import check_together_in_both_precisions, check_together_on_gradients
from tests.support.checks.memory import check_contributions, check_memory_of_gradients
from tests.support.checks.opaque import check_opaque
from tests.support.checks.pickles import check_pickle
from tests.support.checks.program import check_program
from tests.support.checks.sparsity import check_sparsity
from tests.support.checks.written_operands import check_written_operands
from tests.support.failures import Failures

Check = Callable[[Case], None]

RULE_CHECKS: dict[str, Check] = rules.CHECKS
TRANSFORMS: dict[str, Check] = {
    "vmap": check_vmap,
    "vmap of a pullback": check_vmap_of_pullback,
    "vmap of a tangent": check_vmap_of_tangent,
    "Jacobian": check_together_in_both_precisions,
    "Jacobian of a gradient": check_together_on_gradients,
    "Jacobian of variables": check_jacobian_node,
    "sparsity": check_sparsity,
    "executor": check_executor,
    "executor of derivatives": check_recorded_derivatives,
    "program": check_program,
    "opaque nodes": check_opaque,
    "written operands": check_written_operands,
    "new arrays": check_contributions,
    "memory of gradients": check_memory_of_gradients,
    "pickle": check_pickle,
    "animation": check_animation,
}
if find_spec("llvmlite"):
    from tests.support.checks.machine_code import check_machine_code

    TRANSFORMS["machine code"] = check_machine_code
CHECKS = RULE_CHECKS | TRANSFORMS


def run_checks(operation: str, pairs: Iterable[tuple[Case, str]]) -> None:
    """Run checks of cases, and raise one group of all that fail, with the names of case and check."""
    with Failures(operation) as failures:
        for case, name in pairs:
            with failures.case(f"{case}, check of {name}"):
                CHECKS[name](case)
