"""Options of several examples."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from compgraph.view import can_render
from compgraph.view.visualize import FORMATS


def require_writable(parser: argparse.ArgumentParser, option: str, file: Path) -> None:
    """End the program before it has done any work if an output file cannot be written."""
    try:
        is_new = not file.exists()
        file.open("ab").close()
        if is_new:
            file.unlink()
    except OSError as error:
        parser.error(f"argument {option}: cannot write {str(file)!r}: {error.strerror}")


def require_suffix(parser: argparse.ArgumentParser, option: str, file: Path, suffixes: tuple[str, ...]) -> None:
    """End the program if the suffix of a picture is not a supported format."""
    if file.suffix[1:].lower() not in suffixes:
        parser.error(f"argument {option}: the name must end in one of .{', .'.join(suffixes)}, not {file.name!r}")


def require_picture(parser: argparse.ArgumentParser, option: str, file: Path) -> None:
    """End the program if a picture of a graph cannot be written into a file."""
    require_suffix(parser, option, file, FORMATS)
    if file.suffix.lower() in (".svg", ".png", ".pdf") and not can_render():
        parser.error(f'argument {option}: {file.name!r} needs Graphviz (pip install ".[pictures]"); a name in .html does without')
    require_writable(parser, option, file)


def require_plot(parser: argparse.ArgumentParser, option: str, file: Path, otherwise: str) -> None:
    """End the program if Matplotlib cannot write a plot into a file; `otherwise` suggests an alternative."""
    if find_spec("matplotlib") is None:
        parser.error(f'argument {option}: a plot needs Matplotlib (pip install ".[examples]"); {otherwise}')
    require_suffix(parser, option, file, ("png", "svg", "pdf"))
    require_writable(parser, option, file)
