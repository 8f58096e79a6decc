"""Write the pictures of ``docs/examples.md``. Run ``python docs/make_example_pictures.py`` after a change of an example.

Each example runs and saves its picture, which is reduced to the width of a page. Requires Matplotlib (extra ``examples``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).with_name("pictures")
EXAMPLES = ("catenary", "histograms", "boundary_value", "derivative", "polynomial", "local_optimum")
WIDTH = 560  # pixels
COLORS = 64  # a palette of this size is not visible in these pictures, and makes the files small


def write(name: str) -> None:
    """Run an example, and write its picture."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, ROOT / "examples" / f"{name}.py", "--folder", folder], check=True, stdout=subprocess.DEVNULL
        )
        file = f"{name.replace('_', '-')}.png"
        picture = Image.open(Path(folder) / file).convert("RGB")
        height = round(picture.height * WIDTH / picture.width)
        picture.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(COLORS).save(FOLDER / f"example-{file}", optimize=True)


if __name__ == "__main__":
    for name in EXAMPLES:
        write(name)
