"""What a release needs: metadata that agree, absolute links, sound workflows."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml

import kgtrec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def without_space(requirement: str) -> str:
    return requirement.replace(" ", "")


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    recipe = (ROOT / ".github" / "conda" / "meta.yaml").read_text("utf-8")
    assert citation["version"] == kgtrec.__version__
    assert f'{{% set version = "{kgtrec.__version__}" %}}' in recipe
    assert json.loads((ROOT / ".zenodo.json").read_text("utf-8"))["license"] == PROJECT["license"]


def test_the_conda_recipe_requires_what_the_package_requires() -> None:
    recipe = (ROOT / ".github" / "conda" / "meta.yaml").read_text("utf-8")
    run = re.search(r"^  run:\n((?:    - .+\n)+)", recipe, re.M)
    assert run is not None
    required = [without_space(line.removeprefix("    - ")) for line in run[1].splitlines()]
    assert required == ["python", *map(without_space, PROJECT["dependencies"])]


def test_the_readme_of_an_index_has_absolute_links_only() -> None:
    # A checkout may have older metadata beside those of the installed package. Python keeps README
    # as the payload, importlib_metadata (which other tests import) as a header.
    found = [one.metadata for one in distributions(name="kgtrec")]
    shown = max((str(one["Description"] or one.get_payload()) for one in found), key=len)
    links = [
        one for pair in re.findall(r'\]\(([^)]+)\)|src="([^"]+)"', shown) for one in pair if one
    ]
    assert len(links) > 20
    assert [link for link in links if "://" not in link and link[0] != "#"] == []
    release = f"/v{kgtrec.__version__}/"
    for path in [link.partition(release)[2] for link in links if release in link]:
        assert (ROOT / path).exists(), path
    source = PROJECT["urls"]["Source"]
    assert f'<img src="{source}/raw{release}kgtrec/guides/images/report.png"' in shown


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_have_least_permissions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}, "nothing is allowed unless a job asks for it"
    for name, job in workflow["jobs"].items():
        assert job["permissions"], name
        assert set(job["permissions"]) <= {"contents", "id-token", "pages"}, name
        assert job["permissions"].get("contents") in (None, "read"), name
        if "steps" in job:
            assert job["timeout-minutes"] <= 180
        for step in job.get("steps", ()):
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", step["uses"]), step
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_ci_runs_steps_that_exist() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    rows = ci["jobs"]["linux"]["strategy"]["matrix"]["include"]
    steps = [step for row in rows for step in row["steps"].split()]
    assert {"tests", "lint", "types", "oldest", "newest"} <= set(steps)
    for step in steps:
        assert f"\nstep_{step}() {{" in script


def test_only_a_tag_publishes_and_without_a_password() -> None:
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true
    assert workflow["jobs"]["publish"]["needs"] == "build"
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets" not in text


def test_wheels_are_tested_with_the_programs_that_transcripts_call() -> None:
    """`.ci/wheels` hides the compiler, and so all that it does not name."""
    named = re.search(r"for tool in (.+); do", (ROOT / ".ci" / "wheels").read_text("utf-8"))
    assert named is not None
    called = set()
    for path in (ROOT / "tests" / "golden").glob("c*/*.txt"):
        for program, words in re.findall(
            r"^\$ (awk|sed|iconv|sh) (.+)$", path.read_text("utf-8"), re.M
        ):
            pipeline = words.strip("'").split(" | ") if program == "sh" else [program]
            called |= {step.split()[0] for step in pipeline}
    assert {"awk", "sed", "sort"} <= called
    assert called <= set(named[1].split())
