"""Judgements, samples, splits, qrels and intervals against plain Python; `kgtrec complete`."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import (
    Case,
    Triple,
    asked_by,
    call,
    cases,
    place_of,
    slow_lists,
    slow_pool,
    small,
    triple_of,
    write_case,
)
from profiles import examples
from refusals import assert_refused, refusals
from study_cases import N_ENTITIES, listed

import kgtrec
from kgtrec.cli.eval import command as eval_command
from kgtrec.cli.judge import command as judge_command
from kgtrec.cli.pool import complete as complete_command
from kgtrec.cli.pool import pool as pool_command
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.study.judging.sheets import read_pooled, read_sheet, write_sheet
from kgtrec.study.pooling.completion import Completion, complete, depth_table, remarks
from kgtrec.study.pooling.edited_files import (
    Judgements,
    read_judgements,
    read_triples,
    write_triples,
)
from kgtrec.study.pooling.pool import Draw, make_pool, read_draw, read_pool, write_pool
from kgtrec.study.pooling.unjudged import (
    MEASURES,
    JudgedInterval,
    intervals,
    open_candidates,
    open_remarks,
    share_table,
    shares,
    verdicts,
)
from kgtrec.trec.files.run import read_qrels

DEPTH = 4


@st.composite
def judged_cases(draw: st.DrawFn) -> tuple[Case, dict[Triple, int]]:
    """A case, and labels of some pooled triples, some seeds and some others."""
    case = draw(cases())
    pooled = sorted(slow_pool(case, DEPTH, "filtered"))
    entity = st.integers(0, N_ENTITIES - 1)
    triple = st.sampled_from([*pooled, *case.seeds]) | st.tuples(entity, st.just(0), entity)
    labels = draw(st.dictionaries(triple, st.sampled_from([1, 1, 0, 0, -1]), max_size=30))
    return case, labels


def done(case: Case, labels: dict[Triple, int], depth: int = DEPTH, **more: object) -> Completion:
    seeds = case.questions
    pool = make_pool(case.lists(), seeds, DEPTH)
    return complete(seeds, pool, Judgements(labels, len(labels)), depth=depth, **more)  # type: ignore[arg-type]


def labelled(completion: Completion) -> dict[Triple, int]:
    triples = map(tuple, completion.triples.tolist())
    return dict(zip(triples, completion.labels.tolist(), strict=True))  # type: ignore[arg-type]


def slow_labels(case: Case, labels: dict[Triple, int], depth: int) -> dict[Triple, int]:
    """Label of every seed and pooled triple: 1, 0, or -1 if undecided."""
    pool = {
        t for t, own in slow_pool(case, DEPTH, "filtered").items() if min(own.values()) <= depth
    }
    by_triple = {t: labels.get(t, -1) for t in pool}
    return by_triple | dict.fromkeys(case.seeds, 1)


@given(judged_cases(), st.integers(0, DEPTH))
def test_labels_and_complete_split(judged_case: tuple[Case, dict[Triple, int]], depth: int) -> None:
    case, labels = judged_case
    completion, expected = done(case, labels, depth), slow_labels(case, labels, depth)

    assert labelled(completion) == expected
    true = {t for t, label in expected.items() if label == 1}
    assert {tuple(t) for t in completion.split.tolist()} == true
    assert [tuple(t) for t in completion.split.tolist()][: len(case.seeds)] == case.seeds
    reverse = set(asked_by(sorted(true))) - set(asked_by(case.seeds))
    assert {(("head", "tail")[side], *rest) for side, *rest in completion.reverse} == reverse
    assert completion.unused == len(set(labels) - set(expected))
    assert completion.doubted == sum(labels.get(t) == 0 for t in case.seeds)
    counts = completion.counts()
    assert counts["added"] == len(true) - len(case.seeds)
    assert counts["false"] == sum(label == 0 for label in expected.values())
    assert counts["undecided"] == sum(label == -1 for label in expected.values())
    assert counts["never pooled"] == len(reverse)
    assert counts["questions"] == len(set(asked_by(sorted(true))))


@given(judged_cases(), st.booleans())
def test_qrels(judged_case: tuple[Case, dict[Triple, int]], reverse: bool) -> None:
    case, labels = judged_case
    completion, expected = done(case, labels), slow_labels(case, labels, DEPTH)
    names = case.graph.questions("test").ids
    number = {q: names[i] for i, q in enumerate(asked_by(listed(case.graph, "test")))}
    true = sorted(t for t, label in expected.items() if label == 1)
    questions = set(asked_by(case.seeds)) | (set(asked_by(true)) if reverse else set())
    by_question = {
        (number[q], e): expected[triple_of(q, e)]
        for q in questions if q in number
        for e in range(N_ENTITIES) if triple_of(q, e) in expected
    }  # fmt: skip

    qrels = completion.qrels(reverse)

    owner = np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets)).tolist()
    rows = zip(owner, qrels.entities.tolist(), qrels.labels.tolist(), strict=True)
    assert {(qrels.ids[q], e): label for q, e, label in rows} == by_question
    assert qrels.nameless == sum(q not in number for q in questions)


@given(judged_case=judged_cases())
def test_a_written_qrels_file_holds_the_labels(
    judged_case: tuple[Case, dict[Triple, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    qrels = done(*judged_case).qrels()
    path = tmp_path_factory.mktemp("q") / "qrels.txt"
    qrels.write(path)
    owner = np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets)).tolist()
    expected: dict[str, dict[str, int]] = {}
    for question, entity, label in zip(owner, qrels.entities, qrels.labels.tolist(), strict=True):
        expected.setdefault(qrels.ids[question], {})[str(entity)] = label
    assert read_qrels(path) == expected


@given(judged_cases(), st.data())
def test_rules_speak_where_no_judge_has(
    judged_case: tuple[Case, dict[Triple, int]], data: st.DataObject
) -> None:
    case, labels = judged_case
    seeds = case.questions
    pool = make_pool(case.lists(), seeds, DEPTH)
    rules = data.draw(
        st.lists(st.sampled_from(["", "1-1:head"]), min_size=len(pool), max_size=len(pool))
    )
    completion = complete(seeds, pool, Judgements(labels, 0), rules)
    pooled = [tuple(t) for t in pool.triples.tolist()]
    fired = {t for t, rule in zip(pooled, rules, strict=True) if rule}
    expected = slow_labels(case, labels, DEPTH)
    expected |= {t: 0 for t in fired if labels.get(t, -1) == -1}
    assert labelled(completion) == expected
    assert completion.counts()["false by rule"] == sum(labels.get(t, -1) == -1 for t in fired)
    assert completion.overruled == sum(labels.get(t) == 1 for t in fired)


# -- Shares and intervals --------------------------------------------------------------------------


def relevance(case: Case, labels: dict[Triple, int]) -> dict[str, list[list[int | None]]]:
    """System to the labels of every question's list; None: unjudged."""
    expected = slow_labels(case, labels, DEPTH)
    return {
        name: [
            [expected.get(triple_of(q, e)) if expected.get(triple_of(q, e)) != -1 else None
             for e, _ in by_question[q]]
            for q in asked_by(case.seeds)
        ]
        for name, by_question in slow_lists(case, "filtered").items()
    }  # fmt: skip


@given(judged_cases(), st.integers(1, 6))
def test_shares(judged_case: tuple[Case, dict[Triple, int]], cutoff: int) -> None:
    case, labels = judged_case
    completion = done(case, labels)
    slow, label_of = slow_lists(case, "filtered"), slow_labels(case, labels, DEPTH)
    kinds = {1: "added", 0: "false", -1: "unjudged"}
    for lists in case.lists():
        expected = dict.fromkeys(("seed", "added", "false", "unjudged"), 0)
        for question, ranked in slow[lists.name].items():
            for triple in (triple_of(question, entity) for entity, _ in ranked[:cutoff]):
                kind = kinds[label_of.get(triple, -1)]
                expected["seed" if triple in case.seeds else kind] += 1
        assert shares(lists, completion, cutoff) == expected
        row = next(r for r in share_table([lists], completion, [cutoff]).rows)
        assert math.isclose(row[-1] + row[-2], 100)


def value(name: str, own: list[int | None], others: list[int]) -> float:
    """A measure of a list of 1, 0 and None (never judged), by its definition.

    `others` are the judgements of documents outside the list.
    """
    true = [int(r == 1) for r in own]
    total = sum(true) + others.count(1)
    first = true.index(1) + 1 if 1 in true else math.inf
    discount = [1 / math.log2(i + 2) for i in range(20)]
    return {
        "P_10": lambda: sum(true[:10]) / 10,
        "success_10": lambda: float(first <= 10),
        "recip_rank": lambda: 1 / first,
        "rbp": lambda: 0.1 * sum(r * 0.9**i for i, r in enumerate(true)),
        "map_cut_20": lambda: sum(
            sum(true[: i + 1]) / (i + 1) for i in range(min(20, len(true))) if true[i]
        ) / total,
        "ndcg_cut_20": lambda: sum(r * d for r, d in zip(true, discount, strict=False))
        / sum(discount[:total]),
        "recall_20": lambda: sum(true[:20]) / total,
        "bpref": lambda: bpref([own], [total], [own.count(0) + others.count(0)]),
    }[name]()  # fmt: skip


@examples(0.5)
@given(judged_cases(), st.integers(1, 4), st.integers(0, 4))
def test_intervals_are_the_extremes_of_all_labellings(
    judged_case: tuple[Case, dict[Triple, int]], depth: int, within: int
) -> None:
    case, labels = judged_case
    # Some lists end above the pool's depth, others continue below it.
    completion, label_of = done(case, labels, 2), slow_labels(case, labels, 2)
    runs = case.lists(depth=depth)
    candidates = open_candidates(runs, completion, within)
    entities = {
        one.name: np.split(one.entities, one.offsets[1:-1]) for one in runs
    }  # test_pool.py checks the contents of lists
    for lists in runs:
        ends: dict[str, list[tuple[float, float]]] = {}
        for number, question in enumerate(asked_by(case.seeds)):
            listed_here = [triple_of(question, e) for e in entities[lists.name][number].tolist()]
            triples = [triple_of(question, e) for e in range(N_ENTITIES)]
            high = {
                triple_of(question, e)
                for own in entities.values() for e in own[number][:within].tolist()
            }  # fmt: skip
            opened = [
                t for t in triples if label_of.get(t) == -1 or (t in high and t not in label_of)
            ]
            judged = {t: label_of[t] for t in triples if label_of.get(t, -1) >= 0}
            worlds = [
                judged | dict(zip(opened, filled, strict=True))
                for filled in itertools.product((0, 1), repeat=len(opened))
            ]
            for name in MEASURES[:-1]:
                values = [
                    value(name, [world.get(t) for t in listed_here],
                          [r for t, r in world.items() if t not in listed_here])
                    for world in worlds
                ]  # fmt: skip
                ends.setdefault(name, []).append((min(values), max(values)))
        results = intervals(lists, completion, candidates=candidates)
        for name, pairs in ends.items():
            low, high_end = np.mean(pairs, axis=0)
            assert results[name].low == pytest.approx(low, abs=1e-12), name
            if name != "rbp":
                assert results[name].high == pytest.approx(high_end, abs=1e-12), name
        assert math.isnan(results["infAP"].high)
        assert "it estimates" in results["infAP"].reason


@examples(0.5)
@given(judged_cases())
def test_values_condensed_values_and_the_residual(
    judged_case: tuple[Case, dict[Triple, int]],
) -> None:
    case, labels = judged_case
    completion, label_of = done(case, labels), slow_labels(case, labels, DEPTH)
    slow, label_rows = slow_lists(case, "filtered"), relevance(case, labels)
    for lists in case.lists():
        results = intervals(lists, completion)
        for name in MEASURES[:-1]:
            now, condensed, residual = [], [], []
            for question, own in zip(asked_by(case.seeds), label_rows[lists.name], strict=True):
                here = {triple_of(question, e) for e, _ in slow[lists.name][question]}
                own_triples = {triple_of(question, e) for e in range(N_ENTITIES)}
                others = [r for t, r in label_of.items() if t in own_triples - here and r >= 0]
                now.append(value(name, own, others))
                condensed.append(value(name, [r for r in own if r is not None], others))
                weights = sum(0.1 * 0.9**i for i, r in enumerate(own) if r is None)
                residual.append(weights + 0.9 ** len(own) if None in own else 0.0)
            assert results[name].value == pytest.approx(np.mean(now), abs=1e-12), name
            assert results[name].condensed == pytest.approx(np.mean(condensed), abs=1e-12), name
            if name == "rbp":
                top = np.mean(now) + np.mean(residual)
                assert results[name].high == pytest.approx(top, abs=1e-12)
                assert results[name].low == pytest.approx(results[name].value, abs=1e-12)


def bpref(lists: list[list[int | None]], relevant: list[int], false: list[int]) -> float:
    """Buckley and Voorhees: the share of judged false ones below each true one."""
    values = []
    for own, r, n in zip(lists, relevant, false, strict=True):
        total = 0.0
        for i, label in enumerate(own):
            if label == 1:
                above = min(own[:i].count(0), r)
                total += 1 - above / min(r, n) if above else 1.0
        values.append(total / r)
    return sum(values) / len(values)


def test_decided_pairs() -> None:
    none = JudgedInterval(math.nan, 0.5, 0.5, math.nan, "an estimate")
    by_system = {
        "a": {"P_10": JudgedInterval(0.5, 0.5, 0.5, 0.6), "infAP": none},
        "b": {"P_10": JudgedInterval(0.6, 0.6, 0.6, 0.7), "infAP": none},
        "c": {"P_10": JudgedInterval(0.65, 0.7, 0.7, 0.9), "infAP": none},
    }
    (notes,) = verdicts(by_system)
    assert notes.startswith("pairs of runs (of 3) ")
    assert notes.endswith("can change: P_10 1")  # a touches b, b meets c
    assert verdicts({"a": by_system["a"]}) == []
    notes = open_remarks(by_system, np.arange(7), 20)
    assert "7 candidates without a label, in the pool or the first 20 of a run's list" in notes[0]
    assert notes[1] == "infAP has no interval: an estimate"
    assert "in the pool," in open_remarks(by_system, np.arange(7), 0)[0]
    # bpref ignores unjudged ones, but once judged false, they could lower the value.
    assert bpref([[None, 1]], [1], [1]) == 1.0 > bpref([[0, 1]], [1], [1])
    assert notes[0].endswith("and bpref ignores them")
    assert open_remarks({}, np.arange(7), 0) == []
    below = {"a": {"bpref": JudgedInterval(0.5, 0.4, 0.4, 0.6)}}
    assert open_remarks(below, np.arange(7), 0)[1].startswith("bpref of a is outside")


# -- Bad calls and files ---------------------------------------------------------------------------


@refusals(
    ("depth", lambda: done(small(), {}, depth=5), UsageError, ("this pool has 0 to 4",)),
    ("rules", lambda: done(small(), {}, rules=["x"] * 99), UsageError, ("rules for",)),
    *(
        (f"cutoff {cutoff}", lambda cutoff=cutoff: shares(
            small().lists()[0], done(small(), {}), cutoff), UsageError, ("cutoff",))
        for cutoff in (0, True)
    ),
    ("within", lambda: open_candidates(small().lists(), done(small(), {}), -1), UsageError,
     ("within -1 is below 0",)),
    *(
        (name, lambda name=name: intervals(small().lists()[0], done(small(), {}), [name]),
         UsageError, (words,))
        for name, words in (("num_rel", "no mean"), ("relstring", "no mean"), ("mapp", "unknown"))
    ),
    ("sample", lambda: done(small(), {}).sample, UsageError, ("this pool has no sample",)),
    *(
        (f"draw {share} {seed}", lambda share=share, seed=seed: Draw(share, seed),
         UsageError, words)
        for share, seed, *words in (
            (0, 1, "not a share"), (1.01, 1, "not a share"), (math.nan, 1, "not a share"),
            (True, 1, "not a share"), (0.5, -1, "seed -1 of the sample is below 0"),
            (0.5, True, "of the sample is below 0"),
        )
    ),
)  # fmt: skip
def test_wrong_calls_are_refused(call, error: type[Exception], words: tuple[str, ...]) -> None:
    assert_refused(call, error, words)


def read(tmp_path: Path, text: str, blank: str = "error") -> Judgements:
    path = tmp_path / "judged.tsv"
    path.write_bytes(text.encode())
    return read_judgements(path, small().graph, blank)


def test_judgement_files(tmp_path: Path) -> None:
    plain = read(tmp_path, "0\t0\t1\tY\n1\t0\t2\t N\r\n2\t0\t3\t?")
    assert plain.labels == {(0, 0, 1): 1, (1, 0, 2): 0, (2, 0, 3): -1}
    assert plain.counts() == {"Y": 1, "N": 1, "?": 1}
    assert plain.of([[1, 0, 2], [5, 0, 5]]).tolist() == [0, -2]
    headed = read(tmp_path, "note\tHead\trelation\ttail\tlabel\tlink\nx\t0\t0\t1\tY\t\n")
    assert headed.labels == {(0, 0, 1): 1}
    again = read(tmp_path, "0\t0\t1\tY\n0\t0\t1\tY \n")
    assert (len(again), again.rows, again.repeated) == (1, 2, 1)
    blank = read(tmp_path, "0\t0\t1\t\n0\t0\t2\t \n0\t0\t3\tY\n", "N")
    assert (blank.labels, blank.blank) == ({(0, 0, 1): 0, (0, 0, 2): 0, (0, 0, 3): 1}, 2)


def test_files_must_agree(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("0\t0\t1\tY\n")
    (tmp_path / "b.tsv").write_text("1\t0\t1\tN\n0\t0\t1\tN\n")
    graph = small().graph
    with pytest.raises(FileError, match=r"b.tsv:2: .* otherwise in .*a.tsv:1"):
        read_judgements([tmp_path / "a.tsv", tmp_path / "b.tsv"], graph)
    with pytest.raises(UsageError, match="no judgement file"):
        read_judgements([], graph)
    with pytest.raises(UsageError, match="blank='Y'"):
        read_judgements(tmp_path / "a.tsv", graph, "Y")


def test_labels_that_tsv_cannot_hold_are_refused(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], entities=["a\tb", "c"], relations=["r"])
    with pytest.raises(KgtrecError, match="a TSV file cannot have"):
        write_triples(tmp_path / "x.tsv", graph, graph.splits["test"])
    assert not (tmp_path / "x.tsv").exists()


def test_remarks_and_tables() -> None:
    case = small()
    pool = list(slow_pool(case, DEPTH, "filtered"))
    labels = dict.fromkeys(pool[:-1], 1) | {(2, 0, 3): 0, (6, 0, 6): 1}
    completion = done(case, labels)
    text = " ".join(remarks(completion, replace(Judgements(labels, 9), repeated=2, blank=3)))
    for part in (
        "2 judgements were repeated",
        "3 blank labels",
        "1 pooled triples are not decided",
        "1 seeds are judged false",
        "neither seeds nor pooled",
        "nothing was pooled",
    ):
        assert part in text
    table = depth_table([done(case, labels, depth) for depth in range(DEPTH + 1)])
    assert [row[0] for row in table.rows] == ["0", "1", "2", "3", "4"]
    assert remarks(done(case, {}, 0), Judgements({}, 0)) == []


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph with blanks in its labels, seeds, runs, their pool and most of its judgements."""
    write_case(tmp_path)
    words = ["--graph", tmp_path / "graph", "--seed-triples", tmp_path / "seed.tsv", "-o",
             tmp_path / "pool.tsv", tmp_path / "a.run", "--depth", 3]  # fmt: skip
    result = CliRunner().invoke(pool_command, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0
    pooled = [x.split("\t")[:3] for x in (tmp_path / "pool.tsv").read_text().splitlines()[1:]]
    judged = ["\t".join([*t, "YN"[i % 2]]) + "\n" for i, t in enumerate(pooled[:-2])]
    (tmp_path / "judged.tsv").write_text("".join(judged))
    return tmp_path


def run(folder: Path, *arguments: object, **files: str) -> str:
    names = {"seed_triples": "seed.tsv", "pool": "pool.tsv", "judgements": "judged.tsv"} | files
    words = ["--graph", folder / "graph", *arguments]
    for option, name in names.items():
        words += [f"--{option.replace('_', '-')}", folder / name]
    return call(complete_command, *words)[0]


def test_the_command_writes_what_the_library_says(folder: Path) -> None:
    table = json.loads(
        run(folder, "--write-qrels", folder / "q.txt", "--write-split", folder / "test.tsv",
            "--write-runs",
            folder / "runs", folder / "a.run", folder / "b.run", "--format", "json")
    )  # fmt: skip
    graph = kgtrec.read_graph(folder / "graph")
    split = read_triples(folder / "test.tsv", graph)
    judged = read_judgements(folder / "judged.tsv", graph)
    true = {t for t, label in judged.labels.items() if label == 1}
    seeds = {tuple(t) for t in read_triples(folder / "seed.tsv", graph).tolist()}
    assert {tuple(t) for t in split.tolist()} == true | seeds
    assert table["depths"]["3"]["added"] == len(true)
    assert table["depths"]["3"]["undecided"] == 2
    assert (
        table["shares"]["a"]["10"]["judged_percent"] > table["shares"]["b"]["10"]["judged_percent"]
    )
    qrels = read_qrels(folder / "q.txt")
    assert {label for own in qrels.values() for label in own.values()} == {1, 0, -1}
    from kgtrec.trec import evaluate, read_run, summarise

    for system in "ab":  # the written files give the printed values
        filtered = read_run(folder / "runs" / f"{system}.run")
        assert set(filtered) == set(qrels)
        names = ["P.10", "bpref", "infAP", "ndcg_cut.20", "rbp"]
        values = summarise(evaluate(qrels, filtered, names), names)
        printed = {name: table["intervals"][name][system]["value"] for name in values}
        assert printed == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_the_share_of_newly_annotated_positives_in_any_top(folder: Path, depth: int) -> None:
    """Counts again from the written files, line by line."""
    table = json.loads(
        run(folder, "--depth", depth, "--top", 1, "--top", 3, "--write-qrels", folder / "q.txt",
            "--write-runs", folder / "runs", folder / "a.run", folder / "b.run", "--format", "json")
    )  # fmt: skip
    run(folder, "--depth", 0, "--write-qrels", folder / "q0.txt")
    true, seeds = (
        {(q, d) for q, _, d, label in map(str.split, (folder / name).read_text().splitlines())
         if label == "1"} for name in ("q.txt", "q0.txt")
    )  # fmt: skip
    for system in "ab":
        lists: dict[str, list[tuple[int, str]]] = {}
        for line in (folder / "runs" / f"{system}.run").read_text().splitlines():
            question, _, entity, place, _, _ = line.split()
            lists.setdefault(question, []).append((int(place), entity))
        assert set(table["shares"][system]) == {"1", "3"}
        for top in (1, 3):
            first = [(q, e) for q, own in lists.items() for _, e in sorted(own)[:top]]
            added = sum(pair in true - seeds for pair in first)
            row = table["shares"][system][str(top)]
            assert row["candidates"] == len(first)
            assert row["added_percent"] == pytest.approx(100 * added / len(first))
    assert table["shares"]["a"]["3"]["added_percent"] > 0


def test_depth_rules_and_reverse_questions(folder: Path) -> None:
    text = (folder / "pool.tsv").read_text()
    (folder / "ruled.tsv").write_text(text.rstrip("\n") + "1-1:head\n")  # of the last triple
    labels = {}
    for name, options in (
        ("one", ("--depth", 1)), ("three", ()), ("reverse", ("--reverse",)),
        ("without", ("--no-rules",)),
    ):  # fmt: skip
        run(folder, "--write-qrels", folder / name, *options, pool="ruled.tsv")
        labels[name] = read_qrels(folder / name)
    assert set(labels["one"]) == set(labels["three"]) < set(labels["reverse"])
    assert sum(map(len, labels["one"].values())) < sum(map(len, labels["three"].values()))
    undecided = [[x for own in labels[name].values() for x in own.values()].count(-1)
                 for name in ("three", "without")]  # fmt: skip
    assert 0 < undecided[0] < undecided[1]


def test_the_command_refuses_bad_input(folder: Path) -> None:
    out = folder / "q.txt"
    for arguments, files, said in (
        (("--write-qrels", out), {"pool": "judged.tsv"}, "judged.tsv:1: header"),
        (("--write-qrels", out), {"seed_triples": "judged.tsv"}, "judged.tsv:1: 4 columns"),
        (("--write-qrels", out, "--depth", 9), {}, "depth 9 is out of range"),
        (("--write-qrels", folder / "pool.tsv"), {}, "would overwrite an input"),
        (("--write-qrels", out, "--write-split", out), {}, "would overwrite --write-qrels"),
        (("--write-runs", folder / "runs"), {}, "there are none"),
        (("--top", 5), {}, "--top and --within are about RUNs"),
    ):
        with pytest.raises(KgtrecError, match=said):
            run(folder, *arguments, **files)
        assert not out.exists()


# -- Pools with a judged sample --------------------------------------------------------------------


LABEL = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1)


TRIPLES = st.lists(st.tuples(LABEL, LABEL, LABEL), max_size=30)


def slow_draw(share: float, seed: int, triple: tuple[str, str, str]) -> bool:
    digest = hashlib.blake2b("\t".join([str(seed), *triple]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


@given(TRIPLES, st.floats(0.001, 1), st.integers(0, 9), st.floats(0.001, 1))
def test_what_is_drawn_depends_on_the_triple_alone(
    triples: list[tuple[str, str, str]], share: float, seed: int, other: float
) -> None:
    drawn = Draw(share, seed).takes(triples)
    assert drawn.tolist() == [slow_draw(share, seed, triple) for triple in triples]
    more = Draw(max(share, other), seed).takes(triples)
    assert (more >= drawn).all()  # a larger share keeps earlier draws


def test_a_draw_has_its_share_and_differs_by_seed() -> None:
    triples = [(str(i), "r", str(i % 7)) for i in range(20_000)]
    shares = [Draw(0.3, seed).takes(triples).mean() for seed in range(5)]
    assert np.abs(np.array(shares) - 0.3).max() < 4 * (0.21 / 20_000) ** 0.5
    both = (Draw(0.3, 0).takes(triples) & Draw(0.3, 1).takes(triples)).mean()
    assert both == pytest.approx(0.09, abs=0.01)  # independent of each other
    assert Draw(1.0).takes(triples).all()


def test_draws_are_named() -> None:
    assert read_draw(str(Draw(0.3, 7))) == Draw(0.3, 7)
    for text in ("rule", "sample=2,seed=1", "sample=0.3", "sample=0.3,seed=-1", "sample=e,seed=1"):
        assert read_draw(text) is None


@given(cases(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(0, 3))
def test_labels_of_the_sample_alone(case: Case, share: float, seed: int) -> None:
    pool = make_pool(case.lists(), case.questions, 4).sampled(share, seed)
    labels = {(h, r, t): (h + t) % 2 for h, r, t in pool.triples.tolist()}
    completion = complete(case.questions, pool, Judgements(labels, len(labels)))
    whole = labelled(completion)
    assert whole == labels | dict.fromkeys(case.seeds, 1)
    drawn = {t: slow_draw(share, seed, own) for t, own in
             zip(whole, shown_triples(case, completion.triples), strict=True)}  # fmt: skip
    assert labelled(completion.sample) == {t: x if drawn[t] else -1 for t, x in whole.items()}
    qrels = completion.sample.qrels()
    answered = qrels.of_answered()
    assert set(answered.ids) == {qrels.ids[q] for q in qrels.owner[qrels.labels == 1]}
    assert answered.offsets[-1] == len(answered.entities) == len(answered.labels)
    assert pool.at(2).draw == pool.draw
    drawn_rows = [int(slow_draw(share, seed, t)) for t in shown_triples(case, pool.triples)]
    assert pool.depth_table().rows[-1][3:] == (sum(drawn_rows), sum(drawn_rows))


def shown_triples(case: Case, triples: np.ndarray) -> list[tuple[str, str, str]]:
    e, r = case.graph.entities, case.graph.relations
    return [(e[h], r[p], e[t]) for h, p, t in triples.tolist()]


def test_pool_files_with_a_sample(tmp_path: Path) -> None:
    case, path = small(), tmp_path / "pool.tsv"
    pool = make_pool(case.lists(), case.questions, 4).sampled(0.5, 3)
    write_pool(path, pool)
    again, _ = read_pool(path, case.graph)
    assert again.draw == Draw(0.5, 3)
    assert again.drawn.tolist() == pool.drawn.tolist()
    assert 0 < pool.drawn.sum() < len(pool)
    assert [one.drawn for one in read_pooled(path)] == pool.drawn.tolist()

    text = path.read_text()
    for old, new, said in (
        ("\tin\n", "\tout\n", "'out' where the draw sample=0.5,seed=3 says 'in'"),
        ("sample=0.5,seed=3", "sample=0.5", "header 'head"),
        ("\tin\n", "\n", "8 columns instead of 9"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(FileError, match=said):
            read_pool(path, case.graph)
    path.write_text(text.replace("\tin\n", "\tmaybe\n", 1))
    with pytest.raises(FileError, match=r"sample=0\.5,seed=3: 'maybe'"):
        read_pooled(path)


# -- The commands ----------------------------------------------------------------------------------


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    """A graph with few splits' facts, seeds, and a run."""
    write_case(tmp_path, n_seeds=12, systems="a")
    return tmp_path


def is_true(triple: tuple[str, str, str]) -> bool:
    return sum(int(text.split()[1]) for text in triple) % 3 == 0


def test_from_a_sampled_pool_to_inferred_ap(sampled: Path) -> None:
    place = place_of(sampled)
    pool, judged, qrels = (sampled / name for name in ("pool.tsv", "judged.tsv", "sample.qrels"))
    shown, said = call(pool_command, *place, sampled / "a.run", "--depth", 8, "--sample", 0.6,
                       "--seed", 2, "-o", pool)  # fmt: skip
    assert "to judge" in shown
    assert " of them in the sample" in said
    _, said = call(judge_command, "sheets", pool, "--annotators", "anna", "-o", sampled / "sheets")
    sheet = read_sheet(sampled / "sheets" / "anna.tsv")
    pooled = read_pooled(pool)
    assert {item.triple for item in sheet.items} == {one.triple for one in pooled if one.drawn}
    assert f"{sum(not one.drawn for one in pooled):,} left out (rule, sample" in said
    answered = [
        item.__class__(*item.triple, label="NY"[is_true(item.triple)]) for item in sheet.items
    ]
    write_sheet(sampled / "anna.judged.tsv", answered)
    call(judge_command, "merge", sampled / "anna.judged.tsv", "-o", judged)
    printed, said = call(
        complete_command, *place, "--pool", pool, "--judgements", judged, "--write-sample-qrels",
            qrels,
        "--write-qrels", sampled / "all.qrels", "--write-runs", sampled / "runs", sampled / "a.run",
        "-m", "infAP", "-m", "map",
    )  # fmt: skip
    assert "infAP has no interval: it estimates" in said

    # Every pooled candidate and seed is in the qrels, labelled if it was drawn.
    drawn, whole = read_qrels(qrels), read_qrels(sampled / "all.qrels")
    seeds = [tuple(x.split("\t")) for x in (sampled / "seed.tsv").read_text().splitlines()]
    labels = {one.triple: slow_draw(0.6, 2, one.triple) for one in pooled}
    labels |= {seed: slow_draw(0.6, 2, seed) for seed in seeds}
    graph = kgtrec.read_graph(sampled / "graph")
    questions = graph.questions()
    counted = 0
    for name, side, entity, relation in zip(
        questions.ids,
        questions.side.tolist(),
        questions.entity.tolist(),
        questions.relation.tolist(),
        strict=True,
    ):
        known_entity, known_relation = graph.entities[entity], graph.relations[relation]
        expected = {}
        for (h, r, t), is_drawn in labels.items():
            if r == known_relation and known_entity == (h if side else t):
                true = (h, r, t) in seeds or is_true((h, r, t))
                answer = (t if side else h).replace(" ", "%20")
                expected[answer] = int(true) if is_drawn else -1
        if name not in whole:
            continue
        assert set(whole[name]) == set(expected)
        assert (1 in expected.values()) == (name in drawn)
        if name in drawn:
            assert drawn[name] == expected
            counted += 1
    assert counted == len(drawn)
    assert 0 < counted < len(whole)
    assert f"{len(whole) - counted} of {len(whole)} questions have no true triple" in said

    output, _ = call(eval_command, "-m", "infAP", qrels, sampled / "runs" / "a.run")
    listed = (sampled / "runs" / "a.run").read_text().splitlines()
    values = []
    for name, own in drawn.items():
        order = [line.split()[2] for line in listed if line.split()[0] == name]
        values.append(inferred_ap([own.get(document) for document in order], own))
    assert float(output.split()[-1]) == pytest.approx(sum(values) / len(values), abs=5e-5)
    row = next(line for line in printed.splitlines() if line.startswith("infAP"))
    assert float(row.split()[2]) == pytest.approx(sum(values) / len(values), abs=5e-5)


def inferred_ap(order: list[int | None], judged: dict[str, int]) -> float:
    """Yilmaz and Aslam 2006, with trec_eval's epsilon, by the definition."""
    total = 0.0
    for k, label in enumerate(order, start=1):
        if label != 1:
            continue
        above = order[: k - 1]
        pooled = sum(one is not None for one in above)
        true, false = above.count(1), above.count(0)
        rest = 0.0
        if k > 1:
            rest = (k - 1) / k * pooled / (k - 1) * (true + 1e-5) / (true + false + 2e-5)
        total += 1 / k + rest
    return total / list(judged.values()).count(1)


def test_bad_samples_are_refused(sampled: Path) -> None:
    place = place_of(sampled)
    out = sampled / "out.tsv"
    for more, said in (
        (("--sample", 0), "sample 0.0 is not a share"),
        (("--seed", 1), "--seed needs --sample"),
    ):
        with pytest.raises(KgtrecError, match=said):
            call(pool_command, *place, sampled / "a.run", "-o", out, *more)
    with pytest.raises(AssertionError, match="'--seed': -1 is not in the range"):
        call(pool_command, *place, sampled / "a.run", "-o", out, "--sample", 0.5, "--seed", -1)
    call(pool_command, *place, sampled / "a.run", "-o", sampled / "pool.tsv")
    (sampled / "judged.tsv").write_text((sampled / "seed.tsv").read_text().replace("\n", "\tY\n"))
    rest = ["--pool", sampled / "pool.tsv", "--judgements", sampled / "judged.tsv"]
    for more, said in (
        (("--write-sample-qrels", out), "needs a pool with a sample"),
        (("--within", 5), "there are none"),
        (("-m", "map"), "there are none"),
        (("-m", "mapp", sampled / "a.run"), "unknown measure 'mapp'"),
    ):
        with pytest.raises(KgtrecError, match=said):
            call(complete_command, *place, *rest, *more)
        assert not out.exists()
