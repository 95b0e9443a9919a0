"""Gains: pairs of level=gain behind a cutoff, 2^r - 1, their names, and huge relevances."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from transcripts import run_command

from kgtrec import trec
from kgtrec.errors import InputError
from kgtrec.trec import ir_measures_provider
from kgtrec.trec.measures.names import canonical, resolve

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

FAMILIES = ("G", "dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg")

levels = st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 3), min_size=1)
scores = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1)


def values(qrels: Any, run: Any, *names: str, **options: Any) -> list[float]:
    rows = trec.evaluate({"q": qrels}, {"q": run}, names, **options)
    return [rows["q"][name] for name in names]


@given(qrels=levels, run=scores)
def test_exponential_gains_are_these_pairs(qrels, run) -> None:
    for family in FAMILIES:
        pairs, named = values(qrels, run, f"{family}.1=1,2=3,3=7", f"{family}.exp")
        assert pairs == named


@given(qrels=levels, run=scores, depth=st.integers(1, 8))
def test_exponential_gains_are_those_of_such_relevances(qrels, run, depth: int) -> None:
    """Also under ties: the documents with relevance 2^r - 1 instead of r have the same values."""
    gained = {document: 2 ** max(r, 0) - 1 for document, r in qrels.items()}
    names = ["ndcg", f"ndcg_cut_{depth}", "dcg"]
    for ties in ("name", "expected", "min", "max"):
        exponential = values(qrels, run, *(f"{name}_exp" for name in names), ties=ties)
        assert exponential == pytest.approx(values(gained, run, *names, ties=ties), abs=1e-14)


@given(
    qrels=levels,
    run=scores,
    depth=st.integers(1, 8),
    gains=st.lists(st.sampled_from([0.0, 0.5, 2.0, 9.0]), min_size=4, max_size=4),
)
def test_gains_with_a_cutoff(qrels, run, depth: int, gains: list[float]) -> None:
    order = sorted(run, key=lambda document: (run[document], document), reverse=True)
    own = [gains[qrels[d]] if qrels.get(d, -1) >= 0 else 0.0 for d in order]
    best = sorted((gains[r] for r in qrels.values() if r >= 0), reverse=True)
    dcg, ideal = (
        sum(gain / math.log2(i + 2) for i, gain in enumerate(one[:depth])) for one in (own, best)
    )
    pairs = ",".join(f"{level}={gain}" for level, gain in enumerate(gains))
    names = f"ndcg_cut.{depth}.{pairs}", f"ndcg_cut_{depth}_{pairs}", f"nDCG@{depth}.{pairs}"
    for value in values(qrels, run, *names):
        assert value == pytest.approx(dcg / ideal if ideal else 0.0, abs=1e-14)


def test_names_of_gains_parse_back() -> None:
    spellings = {
        "nDCG(dcg='exp-log2')@10": "ndcg_cut_10_exp",
        'nDCG(dcg="exp-log2")': "ndcg_exp",
        "nDCG(dcg=exp-log2)@5": "ndcg_cut_5_exp",
        "NDCG( dcg = 'exp-log2' )@5": "ndcg_cut_5_exp",
        "nDCG(dcg='log2')@10": "ndcg_cut_10",
        "nDCG(dcg='log2')": "ndcg",
        "nDCG(gains={1: 3, 2: 9})@10": "ndcg_cut_10_1=3,2=9",
        "nDCG(gains={1:0.5})": "ndcg_1=0.5",
        "ndcg_cut.10.exp": "ndcg_cut_10_exp",
        "ndcg.exp": "ndcg_exp",
        "Rndcg_exp": "Rndcg_exp",
        "nDCG@10.exp": "ndcg_cut_10_exp",
        "ndcg_cut_3_1=0.5,2=1e2": "ndcg_cut_3_1=0.5,2=1e2",
    }
    for spelling, name in spellings.items():
        for command_line in (False, True):
            (column,) = resolve([spelling], command_line=command_line)
            assert column.name == name
        assert canonical(spelling) == canonical(name) == name
        assert resolve([name]) == [column]
    several = resolve(["ndcg_cut.5,10.1=2"], command_line=True)
    assert [column.name for column in several] == ["ndcg_cut_5_1=2", "ndcg_cut_10_1=2"]
    assert [column.sees for column in several] == [5, 10]
    for name in FAMILIES:
        assert canonical(f"{name}.exp") == f"{name}_exp"


def test_ir_measures_objects() -> None:
    """The provider, evaluate and the name give the same values."""
    qrels, run = {"q": {"a": 1, "b": 2, "c": 3}}, {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}
    provider = ir_measures_provider.register()
    nDCG = ir_measures.nDCG
    for measure in (
        nDCG(dcg="exp-log2") @ 10,
        nDCG(dcg="exp-log2") @ 2,
        nDCG(dcg="exp-log2"),
        nDCG(gains={1: 5, 2: 3}) @ 2,
        nDCG(gains={1: 5}),
    ):
        own = provider.calc_aggregate([measure], qrels, run)[measure]
        row = trec.evaluate(qrels, run, [measure], summary=True)
        assert row[measure] == own == next(iter(row.values()))


def test_exponential_gain_on_the_command_line(tmp_path: Path, monkeypatch) -> None:
    """Case bug-exponential-gain."""
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text("q1 0 a 1\nq1 0 b 2\nq1 0 c 3\n")
    Path("system.run").write_text("q1 Q0 a 1 3 s\nq1 Q0 c 2 2 s\nq1 Q0 b 3 1 s\n")
    for name, value in (
        ("nDCG(dcg='exp-log2')@10", "0.7364"),
        ("ndcg.1=1,2=3,3=7", "0.7364"),
        ("ndcg_cut.2.1=1,2=3,3=7", "0.6091"),
        ("nDCG(dcg='exp-log2')@2", "0.6091"),
    ):
        done = run_command("eval", "-m", name, "qrels.txt", "system.run")
        assert (done.code, done.err, done.out.split()[-1]) == (0, "", value)
    for name in ("qrels.txt", "system.run"):
        Path(name).write_text(Path(name).read_text() + Path(name).read_text().replace("q1", "q2"))
    Path("b.run").write_text("q1 Q0 c 1 3 s\nq2 Q0 b 2 2 s\nq2 Q0 a 3 1 s\n")
    for name in ("nDCG(dcg='exp-log2')@10", "ndcg_cut_10_exp", "ndcg_cut.10.1=1,2=3,3=7"):
        done = run_command("compare", "--qrels", "qrels.txt", "-m", name, "system.run", "b.run")
        assert (done.code, "0.7364" in done.out) == (0, True), done


def test_exponents_that_are_too_high() -> None:
    high = values({"a": 1000, "b": 1}, {"a": 1.0, "b": 2.0}, "ndcg.exp")
    assert high == [pytest.approx(1 / math.log2(3), abs=1e-14)]
    with pytest.raises(InputError, match="relevance 1001 is too high for the gain 2"):
        values({"a": 1001}, {"a": 1.0}, "ndcg.exp")


# -- Huge relevances -----------------------------------------------------------------------------

huge = st.dictionaries(
    st.sampled_from("abcdef"),
    st.sampled_from([0, 1, 2, 3, 2**52, 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1]),
    min_size=1,
)


def exact_g(qrels: dict[str, int], order: list[str]) -> float:
    """G by its definition in help, with whole numbers of any size."""
    best = sorted((r for r in qrels.values() if r > 0), reverse=True)
    own, total = 0, 0.0
    for depth, document in enumerate(order, 1):
        gain = qrels.get(document, 0)
        own += gain
        cost = sum(best[:depth]) + max(depth - len(best), 0)
        if gain:
            total += gain / math.log2(2 + cost - own)
    return total / sum(best) if best else 0.0


@examples(4)
@given(qrels=huge, run=scores)
def test_huge_relevances_in_g(qrels, run) -> None:
    order = sorted(run, key=lambda document: (run[document], document), reverse=True)
    assert values(qrels, run, "G") == [pytest.approx(exact_g(qrels, order), rel=1e-14)]


@examples(2)
@given(qrels=huge, run=scores)
def test_huge_relevances_in_other_measures(qrels, run) -> None:
    """Against exact sums; the second query must not lose its small gains to those of the first."""
    order = sorted(run, key=lambda document: (run[document], document), reverse=True)
    best = sorted(qrels.values(), reverse=True)
    dcg, ideal = (
        float(sum(Fraction(gain) / Fraction(math.log2(i + 2)) for i, gain in enumerate(one)))
        for one in ([qrels.get(d, 0) for d in order], best)
    )
    assert values(qrels, run, "ndcg", "dcg") == [
        pytest.approx(dcg / ideal if ideal else 0.0, rel=1e-14),
        pytest.approx(dcg, rel=1e-14),
    ]
    small, tied = {"a": 1, "b": 2}, {"a": 1.0, "b": 1.0}
    alone = values(small, tied, "ndcg", "ndcg_cut_1", ties="expected")
    both = trec.evaluate(
        {"p": qrels, "q": small}, {"p": run, "q": tied}, ["ndcg", "ndcg_cut_1"], ties="expected"
    )
    assert [*both["q"].values()] == pytest.approx(alone, rel=1e-14)


def test_overflowing_gains(tmp_path: Path, monkeypatch) -> None:
    """Case bug-gain-overflow."""
    monkeypatch.chdir(tmp_path)
    Path("system.run").write_text("q1 Q0 d1 1 3 s\nq1 Q0 d2 2 2 s\nq1 Q0 d3 3 1 s\n")
    for huge, value in ((10**12, "0.5125"), (2**62, "0.5081")):
        Path("qrels.txt").write_text(f"q1 0 d1 1\nq1 0 d2 {huge}\nq1 0 d3 {huge}\n")
        done = run_command("eval", "-m", "G", "qrels.txt", "system.run")
        assert (done.code, done.err, done.out.split()[-1]) == (0, "", value)
    frame = pd.DataFrame({"qid": ["q1"] * 2, "docno": [*"ab"], "label": [2**62, 2**62 + 1]})
    assert trec.evaluate(frame, {"q1": {"b": 2.0, "a": 1.0}}, ["G"])["q1"]["G"] == pytest.approx(
        (2**62 + 1 + 2**62) / (2**63 + 1), rel=1e-15
    )
