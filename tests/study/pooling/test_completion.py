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

import kgtrec
from kgtrec import trec
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


@given(judged_cases(), st.integers(0, DEPTH), st.integers(1, 6))
def test_labels_complete_split_and_shares(judged_case: JudgedCase, depth: int, cutoff: int) -> None:
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


@given(judged_case=judged_cases(), reverse=st.booleans())
def test_qrels_and_their_file(
    judged_case: JudgedCase,
    reverse: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    case, labels = judged_case
    completion, expected = done(case, labels), slow_labels(case, labels, DEPTH)
    names = case.graph.questions("test").ids
    number = {q: names[i] for i, q in enumerate(asked_by(listed(case.graph, "test")))}
    true = sorted(t for t, label in expected.items() if label == 1)
    questions = set(asked_by(case.seeds)) | (set(asked_by(true)) if reverse else set())
    by_question: dict[str, dict[str, int]] = {}
    for q in questions & set(number):
        for e in range(N_ENTITIES):
            if triple_of(q, e) in expected:
                by_question.setdefault(number[q], {})[str(e)] = expected[triple_of(q, e)]

    qrels = completion.qrels(reverse)
    path = tmp_path_factory.mktemp("q") / "qrels.txt"
    qrels.write(path)
    assert read_qrels(path) == by_question
    assert qrels.nameless == sum(q not in number for q in questions)


@given(judged_cases(), st.data())
def test_rules_speak_where_no_judge_has(judged_case: JudgedCase, data: st.DataObject) -> None:
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
            own = [judged.get(t) for t in here]
            unjudged = sum(0.1 * 0.9**i for i, r in enumerate(own) if r is None)
            residual = unjudged + 0.9 ** len(own) if None in own else 0.0
            for name in MEASURES[:-1]:
                possible = [value(name, *apart(world, here)) for world in worlds]
                others = apart(judged, here)[1]
                now = value(name, own, others)
                condensed = value(name, [r for r in own if r is not None], others)
                low, top = min(possible), max(possible)
                if name == "rbp":  # it leaves all unjudged ones open
                    low, top = now, now + residual
                ends.setdefault(name, []).append((now, condensed, low, top))
        results = intervals(lists, completion, candidates=candidates)
        for name, rows in ends.items():
            one = results[name]
            ours = one.value, one.condensed, one.low, one.high
            assert ours == pytest.approx(np.mean(rows, axis=0), abs=1e-12), name
        assert math.isnan(results["infAP"].high)
        assert "it estimates" in results["infAP"].reason


def apart(world: dict[Triple, int], here: list[Triple]) -> tuple[list[int | None], list[int]]:
    """Labels of a list, and those outside it."""
    return [world.get(t) for t in here], [r for t, r in world.items() if t not in here]


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


test_wrong_calls_are_refused = refused(
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
    judged_of = {name: rows["10"]["judged_percent"] for name, rows in table["shares"].items()}
    assert judged_of["a"] > judged_of["b"]
    qrels = read_qrels(folder / "q.txt")
    assert {label for own in qrels.values() for label in own.values()} == {1, 0, -1}

    for system in "ab":  # the written files give the printed values
        filtered = trec.read_run(folder / "runs" / f"{system}.run")
        assert set(filtered) == set(qrels)
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
        values.append(inferred_ap(order, own))
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
    out, place = sampled / "out.tsv", place_of(sampled)
    (sampled / "judged.tsv").write_text((sampled / "seed.tsv").read_text().replace("\n", "\tY\n"))
    pool = (pool_command, *place, sampled / "a.run", "-o")
    call(*pool, sampled / "pool.tsv")
    rest = (complete_command, *place, "--pool", sampled / "pool.tsv", "--judgements",
            sampled / "judged.tsv")  # fmt: skip
    for words, error, said in (
        ((*pool, out, "--sample", 0), KgtrecError, "sample 0.0 is not a share"),
        ((*pool, out, "--seed", 1), KgtrecError, "--seed needs --sample"),
        ((*pool, out, "--sample", 0.5, "--seed", -1), AssertionError, "-1 is not in the range"),
        ((*rest, "--write-sample-qrels", out), KgtrecError, "needs a pool with a sample"),
        ((*rest, "-m", "map"), KgtrecError, "there are none"),
        ((*rest, "-m", "mapp", sampled / "a.run"), KgtrecError, "unknown measure 'mapp'"),
    ):
        with pytest.raises(error, match=said):
            call(*words)
        assert not out.exists()
