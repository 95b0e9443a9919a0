"""Sections of the report page on ranks alone: their distribution, popularity, and ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.section import Section, plain_numbers

CUTS = 60
TINY = 0.0001
"""The summary omits smaller changes of MRR."""


def distribution_section(systems: Mapping[str, Ranks]) -> Section:
    """Compute the share of instances with a realistic rank of at most k, for some k."""
    most = max(int(ranks.candidates.max()) for ranks in systems.values())
    cuts = np.unique(np.round(np.geomspace(1, max(2, most), CUTS)).astype(np.int64))
    shares = [
        np.searchsorted(np.sort(ranks.rank()), cuts, side="right") / len(ranks)
        for ranks in systems.values()
    ]
    share = [plain_numbers(of_model) for of_model in shares]
    return Section({"distribution": {"k": cuts.tolist(), "share": share}})


def popularity_section(systems: Mapping[str, Ranks], metrics: Sequence[str]) -> Section:
    """Compute metrics by popularity of the answer, in bins from one power of 2 to the next."""
    counts = next(iter(systems.values())).answer_popularity
    code = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))) + 1, 0).astype(np.int64)
    members = [np.flatnonzero(code == number) for number in np.unique(code)]
    results = [[Result(ranks.subset(rows)) for rows in members] for ranks in systems.values()]
    values = {
        metric: [
            plain_numbers(result[f"{result.sides[-1]}.{metric}"] for result in of_model)
            for of_model in results
        ]
        for metric in metrics
    }
    bins = {
        "from": [int(counts[rows].min()) for rows in members],
        "to": [int(counts[rows].max()) for rows in members],
        "instances": [len(rows) for rows in members],
        "values": values,
    }
    return Section({"popularity": bins})


def ties_section(ties: Mapping[str, Mapping[str, Any]]) -> Section:
    """Return the tie reports of models by name, and how far ties can change an MRR."""
    widths = {name: float(report["width"]["mrr"]) for name, report in ties.items()}
    name = max(widths, key=lambda name: widths[name])
    sentence = f"Ties can change MRR by up to {widths[name]:.4f} ({name})."
    if not any(report["max_equal"] for report in ties.values()):
        sentence = "No answer ties with another candidate."
    elif widths[name] < TINY:
        sentence = f"Ties change no MRR by {TINY:g} or more."
    return Section({"ties": ties}, (sentence,))
