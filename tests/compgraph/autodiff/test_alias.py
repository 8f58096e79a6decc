"""``compgraph.autodiff`` is the package ``autodiff``, also where another package has that name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compgraph
from compgraph import _stubs

pytestmark = pytest.mark.portable

ROOT = Path(compgraph.__file__).resolve().parent.parent
IDENTITY = """
import compgraph.autodiff as ad
from compgraph.autodiff import grad, optimizers
import compgraph.autodiff.checks
import autodiff
import autodiff.checks
assert ad is compgraph.autodiff is autodiff
assert grad is autodiff.grad
assert optimizers is autodiff.optimizers
assert compgraph.autodiff.checks is autodiff.checks is sys.modules["compgraph.autodiff.checks"]
aliases = [name for name in sys.modules if name.startswith("compgraph.autodiff")]
assert not [name for name in aliases if sys.modules[name] is not sys.modules[name.removeprefix("compgraph.")]]
assert autodiff.__spec__.name == "autodiff" and autodiff.checks.__spec__.name == "autodiff.checks"
assert grad(np.sin)(0.0) == 1
"""


def run(program: str, *path: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program in a new process that finds modules in these folders."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-P", "-W", "error", "-c", f"import sys\nimport numpy as np\n{program}"]
    return subprocess.run(command, capture_output=True, text=True, check=check, env=environment)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with another package called ``autodiff``."""
    package = tmp_path / "foreign" / "autodiff"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('foreign')\n")
    (package / "optimizers.py").write_text("print('foreign')\n")
    return package.parent


def test_alias_modules_are_those_of_autodiff() -> None:
    run(IDENTITY, ROOT)


@pytest.mark.parametrize("foreign_first", [True, False])
def test_alias_ignores_other_packages_on_path(foreign: Path, foreign_first: bool) -> None:
    assert run(IDENTITY, *([foreign, ROOT] if foreign_first else [ROOT, foreign])).stdout == ""


def test_alias_after_import_of_autodiff() -> None:
    run(f"import autodiff.optimizers\n{IDENTITY}", ROOT)


def test_compgraph_does_not_import_the_alias() -> None:
    program = "import compgraph; print([name for name in sys.modules if 'autodiff' in name])"
    assert run(program, ROOT).stdout == "[]\n"


def test_alias_raises_if_another_package_is_imported(foreign: Path) -> None:
    program = (
        "import autodiff\nfor _ in range(2):\n try: import compgraph.autodiff.optimizers\n except ImportError as e: print(e)"
    )
    first, *errors = run(program, foreign, ROOT).stdout.splitlines()
    assert first == "foreign"
    assert len(errors) == 2
    assert {errors[0]} == {*errors}
    where = re.escape(str(foreign / "autodiff" / "__init__.py"))
    assert re.match(
        rf"Another package called 'autodiff' was imported before .* \({where}\)\. Import compgraph\.autodiff first", errors[0]
    )


@pytest.mark.parametrize(("code", "reason"), [("grad = 1", ""), ("print 1", ": SyntaxError: .*"), (None, "")])
def test_alias_raises_if_the_files_are_overwritten(tmp_path: Path, code: str | None, reason: str) -> None:
    """Distributions with a package of the same name write into one folder; the removal of one deletes files of the other."""
    (tmp_path / "compgraph").symlink_to(ROOT / "compgraph", target_is_directory=True)
    (tmp_path / "autodiff").mkdir()
    if code is not None:
        (tmp_path / "autodiff" / "__init__.py").write_text(code)
    process = run("import compgraph.autodiff", tmp_path, ROOT, check=False)
    assert process.returncode == 1
    message = (
        rf"ImportError: The package 'autodiff' beside compgraph \({re.escape(str(tmp_path))}\) cannot be imported, or is not "
    )
    assert re.search(rf"^{message}that of compgraph{reason}\. If .*pip install --force-reinstall", process.stderr, re.MULTILINE)


def test_alias_of_unknown_modules_raises() -> None:
    process = run("import compgraph.autodiff.nowhere", ROOT, check=False)
    assert process.stderr.endswith("ModuleNotFoundError: No module named 'compgraph.autodiff.nowhere'\n")


def test_alias_objects_pickle_under_own_name() -> None:
    program = (
        "import pickle, compgraph.autodiff as ad\nprint(b'compgraph.autodiff' in pickle.dumps([ad.grad, ad.optimizers.Adam]))"
    )
    assert run(program, ROOT).stdout == "False\n"


def test_alias_runs_as_command(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from autograd import grad\nprint(grad(lambda x: x * x)(3.0))")
    program = (
        "sys.argv = ['x', 'script.py']\nimport runpy\nrunpy.run_module('compgraph.autodiff.compat.autograd', run_name='__main__')"
    )
    assert run(f"import os\nos.chdir({str(tmp_path)!r})\n{program}", foreign, ROOT).stdout == "6.0\n"


def test_alias_stub_files_are_current() -> None:
    folder = ROOT / "compgraph" / "autodiff"
    assert {path.name: path.read_text() for path in folder.glob("*.pyi")} == _stubs.alias_stub_texts()


def test_alias_stub_files_cover_reference() -> None:
    pages = (Path(__file__).parents[3] / "docs" / "reference").glob("*.md")
    public = {name for page in pages for name in re.findall(r"currentmodule:: autodiff\.(\w+)", page.read_text())}
    assert public == {*_stubs.ALIASED_MODULES}
