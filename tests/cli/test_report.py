"""Results among sampled candidates say so: their keys, figures and comparisons.

tests/golden/cli has what kgtrec report and compare print: report.txt, compare.txt, and meaning.txt
for facts that change the meaning of numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph

import kgtrec
from kgtrec.errors import UsageError


@pytest.fixture(scope="module")
def results() -> dict[str, kgtrec.Result]:
    """The same scores, ranked in full and among sampled candidates."""
    rng, full = np.random.default_rng(3), graph().questions()
    scores = rng.random((len(full), N_ENTITIES))
    lists = [rng.choice(N_ENTITIES, 12, replace=False) for _ in scores]
    variants = {"full": full, "sampled": full.restrict(candidates=lists, outside="worst")}
    return {name: kgtrec.evaluate(scores, q, progress=False) for name, q in variants.items()}


def test_figures_name_sampled_candidates(results: dict[str, kgtrec.Result]) -> None:
    pytest.importorskip("matplotlib")
    from kgtrec.plots import ranks as figures
    from kgtrec.plots.studies import beta_curves, beta_heat_map
    from kgtrec.study.stratified import beta_curve, beta_grid

    ranks = {name: result.ranks for name, result in results.items()}
    curves = {name: beta_curve(each, metrics=("mrr",)) for name, each in ranks.items()}
    for drawn in (figures.rank_distribution(ranks), figures.tie_widths(ranks), beta_curves(curves)):
        texts = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert [text.startswith("sampled (sampled)") for text in texts if "full" not in text][-1]
        assert not any("(sampled)" in text for text in texts if text.startswith("full"))
    for drawn in (figures.rank_types(results), figures.relations(results)):
        texts = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
        assert ["(sampled)" in text for text in texts] == [False, True]
    heat = beta_heat_map(beta_grid(ranks["sampled"], metrics=("mrr",)))
    assert heat.axes[-1].get_ylabel() == "sampled strat-MRR"


def test_keys_of_sampled_ranks_are_not_those_of_full_ones(
    results: dict[str, kgtrec.Result],
) -> None:
    sampled, full = results["sampled"], results["full"]
    key = "both.realistic.micro.mrr"
    assert sampled[f"sampled.{key}"] == sampled[key]
    assert all(name.startswith("sampled.") for name in sampled)
    with pytest.raises(UsageError, match=r"no candidates were sampled; ask for 'both\."):
        full[f"sampled.{key}"]


def test_results_can_be_compared_as_their_ranks(results: dict[str, kgtrec.Result]) -> None:
    full, sampled = results["full"], results["sampled"]
    different = kgtrec.comparable(full.ranks, sampled.ranks)
    assert not different
    assert str(different) == f"not comparable: {'; '.join(different.reasons)}"
    assert kgtrec.comparable(full, sampled) == different
    assert kgtrec.comparable(full, sampled.ranks) == different
    assert kgtrec.comparable(full, full)
    assert str(kgtrec.comparable(full, full)) == "comparable"
