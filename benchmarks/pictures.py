"""Make the two pictures of README from the demo: a figure, and the top of the report page.

    pip install '.[plot]' && python benchmarks/pictures.py

Needs a Chromium on PATH; tests/package/test_documents.py checks the size of the files.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import kgtrec
from kgtrec.demo.run import run_demo

IMAGES = Path(__file__).parents[1] / "kgtrec" / "guides" / "images"
COLOURS = 32
PAGE = "--window-size=1100,850"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def kgtrec_command(*words: str) -> None:
    subprocess.run(["kgtrec", "--quiet", *words], check=True)


def small(picture: Path, name: str) -> None:
    """Save a picture with few colours, which keeps lines and text sharp."""
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(IMAGES / name, optimize=True)
    print(f"{IMAGES / name}: {(IMAGES / name).stat().st_size:,} bytes")


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"no browser on PATH; install one of {', '.join(BROWSERS)}")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        demo, constant = folder / "demo", folder / "constant.ranks.parquet"
        run_demo(demo)
        questions = kgtrec.read_graph(demo / "graph").questions()
        zeros = np.zeros((len(questions), questions.graph.n_entities), np.float32)
        kgtrec.evaluate(zeros, questions).ranks.save(constant)

        ranks = [str(demo / f"{system}.ranks.parquet") for system in ("svd", "popularity")]
        kgtrec_command("plot", "rank-types", *ranks, str(constant), "-o", f"{folder}/ties.png")
        small(folder / "ties.png", "ties.png")

        page = ["--html", f"{folder}/report.html", "--graph", str(demo / "graph")]
        kgtrec_command("report", *ranks, *page)
        shot = [f"--screenshot={folder}/report.png", PAGE, f"--user-data-dir={folder}/profile"]
        command = [browser, *QUIET, *shot, f"file://{folder}/report.html"]
        subprocess.run(command, check=True, capture_output=True)
        small(folder / "report.png", "report.png")


if __name__ == "__main__":
    main()
