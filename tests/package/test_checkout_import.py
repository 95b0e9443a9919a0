"""In a checkout, the source folder hides the installed package and must lead to it.

The test makes a checkout from the sources without compiled files, and an installation from the
sources with them. Neither is the one that runs this test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgtrec import _core

ROOT = next(path for path in Path(__file__).parents if (path / "pyproject.toml").is_file())
COMPILED = Path(_core.__file__)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing was compiled."""
    folder = tmp_path_factory.mktemp("checkout")
    unwanted = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "kgtrec", folder / "kgtrec", ignore=unwanted)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `pip install .` in site-packages."""
    folder = tmp_path_factory.mktemp("site")
    unwanted = shutil.ignore_patterns("*.so", "*.pyx", "*.pxd")  # compiled Python is kept
    shutil.copytree(ROOT / "kgtrec", folder / "kgtrec", ignore=unwanted)
    shutil.copy(COMPILED, folder / "kgtrec")
    return folder


def run(checkout: Path, site: Path | None, *arguments: str, text: str = "") -> str:
    """Python's output in the checkout, with kgtrec installed at `site`; fails if Python fails."""
    # Options for this pytest (PYTEST_ADDOPTS) must not reach the one that is started.
    environment = {name: text for name, text in os.environ.items() if name[:7] != "PYTEST_"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if site:
        environment["PYTHONPATH"] = str(site)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment, input=text,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.slow
def test_the_first_example_of_the_readme_can_be_pasted(checkout: Path, site: Path) -> None:
    demo = "from kgtrec.demo import run_demo\nrun_demo('kgtrec-demo')\n"
    readme = (ROOT / "README.md").read_text("utf-8")
    example = re.search(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    assert example is not None
    assert "kgtrec-demo" in example[1]
    assert "MRR" in run(checkout, site, "-", text=demo + example[1])


def test_no_module_is_the_checkouts(checkout: Path, site: Path) -> None:
    """Otherwise one version's Python would call another's C."""
    code = (
        "import sys, pathlib, kgtrec.cli, kgtrec.ranking.rank\n"
        "for name, module in sys.modules.items():\n"
        "    if name.startswith('kgtrec.'): print(pathlib.Path(module.__file__).resolve())\n"
    )
    places = run(checkout, site, "-c", code).splitlines()
    assert len(places) > 10
    assert [place for place in places if not Path(place).is_relative_to(site.resolve())] == []


def test_pytest_as_a_module_finds_it_too(checkout: Path, site: Path) -> None:
    (checkout / "test_it.py").write_text(
        "import kgtrec.graph.labels\nfrom kgtrec import _core\n"
        f"def test(): assert _core.__file__ == {str(site / 'kgtrec' / COMPILED.name)!r}\n"
    )
    run(checkout, site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")


def test_where_nothing_is_compiled_one_line_says_what_to_do(checkout: Path) -> None:
    bare = [sys.executable, "-S", "-E", "-c", "import kgtrec"]  # without site-packages
    done = subprocess.run(bare, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: kgtrec is neither compiled in {checkout / 'kgtrec'} nor installed for "
        f"{sys.executable}; run: {sys.executable} -m pip install {checkout}"
    )


def test_a_checkout_that_is_compiled_is_used_itself(checkout: Path, site: Path) -> None:
    """As after `pip install -e .`, regardless of other installations."""
    own = checkout / "kgtrec" / COMPILED.name
    shutil.copy(COMPILED, own)
    try:
        code = "import kgtrec.errors; from kgtrec import _core; print(_core.__file__)"
        assert run(checkout, site, "-c", code).strip() == str(own)
    finally:
        own.unlink()
