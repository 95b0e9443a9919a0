"""Print every ``name>=version`` of pyproject.toml as ``name==version``: constraints for pip.

With them an environment has the oldest versions that kgtrec declares to work with; the step
``oldest`` of .ci/run installs and tests that. Needs Python 3.11, or pip's own tomli.
"""

import re
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

FLOOR = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[0-9.]+)")


def floors(path: str) -> list[str]:
    """Constraints of all that the package and its tests need, and of what builds it."""
    with open(path, "rb") as file:
        content = tomllib.load(file)
    project = content["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["test"]
    found = {}
    for line in [*content["build-system"]["requires"], *needed]:
        match = FLOOR.match(line)
        if match is None:
            raise SystemExit(f"{path}: {line!r} has no floor; write it as name>=version")
        found[match["name"]] = match["version"]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    print("\n".join(floors(sys.argv[1])))
