"""LaTeX that pdflatex compiles, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def compiled(
    text: str, folder: Path, options: str = "", head: str = r"\documentclass{article}"
) -> str:
    """The log of a LaTeX article with one table."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not here")
    for style in ("booktabs.sty", "geometry.sty"):
        looked_up = subprocess.run(["kpsewhich", style], capture_output=True, check=False)
        if looked_up.returncode:
            pytest.skip(f"pdflatex is here without {style}")
    preamble = head + r"\usepackage{booktabs,graphicx}" + options
    (folder / "t.tex").write_text(
        f"{preamble}\n\\begin{{document}}\n{text}\\end{{document}}\n", "utf-8"
    )
    command = [
        "pdflatex",
        "-halt-on-error",
        "-interaction=nonstopmode",
        "-no-shell-escape",
        "t.tex",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    log = (folder / "t.log").read_text("latin-1")
    assert done.returncode == 0, log[-3000:]
    assert "Missing character" not in log
    return log
