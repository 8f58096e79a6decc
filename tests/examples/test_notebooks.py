"""Notebooks are committed as they ran: whole, in order, without errors. nbmake checks that they still run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest

from tests.support.failures import Failures

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
PLACES = re.compile(r"File \"|(?<![\w.:/])/(?:home|tmp|usr|opt|root|work|private|Users)/|[A-Z]:\\\\|ipykernel_\d")


def texts(output: Any) -> list[str]:
    """The texts of an output, without bitmaps."""
    return [output.get("text", ""), *(v for kind, v in output.get("data", {}).items() if kind != "image/png")]


def faults(notebook: Any) -> list[str]:
    """Faults that a committed notebook must not have."""
    messages = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        messages.append("not run from top to bottom")
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        messages.append("not of the kernel python3")
    for number, cell in enumerate(notebook.cells):
        if not cell.source.strip():
            messages.append(f"cell {number} is empty")
        if cell.metadata or cell.id != f"cell-{number}":
            messages.append(f"cell {number} has metadata that differ from run to run")
        for output in cell.get("outputs", []):
            if output.output_type == "error" or output.get("name") == "stderr":
                messages.append(f"cell {number} shows an error or a warning")
            if any(map(PLACES.search, texts(output))):
                messages.append(f"cell {number} shows a place on somebody's machine")
    return messages


def test_notebooks_are_numbered_consecutively() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{n:02}" for n in range(1, 11)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_are_those_of_one_run(path: Path) -> None:
    with Failures(path.stem) as failures:
        notebook = nbformat.read(path, as_version=4)
        with failures.case("form"):
            nbformat.validate(notebook)
            assert faults(notebook) == []
        with failures.case("lesson"):
            first, *others = notebook.cells
            assert first.source.startswith(f"# {int(path.name[:2])}. ")
            assert all(len(cell.source.splitlines()) <= 40 for cell in others)
            kinds = {kind for cell in others for output in cell.get("outputs", []) for kind in output.get("data", {})}
            assert kinds & {"image/svg+xml", "image/png"}
            assert sum(cell.cell_type == "markdown" for cell in others) > len(others) / 3
            assert path.stat().st_size < 500_000
        with failures.case("pictures"):
            for cell in notebook.cells:
                for output in cell.get("outputs", []):
                    svg = output.get("data", {}).get("image/svg+xml")
                    if svg is not None:
                        assert ElementTree.fromstring(svg).tag.endswith("svg")


METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
WARNED = "cell 0 shows an error or a warning"
PLACED = "cell 0 shows a place on somebody's machine"


def make_notebook(**changes: Any) -> Any:
    """A notebook of one cell, valid apart from some changes to the cell."""
    cell = nbformat.v4.new_code_cell("1", execution_count=1, id="cell-0") | changes
    return nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell)], metadata=METADATA)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"execution_count": 3}, "not run from top to bottom"),
    ({"execution_count": None}, "not run from top to bottom"),
    ({"source": " "}, "cell 0 is empty"),
    ({"metadata": {"execution": {"iopub.status.busy": "2020"}}}, "cell 0 has metadata that differ from run to run"),
    (
        {"outputs": [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]},
        "cell 0 shows an error or a warning",
    ),
    ({"outputs": [nbformat.v4.new_output("stream", name="stderr", text="W")]}, WARNED),
    ({"outputs": [nbformat.v4.new_output("stream", text="at /home/me/x.py")]}, PLACED),
    ({"outputs": [nbformat.v4.new_output("stream", text='File "x.py"')]}, PLACED),
]


def test_notebook_check_detects_faults() -> None:
    assert faults(make_notebook()) == []
    with Failures("faults of notebooks") as failures:
        for changes, fault in FAULTS:
            with failures.case(fault):
                assert faults(make_notebook(**changes)) == [fault]
