"""Judgements, samples, splits, qrels and intervals against plain Python; `kgtrec complete`."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
from refusals import refused
from study_cases import N_ENTITIES, listed
from trec_oracle import measures

import kgtrec
from kgtrec import trec
from kgtrec.cli.eval import command as eval_command
from kgtrec.cli.judge import command as judge_command
from kgtrec.cli.pool import complete as complete_command
from kgtrec.cli.pool import pool as pool_command
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.study.judging.sheets import read_pooled, read_sheet, write_sheet
from kgtrec.study.pooling.completion import Completion, complete, remarks
from kgtrec.study.pooling.edited_files import (
    Judgements,
    read_judgements,
    read_triples,
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
JudgedCase = tuple[Case, dict[Triple, int]]


@st.composite
def judged_cases(draw: st.DrawFn) -> JudgedCase:
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


@given(
    judged_case=judged_cases(),
    depth=st.integers(0, DEPTH),
    cutoff=st.integers(1, 6),
    data=st.data(),
)
def test_labels_complete_split_qrels_and_shares(
    judged_case: JudgedCase,
    depth: int,
    cutoff: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    case, labels = judged_case
    pool = make_pool(case.lists(), case.questions, DEPTH)
    rule = st.sampled_from(["", "1-1:head"])
    rules = data.draw(st.lists(rule, min_size=len(pool), max_size=len(pool)))
    completion, expected = done(case, labels, depth, rules=rules), slow_labels(case, labels, depth)
    pooled = [tuple(t) for t in pool.triples.tolist()]
    fired = {t for t, rule in zip(pooled, rules, strict=True) if rule and t in expected}
    by_rule = {t for t in fired if t not in labels or labels[t] == -1}
    expected |= dict.fromkeys(by_rule, 0)

    assert labelled(completion) == expected
    true = {t for t, label in expected.items() if label == 1}
    assert {tuple(t) for t in completion.split.tolist()} == true
    assert [tuple(t) for t in completion.split.tolist()][: len(case.seeds)] == case.seeds
    reverse = set(asked_by(sorted(true))) - set(asked_by(case.seeds))
    assert {(("head", "tail")[side], *rest) for side, *rest in completion.reverse} == reverse
    assert completion.unused == len(set(labels) - set(expected))
    assert completion.doubted == sum(labels.get(t) == 0 for t in case.seeds)
    assert completion.overruled == sum(labels.get(t) == 1 for t in fired)
    assert completion.counts() == {
        "triples": len(expected), "true": len(true), "seeds": len(case.seeds),
        "added": len(true) - len(case.seeds),
        "false": sum(label == 0 for label in expected.values()), "false by rule": len(by_rule),
        "undecided": sum(label == -1 for label in expected.values()),
        "questions": len(set(asked_by(sorted(true)))), "never pooled": len(reverse),
    }  # fmt: skip

    number = dict(zip(asked_by(listed(case.graph, "test")), case.graph.questions("test").ids,
                      strict=True))  # fmt: skip
    path = tmp_path_factory.mktemp("q") / "qrels.txt"
    for with_reverse in (False, True):
        questions = {*asked_by(case.seeds)} | (reverse if with_reverse else set())
        by_question: dict[str, dict[str, int]] = {}
        for q, e in itertools.product(questions & {*number}, range(N_ENTITIES)):
            if triple_of(q, e) in expected:
                by_question.setdefault(number[q], {})[str(e)] = expected[triple_of(q, e)]
        qrels = completion.qrels(with_reverse)
        qrels.write(path)
        assert read_qrels(path) == by_question
        assert qrels.nameless == sum(q not in number for q in questions)

    slow, kinds = slow_lists(case, "filtered"), {1: "added", 0: "false", -1: "unjudged"}
    for lists in case.lists():
        due = dict.fromkeys(("seed", "added", "false", "unjudged"), 0)
        for question, ranked in slow[lists.name].items():
            for triple in (triple_of(question, entity) for entity, _ in ranked[:cutoff]):
                kind = kinds[expected.get(triple, -1)]
                due["seed" if triple in case.seeds else kind] += 1
        assert shares(lists, completion, cutoff) == due
        row = next(r for r in share_table([lists], completion, [cutoff]).rows)
        assert math.isclose(row[-1] + row[-2], 100)


# -- Shares and intervals --------------------------------------------------------------------------


def values_of(world: dict[Triple, int], here: list[Triple]) -> dict[str, Any]:
    """Measures of a list of triples, by their definitions."""
    own = [world.get(triple) for triple in here]
    return measures(own, [*world.values()], cuts=(10, 20), points=(), multiples=(), typed=())


@examples(0.5)
@given(judged_cases(), st.integers(1, 4), st.integers(0, 4))
def test_intervals_are_the_extremes_of_all_labellings(
    judged_case: JudgedCase, depth: int, within: int
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
        ends: dict[str, list[tuple[float, ...]]] = {}
        for number, question in enumerate(asked_by(case.seeds)):
            here = [triple_of(question, e) for e in entities[lists.name][number].tolist()]
            triples = [triple_of(question, e) for e in range(N_ENTITIES)]
            high = {
                triple_of(question, e)
                for own in entities.values() for e in own[number][:within].tolist()
            }  # fmt: skip
            opened = [
                t for t in triples if label_of.get(t) == -1 or (t in high and t not in label_of)
            ]
            judged = {t: label_of[t] for t in triples if label_of.get(t, -1) >= 0}
            labellings = itertools.product((0, 1), repeat=len(opened))
            worlds = [judged | dict(zip(opened, filled, strict=True)) for filled in labellings]
            now = values_of(judged, here)
            condensed = values_of(judged, [t for t in here if t in judged])
            possible = [values_of(world, here) for world in worlds]
            for name in MEASURES[:-1]:
                low, top = (end(one[name] for one in possible) for end in (min, max))
                if name == "rbp":  # it leaves all unjudged ones open
                    low, top = now[name], now[name] + now["rbp_resid"]
                ends.setdefault(name, []).append((now[name], condensed[name], low, top))
        results = intervals(lists, completion, candidates=candidates)
        for name, rows in ends.items():
            one = results[name]
            ours = one.value, one.condensed, one.low, one.high
            assert ours == pytest.approx(np.mean(rows, axis=0), abs=1e-12), name
        assert math.isnan(results["infAP"].high)
        assert "it estimates" in results["infAP"].reason


def test_decided_pairs() -> None:
    none = JudgedInterval(math.nan, 0.5, 0.5, math.nan, "an estimate")
    by_system = {
        name: {"bpref": JudgedInterval(low, value, value, high), "infAP": none}
        for name, low, value, high in (("a", 0.5, 0.5, 0.6), ("b", 0.6, 0.6, 0.7),
                                       ("c", 0.65, 0.6, 0.9))
    }  # fmt: skip
    (notes,) = verdicts(by_system)
    assert notes.startswith("pairs of runs (of 3) ")
    assert notes.endswith("can change: bpref 1")  # a touches b, b meets c
    assert verdicts({"a": by_system["a"]}) == []
    head, outside, estimate = open_remarks(by_system, np.arange(7), 20)
    assert "7 candidates without a label, in the pool or the first 20 of a run's list" in head
    assert outside.startswith("bpref of c is outside its interval")
    assert estimate == "infAP has no interval: an estimate"
    assert "in the pool," in open_remarks(by_system, np.arange(7), 0)[0]
    assert open_remarks({}, np.arange(7), 0) == []


# -- Bad calls and files ---------------------------------------------------------------------------


test_wrong_calls_are_refused = refused(
    ("depth", lambda: done(small(), {}, depth=5), UsageError, ("this pool has 0 to 4",)),
    ("rules", lambda: done(small(), {}, rules=["x"] * 99), UsageError, ("rules for",)),
    ("within", lambda: open_candidates(small().lists(), done(small(), {}), -1), UsageError,
     ("within -1 is below 0",)),
    *(
        (name, lambda name=name: intervals(small().lists()[0], done(small(), {}), [name]),
         UsageError, (words,))
        for name, words in (("num_rel", "no mean"), ("relstring", "no mean"), ("mapp", "unknown"))
    ),
    ("no file", lambda: read_judgements([], small().graph), UsageError, ("no judgement file",)),
    ("blank", lambda: read_judgements("x", small().graph, "Y"), UsageError, ("blank='Y'",)),
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
    (tmp_path / "other.tsv").write_text("1\t0\t1\tN\n0\t0\t1\tN\n")
    with pytest.raises(FileError, match=r"other.tsv:2: .* otherwise in .*judged.tsv:1"):
        read_judgements([tmp_path / "judged.tsv", tmp_path / "other.tsv"], small().graph)
    blank = read(tmp_path, "0\t0\t1\t\n0\t0\t2\t \n0\t0\t3\tY\n", "N")
    assert (blank.labels, blank.blank) == ({(0, 0, 1): 0, (0, 0, 2): 0, (0, 0, 3): 1}, 2)


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
    assert remarks(done(case, {}, 0), Judgements({}, 0)) == []
    told = shares(case.lists()[0], done(case, dict.fromkeys(pool, 1), 1), N_ENTITIES)
    assert told["unjudged"] > told["added"]  # most candidates are below a pool of depth 1


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph with blanks in its labels, seeds, runs, their pool and most of its judgements."""
    write_case(tmp_path)
    call(pool_command, *place_of(tmp_path), "-o", tmp_path / "pool.tsv", tmp_path / "a.run",
         "--depth", 3)  # fmt: skip
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
            "--write-runs", folder / "runs", "--top", 1, "--top", 10,
            folder / "a.run", folder / "b.run", "--format", "json")
    )  # fmt: skip
    graph = kgtrec.read_graph(folder / "graph")
    split = read_triples(folder / "test.tsv", graph)
    judged = read_judgements(folder / "judged.tsv", graph)
    true = {t for t, label in judged.labels.items() if label == 1}
    seeds = {tuple(t) for t in read_triples(folder / "seed.tsv", graph).tolist()}
    assert {tuple(t) for t in split.tolist()} == true | seeds
    assert table["depths"]["3"]["added"] == len(true)
    assert table["depths"]["3"]["undecided"] == 2
    assert set(table["shares"]["a"]) == {"1", "10"}
    qrels = read_qrels(folder / "q.txt")
    assert {label for own in qrels.values() for label in own.values()} == {1, 0, -1}

    for system in "ab":  # the written files give the printed values
        filtered = trec.read_run(folder / "runs" / f"{system}.run")
        names = ["P.10", "bpref", "infAP", "ndcg_cut.20", "rbp"]
        values = trec.summarise(trec.evaluate(qrels, filtered, names), names)
        printed = {name: table["intervals"][name][system]["value"] for name in values}
        assert printed == pytest.approx(values, abs=1e-12)


def test_depth_rules_and_reverse_questions(folder: Path) -> None:
    text = (folder / "pool.tsv").read_text()
    (folder / "ruled.tsv").write_text(text.rstrip("\n") + "1-1:head\n")  # of the last triple
    labels = {}
    for name, options in {
        "one": ("--depth", 1), "three": (), "reverse": ("--reverse",), "without": ("--no-rules",),
    }.items():  # fmt: skip
        run(folder, "--write-qrels", folder / name, *options, pool="ruled.tsv")
        labels[name] = read_qrels(folder / name)
    assert set(labels["one"]) == set(labels["three"]) < set(labels["reverse"])
    assert sum(map(len, labels["one"].values())) < sum(map(len, labels["three"].values()))
    undecided = [[x for own in labels[name].values() for x in own.values()].count(-1)
                 for name in ("three", "without")]  # fmt: skip
    assert 0 < undecided[0] < undecided[1]


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
    for text in ("rule", "sample=2,seed=1", "sample=0.3", "sample=0.3,seed=-1", "sample=e,seed=1"):
        assert read_draw(text) is None
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
    """A graph, seeds, and a run."""
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
    sheet, pooled = read_sheet(sampled / "sheets" / "anna.tsv"), read_pooled(pool)
    assert {item.triple for item in sheet.items} == {one.triple for one in pooled if one.drawn}
    assert f"{sum(not one.drawn for one in pooled):,} left out (rule, sample" in said
    answered = [replace(item, label="NY"[is_true(item.triple)]) for item in sheet.items]
    write_sheet(sampled / "anna.judged.tsv", answered)
    call(judge_command, "merge", sampled / "anna.judged.tsv", "-o", judged)
    printed, said = call(
        complete_command, *place, "--pool", pool, "--judgements", judged,
        "--write-sample-qrels", qrels, "--write-qrels", sampled / "all.qrels",
        "--write-runs", sampled / "runs", sampled / "a.run", "-m", "infAP", "-m", "map",
    )  # fmt: skip
    assert "infAP has no interval: it estimates" in said

    # Every pooled candidate and seed is in the qrels, labelled if it was drawn.
    drawn, whole = read_qrels(qrels), read_qrels(sampled / "all.qrels")
    assert 0 < len(drawn) < len(whole)
    for name, own in drawn.items():
        assert own == {d: r if own[d] >= 0 else -1 for d, r in whole[name].items()}
        assert 1 in own.values()
    assert {r for own in drawn.values() for r in own.values()} == {-1, 0, 1}
    assert f"{len(whole) - len(drawn)} of {len(whole)} questions have no true triple" in said

    output, _ = call(eval_command, "-m", "infAP", qrels, sampled / "runs" / "a.run")
    lines = [line.split() for line in (sampled / "runs" / "a.run").read_text().splitlines()]
    values = []
    for name, own in drawn.items():
        order = [own.get(line[2]) for line in lines if line[0] == name]
        values.append(measures(order, [*own.values()])["infAP"])
    assert float(output.split()[-1]) == pytest.approx(sum(values) / len(values), abs=5e-5)
    row = next(line for line in printed.splitlines() if line.startswith("infAP"))
    assert float(row.split()[2]) == pytest.approx(sum(values) / len(values), abs=5e-5)


def test_bad_options_are_refused(folder: Path) -> None:
    out, place, a = folder / "out.tsv", place_of(folder), folder / "a.run"
    pool = (pool_command, *place, a, "-o", out)
    rest = (complete_command, *place, "--judgements", folder / "judged.tsv", "--pool")
    own = (*rest, folder / "pool.tsv")
    for words, error, said in (
        ((*pool, "--sample", 0), KgtrecError, "sample 0.0 is not a share"),
        ((*pool, "--seed", 1), KgtrecError, "--seed needs --sample"),
        ((*pool, "--sample", 0.5, "--seed", -1), AssertionError, "-1 is not in the range"),
        ((*own, "--write-sample-qrels", out), KgtrecError, "needs a pool with a sample"),
        ((*own, "-m", "map"), KgtrecError, "there are none"),
        ((*own, "-m", "mapp", a), KgtrecError, "unknown measure 'mapp'"),
        ((*rest, folder / "judged.tsv", "--write-qrels", out), KgtrecError, "judged.tsv:1: header"),
        ((*own, "--write-qrels", out, "--depth", 9), KgtrecError, "depth 9 is out of range"),
        ((*own, "--write-qrels", folder / "pool.tsv"), KgtrecError, "would overwrite an input"),
        (
            (*own, "--write-qrels", out, "--write-split", out),
            KgtrecError,
            "would overwrite --write",
        ),
        ((*own, "--write-runs", folder / "runs"), KgtrecError, "there are none"),
    ):
        with pytest.raises(error, match=said):
            call(*words)
        assert not out.exists()
