"""The prose checker finds phrases to rewrite, and accepts code and plain sentences."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[1] / "tools" / "prose.py"


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = spec_from_file_location("prose", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def phrases(prose: ModuleType, path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [hit.phrase for hit in prose.hits_in(path)[0]]


def test_prose_check_of_python_covers_texts_only(prose: ModuleType, tmp_path: Path) -> None:
    source = '''def f(told):
    """What the function is told of its caller.

    >>> what_is = "this is told"
    """
    return told  # nobody reads it
'''
    assert sorted(phrases(prose, tmp_path / "a.py", source)) == ["What", "is told", "nobody"]


def test_prose_check_of_markdown_skips_code(prose: ModuleType, tmp_path: Path) -> None:
    source = "The result is another than before.\n```\nis another than\n```\nValues differ if the input differs.\n"
    assert phrases(prose, tmp_path / "a.md", source) == ["is another than"]


def test_prose_check_exit_status_depends_on_rate(prose: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("One phrase in a row.\n" + "A plain line.\n" * 199)
    assert prose.main([str(tmp_path)]) == 0
    assert "1 hits in 200 lines of text: 5.0 per 1,000" in capsys.readouterr().out
    (tmp_path / "b.md").write_text("Another one in a row.\n")
    assert prose.main([str(tmp_path)]) == 1
