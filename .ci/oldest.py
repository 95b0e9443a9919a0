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

LOWER_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[0-9.]+)")


def oldest_versions(path: str) -> list[str]:
    """Constraints of all that the package and its tests need, and of what builds it."""
    with open(path, "rb") as file:
        content = tomllib.load(file)
    project = content["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["test"]
    versions = {}
    for line in [*content["build-system"]["requires"], *needed]:
        match = LOWER_BOUND.match(line)
        if match is None:
            raise SystemExit(f"{path}: {line!r} has no lower bound; write it as name>=version")
        versions[match["name"]] = match["version"]
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


if __name__ == "__main__":
    print("\n".join(oldest_versions(sys.argv[1])))
