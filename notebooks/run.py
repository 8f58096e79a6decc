"""Run notebooks, and write them back with new outputs, without parts that differ between runs.

``python notebooks/run.py`` runs all of them, ``python notebooks/run.py notebooks/03-reverse-mode.ipynb`` one.
Tests run them too, without changing the files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
PICTURES = {"image/svg+xml", "image/png", "text/html"}


def run(path: Path) -> None:
    """Run a notebook in its own folder, and replace it."""
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(HERE)}}
    NotebookClient(notebook, resources=place, record_timing=False, coalesce_streams=True).execute()
    tidy(notebook)
    nbformat.write(notebook, path)


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Remove everything except cells and their outputs."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        for output in cell.get("outputs", []):
            if "data" in output:
                output.metadata = {}
                if PICTURES & set(output.data):  # the text in place of a picture is never shown
                    output.data.pop("text/plain", None)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(HERE.glob("*.ipynb")):
        print(f"Running {Path(name).name}")
        run(Path(name))
