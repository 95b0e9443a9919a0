"""The guides: Markdown files of this folder, shown by ``kgtrec guide`` and run by the test suite.

In: the name of a guide. Out: its title, its text, its path. `ORDER` is the order in which somebody
new reads them; a guide is one file here and one name there.
"""

from __future__ import annotations

from pathlib import Path

from kgtrec.errors import UsageError, must_be

ORDER = (
    "first-evaluation",
    "reading-the-report",
    "report",
    "numbers",
    "ties",
    "filters-and-protocols",
    "temporal",
    "qualifiers",
    "sampled-candidates",
    "adjusted-metrics",
    "slices",
    "embeddings",
    "training-loop",
    "formats",
    "runs-and-qrels",
    "significance",
    "changes",
    "gate",
    "published-numbers",
    "many-graphs",
    "sparse-labels",
    "judged-metrics",
    "open-world",
    "complex-queries",
    "dense-retrieval",
    "pairs",
    "classification",
    "sets",
    "semantics",
    "clusters",
    "migrating",
)


def path(name: str) -> Path:
    """The file of a guide."""
    if name not in ORDER:
        raise UsageError(f"{name!r} is not a guide; {must_be(name, ORDER)}")
    return Path(__file__).with_name(f"{name}.md")


def text(name: str) -> str:
    """The Markdown of a guide; errors as for `path`."""
    return path(name).read_text(encoding="utf-8")


def title(name: str) -> str:
    """The first heading of a guide; errors as for `path`."""
    return text(name).partition("\n")[0].removeprefix("# ")
