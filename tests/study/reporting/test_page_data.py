"""The contents of the report page, against plain Python over the columns of ranks."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from compare_cases import graph, systems

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.changes import answer_changes
from kgtrec.study.reporting.page import embedded_json, page_data, page_text

GAINS = {
    "mrr": lambda r: 1 / r,
    "hits@1": lambda r: float(r <= 1),
    "hits@10": lambda r: float(r <= 10),
    "mr": lambda r: r,
}


@pytest.fixture(scope="module")
def ranks() -> dict[str, Ranks]:
    return systems(3)


def rows_of(ranks: Ranks) -> list[dict[str, float]]:
    """Instances as plain numbers, in the order of triples and sides."""
    names = ("triple", "side", "relation", "given", "answer", "answer_popularity", "question")
    columns = {name: getattr(ranks, name).tolist() for name in names}
    columns["rank"] = [g + 1 + e / 2 for g, e in zip(ranks.greater.tolist(), ranks.equal.tolist(),
                       strict=True)]  # fmt: skip
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return sorted(rows, key=lambda row: (row["triple"], row["side"]))


def test_relations_parts_and_headline(ranks: dict[str, Ranks]) -> None:
    data = page_data(ranks, graph=graph())
    assert data["models"] == list(ranks)
    relations = data["relations"]
    for model, one in enumerate(ranks.values()):
        rows = rows_of(one)
        for number, name in enumerate(relations["names"]):
            own = [row["rank"] for row in rows if str(row["relation"]) == name]
            assert relations["instances"][number] == len(own)
            for metric, gain in GAINS.items():
                due = mean(map(gain, own))
                assert relations["values"][metric][model][number] == pytest.approx(due, rel=1e-5)
        result = kgtrec.Result(one)
        for key, values in zip(data["headline"]["keys"], data["headline"]["values"], strict=True):
            assert values[model] == result[key]
    parts = data["parts"]
    at = parts["names"].index("head")
    heads = [row["rank"] for row in rows_of(ranks["s0"]) if row["side"] == 0]
    assert parts["instances"][at] == len(heads)
    assert parts["values"]["mr"][0][at] == pytest.approx(mean(heads), rel=1e-5)
    assert len(set(parts["names"])) == len(parts["names"])
    assert set(data["relations"]["categories"]) <= {"1-1", "1-N", "N-1", "N-N", "unseen"}


def test_parts_have_intervals_and_a_summary_comes_first(ranks: dict[str, Ranks]) -> None:
    data = page_data(ranks, graph=graph())
    parts = data["parts"]
    for metric, models in parts["values"].items():
        for model, values in enumerate(models):
            for value, low, high in zip(values, parts["low"][metric][model],
                                        parts["high"][metric][model], strict=True):  # fmt: skip
                assert low <= value <= high
    size, best, tested, ties, where = data["summary"]
    assert size.startswith("3 models on ")
    keys = data["headline"]["keys"]
    values = data["headline"]["values"][keys.index("both.realistic.micro.mrr")]
    winner = data["models"][values.index(max(values))]
    assert f"{winner} by MRR" in best
    assert tested == data["comparisons"][0]["sentence"]
    assert "MRR" in ties or "No answer ties" in ties
    assert where.startswith(f"{winner} has its highest MRR on ")


def test_distribution_and_popularity(ranks: dict[str, Ranks]) -> None:
    data = page_data(ranks)
    for model, one in enumerate(ranks.values()):
        rows = rows_of(one)
        for k, share in zip(
            data["distribution"]["k"], data["distribution"]["share"][model], strict=True
        ):
            assert share == pytest.approx(mean(row["rank"] <= k for row in rows), rel=1e-5)
        shown = data["popularity"]
        for low, high, n, value in zip(
            shown["from"], shown["to"], shown["instances"], shown["values"]["mrr"][model],
            strict=True,
        ):  # fmt: skip
            own = [row for row in rows if low <= row["answer_popularity"] <= high]
            assert n == len(own)
            assert math.floor(math.log2(low)) == math.floor(math.log2(high))
            assert value == pytest.approx(mean(1 / row["rank"] for row in own), rel=1e-5)
    assert sum(data["popularity"]["instances"]) == len(ranks["s0"])


def test_answers_beyond_their_lists_have_intervals() -> None:
    questions = graph().questions("test")
    listed = {}
    for seed, name in enumerate(("a", "b")):
        scores = np.random.default_rng(seed).random((len(questions), 40))
        run = kgtrec.evaluate(scores, questions, run_depth=3, progress=False).run
        listed[name] = kgtrec.rank_lists(run, questions)
    data = page_data(listed)
    at = data["headline"]["keys"].index("both.realistic.micro.mrr")
    for model, ranks in enumerate(listed.values()):
        beyond = ranks.unlisted.tolist()
        first = [g + 1 for g in ranks.greater.tolist()]
        last = [c if b else r for b, c, r in zip(beyond, ranks.candidates.tolist(), first,
                strict=True)]  # fmt: skip
        low, high = data["headline"]["ends"][at][model]
        assert low == pytest.approx(mean(1 / r for r in last))
        assert high == pytest.approx(mean(1 / r for r in first))
        middle = mean(2 / (a + b) for a, b in zip(first, last, strict=True))
        assert data["comparisons"][0]["values"][model] == pytest.approx(middle, rel=1e-5)
        warning = f"{'ab'[model]}: {sum(beyond)} of {len(beyond)} answers are beyond"
        assert any(line.startswith(warning) for line in data["warnings"]), data["warnings"]
    assert json.loads(embedded_json(data))["headline"]["ends"][at][0] == pytest.approx(
        data["headline"]["ends"][at][0]
    )


def test_known_ranks_have_no_ends(ranks: dict[str, Ranks]) -> None:
    data = page_data(ranks)
    assert {end for ends in data["headline"]["ends"] for end in ends} == {None}
    assert not any("beyond" in warning for warning in data["warnings"])


def test_worst_best_and_ahead(ranks: dict[str, Ranks]) -> None:
    questions = page_data(ranks)["questions"]
    every = {name: rows_of(one) for name, one in ranks.items()}
    for name in ranks:
        lists = questions["lists"][name]
        assert set(lists) == {"worst", "best", "ahead"}
        place = list(ranks).index(name)
        own = sorted(row["rank"] for row in every[name])
        assert [questions["rows"][i]["ranks"][place] for i in lists["best"]] == own[:20]
        assert [questions["rows"][i]["ranks"][place] for i in lists["worst"]] == own[:-21:-1]
        gaps = sorted(
            (1 / row["rank"] - mean(1 / every[other][i]["rank"] for other in ranks if other != name)
             for i, row in enumerate(every[name])), reverse=True,
        )  # fmt: skip
        shown = []
        for i in lists["ahead"]:
            r = questions["rows"][i]["ranks"]
            shown.append(1 / r[place] - mean(1 / x for j, x in enumerate(r) if j != place))
        assert shown == pytest.approx(gaps[:20])
    known = {(row["given"], row["relation"], row["answer"]) for row in every["s0"]}
    for row in questions["rows"]:
        head, relation, tail = row["question"][1:-1].split(", ")
        entity = tail if head == "?" else head
        assert (int(entity), int(relation), int(row["answer"])) in known
        assert row["first"] == [None] * 3


def test_what_was_ranked_first_comes_from_runs(tmp_path) -> None:
    questions = graph().questions("test")
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 5, (len(questions), 40)).astype(np.float32)
    result = kgtrec.evaluate(scores, questions, run_depth=10, progress=False)
    result.run.write(tmp_path / "a.run")
    columns = kgtrec.trec.read_run(tmp_path / "a.run", as_="columns")
    text = (tmp_path / "a.run").read_text().split("\n")
    listed: dict[str, list[tuple[float, str]]] = {}
    for line in filter(None, text):
        query, _, name, _, score, _ = line.split()
        listed.setdefault(query, []).append((float(score), name))
    page = page_data({"a": result.ranks}, runs={"a": columns})["questions"]
    assert page["runs"] == ["a"]
    ranks = result.ranks
    ids = dict(zip(zip(ranks.side.tolist(), ranks.given.tolist(), ranks.relation.tolist(),
               strict=True), ranks.question_ids, strict=True))  # fmt: skip
    for row in page["rows"]:
        head, relation, tail = row["question"][1:-1].split(", ")
        side, entity = (0, tail) if head == "?" else (1, head)
        query = ids[side, int(entity), int(relation)]
        due = [name for _, name in sorted(listed[query], reverse=True)[:3]]
        assert [label for label, _ in row["first"][0]] == due
        answers = {str(a) for a, q in zip(ranks.answer.tolist(), ranks.question_ids, strict=True)
                   if q == query}  # fmt: skip
        assert [right for _, right in row["first"][0]] == [name in answers for name in due]


def test_comparisons_are_those_of_compare(ranks: dict[str, Ranks]) -> None:
    from kgtrec.study import compare, samples_of_ranks

    comparisons = page_data(ranks, test="t")["comparisons"]
    for shown in comparisons:
        (samples,) = samples_of_ranks(ranks, [shown["key"]])
        due = compare(samples, "t", resampling=Resampling(resamples=1000))
        name = f"{shown['title']} over {samples.unit}"
        assert shown["sentence"] == due.sentence(name)
        assert due.sentence() == shown["sentence"].replace(name, shown["key"], 1)
        for (i, j), p in zip(due.tests.pairs.tolist(), due.tests.corrected, strict=True):
            assert shown["p"][i][j] == shown["p"][j][i] == pytest.approx(float(p), rel=1e-5)
            assert shown["difference"][i][j] == -shown["difference"][j][i]
    assert page_data({"s0": ranks["s0"]})["comparisons"] == []
    one = {name: own.subset(own.question == own.question[0]) for name, own in ranks.items()}
    assert page_data(one)["comparisons"] == []


def test_changes_are_those_of_every_two_models(tmp_path: Path) -> None:
    questions = graph().questions("test")
    ranks, runs = {}, {}
    for seed, name in enumerate(("s0", "s1", "s2")):
        scores = np.random.default_rng(seed).integers(0, 9, (len(questions), 40)).astype(float)
        ranks[name], run = kgtrec.rank(scores, questions, run_depth=5, progress=False)
        run.write(tmp_path / f"{name}.run")
        if name != "s1":
            runs[name] = kgtrec.trec.read_run(tmp_path / f"{name}.run", as_="columns")
    changes = page_data(ranks, runs=runs)["changes"]
    names = list(ranks)
    assert [one["models"] for one in changes] == [[0, 1], [0, 2], [1, 2]]
    for one in changes:
        before, after = (names[number] for number in one["models"])
        both = {before: ranks[before], after: ranks[after]}
        files = [runs[before], runs[after]] if {before, after} <= runs.keys() else None
        due = answer_changes(both, files)
        assert one["hits"] == [list(row) for row in due.table().rows]
        assert one["largest"] == [list(row) for row in due.largest(25).rows]
        assert one["best"] == (files and [list(row) for row in due.best_table().rows])
    assert page_data({"s0": ranks["s0"]}, runs={"s0": runs["s0"]})["changes"] == []
    bare = {name: Ranks({n: getattr(one, n) for n in one._names}, one.manifest)
            for name, one in ranks.items()}  # fmt: skip
    assert {one["best"] for one in page_data(bare, runs=runs)["changes"]} == {None}


def test_models_of_other_questions_are_refused(ranks: dict[str, Ranks]) -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        page_data({"a": ranks["s0"], "b": systems(1, seed=4)["s0"]})
    with pytest.raises(UsageError, match="at least one model"):
        page_data({})


# -- The file ------------------------------------------------------------------------------------

HOSTILE = "</script><script>x()</script><!-- <img src=x onerror=x()> {{data}} \u2028 & \udce9"


class Outline(HTMLParser):
    """Tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data


def test_nothing_is_loaded_and_labels_make_no_markup(ranks: dict[str, Ranks]) -> None:
    plain, hostile = Outline(), Outline()
    data = page_data(ranks)
    plain.feed(page_text(data))
    other = page_data({HOSTILE: ranks["s0"], "=1+1": ranks["s1"], "b": ranks["s2"]})
    other["graph"] = HOSTILE
    text = page_text(other)
    hostile.feed(text)
    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in hostile.tags]
    assert json.loads(hostile.scripts[0])["models"][0] == HOSTILE
    text.encode("utf-8")
    for tag, attributes in hostile.tags:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "link":
            assert attributes["href"] == "data:,"
    policy = next(a["content"] for _, a in hostile.tags if a.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)
    assert "{{" not in page_text(data)


def test_embedded_json_reads_back_and_cannot_end_a_script() -> None:
    value = {"a": HOSTILE, "b": [1.5, None, math.nan, True], "</script>": "\u2029"}
    text = embedded_json(value)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {**value, "b": [1.5, None, None, True]}
