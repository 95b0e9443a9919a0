"""Published figures of Zhou et al. (2022), and the places of their files.

"Re-thinking Knowledge Graph Completion Evaluation from an Information Retrieval Perspective",
SIGIR 2022. Their data and result tables: https://github.com/zhouying20/kgc-sparsity.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["PUBLISHED", "Files", "Row", "matches", "row"]

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

CATEGORY_FILES = {
    "1-1": "one_to_one",
    "1-N": "one_to_many",
    "N-1": "many_to_one",
    "N-N": "many_to_many",
}
METRICS = {
    "mr": "micro_mr",
    "mrr": "micro_mrr",
    "hits@1": "micro_hits@1",
    "hits@3": "micro_hits@3",
    "hits@10": "micro_hits@10",
}

Value = int | float | bool | str | None

PUBLISHED: dict[str, Value] = {
    # Table 1 and section 3
    "000.t1.O": 20466,
    "000.t1.S": 1023,
    "000.t1.SC": 22492,
    "000.t1.SC.pos": 2738,
    "000.t1.SC.neg": 19754,
    "000.pool.triples": 21469,
    "000.pool.entities": 7087,
    "000.pool.relations": 151,
    "000.pool.human": 12599,
    "000.O.relations": 224,
    "000.depth2.newpos": 287,
    "000.S.sample_rule": True,
    "000.kld.S_O": 0.0889,
    "000.kld.O_full": 0.2789,
    "000.kld.SC_O": 0.2386,
    # Figure 3
    "000.fig3.S_vs_SC": -0.2308,
    "000.fig3.S_vs_O": 0.7949,
    "000.fig3.rank_SC.A": 8,
    "000.fig3.rank_SC.D": 13,
    "000.fig3.rank_SC.L": 4,
    # Figures 4 and 5
    "000.fig4.depth2.micro_mrr": 0.359,
    "fig4: below 0 at depth 10": True,
    "000.fig5.gap10.mrr": 0.41,
    "000.fig5.gap10.hits10": 0.14,
    "000.fig5.macro>micro at depths>=2": True,
    "fig5: macro above micro at any depth": True,
    # Figure 6 and the mean ranks of section 5.2
    "000.fig6.median_hitter": "O ~ SC, S slightly smaller",
    "000.mean_MR": "~3000 WN18RR, ~200 FB",
    # Figure 8: which area is smaller
    "fig8: macro MRR sharper on FB-Test-O": True,
    "fig8: macro Hits@10 sharper on FB-Test-O": None,
    "fig8: gap of MRR smaller on FB-Test-S-C": True,
    # Table 4
    "000.t4.complete.micro_mr": 0.2308,
    "000.t4.sparse.micro_mr": 0.2308,
    "000.t4.complete.micro_mrr": -0.2308,
    "000.t4.sparse.micro_mrr": -0.2051,
    "000.t4.complete.micro_hits@1": -0.0519,
    "000.t4.sparse.micro_hits@1": 0.0256,
    "000.t4.complete.micro_hits@3": -0.4358,
    "000.t4.sparse.micro_hits@3": -0.2051,
    "000.t4.complete.micro_hits@10": 0.2598,
    "000.t4.sparse.micro_hits@10": 0.3377,
}

# Table 3: MRR, Hits@1, Hits@3, Hits@10. None: not legible in the scan at hand.
TABLE3 = {
    "head.one_to_one": (1.0, 1.0, 1.0, 1.0),
    "head.one_to_many": (0.0256, 0.0748, 0.3731, 0.4665),
    "head.many_to_one": (0.1026, None, 0.1782, 0.2857),
    "head.many_to_many": (-0.3333, -0.0645, -0.4698, -0.1177),
    "tail.one_to_one": (1.0, 1.0, 1.0, 1.0),
    "tail.one_to_many": (-0.1026, 0.1353, 0.1988, -0.1420),
    "tail.many_to_one": (0.5641, 0.7114, 0.6123, 0.7371),
    "tail.many_to_many": (-0.1282, 0.0260, -0.2746, 0.3007),
}
for _row, _cells in TABLE3.items():
    for _name, _cell in zip(("mrr", "hits@1", "hits@3", "hits@10"), _cells, strict=True):
        PUBLISHED[f"000.t3.{_row}.micro_{_name}"] = _cell


@dataclass(frozen=True)
class Row:
    """A line of the report.

    Attributes
    ----------
    key : str
    published, ours : number, bool, text or None
        None: nothing comparable is printed.
    match : bool or None
        None: undecided.
    note : str
    """

    key: str
    published: Value
    ours: Value
    match: bool | None
    note: str = ""


def row(key: str, ours: Any, note: str = "", published: Value | None = None) -> Row:
    """A line, compared with the figure published under its key."""
    value = PUBLISHED.get(key) if published is None else published
    digits = 4 if key.startswith(("000.t3", "000.t4", "000.kld", "000.fig3")) else 0
    match = matches(value, ours, digits)
    if match and isinstance(value, float) and not _rounds_to(value, float(ours), digits):
        note = f"printed digits are cut off, not rounded{'; ' if note else ''}{note}"
    return Row(key, value, ours, match, note)


def matches(published: Value, ours: Any, digits: int = 0) -> bool | None:
    """Whether ours has the printed digits, rounded or truncated; None for texts and blanks.

    `digits`: the number of printed decimals, if a final 0 hides it.
    """
    if published is None or isinstance(published, str) or ours is None:
        return None
    if isinstance(published, (bool, int)):
        return bool(published == ours)
    digits = _digits(published, digits)
    cut = math.trunc(float(ours) * 10**digits) / 10**digits
    return _rounds_to(published, float(ours), digits) or abs(cut - published) < 1e-9


def _rounds_to(published: float, ours: float, digits: int) -> bool:
    return abs(round(ours, _digits(published, digits)) - published) < 1e-9


def _digits(number: float, least: int) -> int:
    """Decimals in print."""
    return max(least, len(repr(number).partition(".")[2]))


@dataclass(frozen=True)
class Files:
    """Paths of the data files.

    Attributes
    ----------
    folder : Path
        Contains ``fb15k-237``, ``kgc-sparsity`` and ``models``.
    """

    folder: Path = SHARED_DATA

    @property
    def graph(self) -> Path:
        """FB15k-237."""
        return self.folder / "fb15k-237"

    def labels(self, name: str) -> Path:
        """A file of FB-Test-S-C."""
        return self.folder / "kgc-sparsity" / "data" / "FB-Test-S-C" / name

    def data(self, name: str) -> Path:
        """A file of their data."""
        return self.folder / "kgc-sparsity" / "data" / name

    def table(self, name: str) -> list[dict[str, str]]:
        """A result table of theirs, a dict per line."""
        return _read_csv(self.folder / "kgc-sparsity" / "result" / name)


@cache
def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
