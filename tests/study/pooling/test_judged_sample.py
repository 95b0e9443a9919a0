"""Pools of which a sample is judged: the draw, the files, and the way to infAP."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import Case, cases, write_case

import kgtrec
from kgtrec.cli.complete import command as complete_command
from kgtrec.cli.eval.command import command as eval_command
from kgtrec.cli.judge import command as judge_command
from kgtrec.cli.pool import command as pool_command
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.study.judging.assignment import read_pooled
from kgtrec.study.judging.sheets import read_sheet, write_sheet
from kgtrec.study.pooling.completion import complete
from kgtrec.study.pooling.pool import Draw, make_pool, read_draw, read_pool, write_pool
from kgtrec.study.pooling.triple_files import Judgements
from kgtrec.trec.files.run import read_qrels

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
    assert (more >= drawn).all()  # a larger share keeps what was drawn


def test_a_draw_has_its_share_and_differs_by_seed() -> None:
    triples = [(str(i), "r", str(i % 7)) for i in range(20_000)]
    shares = [Draw(0.3, seed).takes(triples).mean() for seed in range(5)]
    assert np.abs(np.array(shares) - 0.3).max() < 4 * (0.21 / 20_000) ** 0.5
    both = (Draw(0.3, 0).takes(triples) & Draw(0.3, 1).takes(triples)).mean()
    assert both == pytest.approx(0.09, abs=0.01)  # independent of each other
    assert Draw(1.0).takes(triples).all()


def test_draws_are_named_and_checked() -> None:
    assert read_draw(str(Draw(0.3, 7))) == Draw(0.3, 7)
    for text in ("rule", "sample=2,seed=1", "sample=0.3", "sample=0.3,seed=-1", "sample=e,seed=1"):
        assert read_draw(text) is None
    for share, seed in ((0, 1), (1.01, 1), (float("nan"), 1), (True, 1), (0.5, -1), (0.5, True)):
        with pytest.raises(UsageError, match=r"of the sample is below 0|give the share"):
            Draw(share, seed)


@given(cases(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(0, 3))
def test_labels_of_the_sample_alone(case: Case, share: float, seed: int) -> None:
    pool = make_pool(case.lists(), case.questions, 4).sampled(share, seed)
    labels = {(h, r, t): (h + t) % 2 for h, r, t in pool.triples.tolist()}
    completion = complete(case.questions, pool, Judgements(labels, len(labels)))
    whole = {
        tuple(map(int, t)): int(x)
        for t, x in zip(completion.triples, completion.labels, strict=True)
    }
    assert whole == labels | dict.fromkeys(case.seeds, 1)
    names = case.graph.entities, case.graph.relations, case.graph.entities
    for triple, label in zip(
        completion.sample.triples.tolist(), completion.sample.labels, strict=True
    ):
        shown = tuple(own[number] for own, number in zip(names, triple, strict=True))
        drawn = slow_draw(share, seed, shown)
        assert label == (whole[tuple(triple)] if drawn else -1)
    answered = completion.sample.qrels().of_answered()
    assert set(answered.ids) == {
        name
        for name, start, stop in zip(
            completion.qrels().ids,
            completion.qrels().offsets,
            completion.qrels().offsets[1:],
            strict=False,
        )
        if (completion.sample.qrels().labels[start:stop] == 1).any()
    }
    assert answered.offsets[-1] == len(answered.entities) == len(answered.labels)
    assert pool.at(2).draw == pool.draw
    drawn_rows = [int(slow_draw(share, seed, t)) for t in shown_triples(case, pool.triples)]
    assert pool.depth_table().rows[-1][3:] == (sum(drawn_rows), sum(drawn_rows))


def shown_triples(case: Case, triples: np.ndarray) -> list[tuple[str, str, str]]:
    e, r = case.graph.entities, case.graph.relations
    return [(e[h], r[p], e[t]) for h, p, t in triples.tolist()]


def test_a_pool_without_a_sample_has_none() -> None:
    case = small_case()
    completion = complete(
        case.questions, make_pool(case.lists(), case.questions, 3), Judgements({}, 0)
    )
    with pytest.raises(UsageError, match="no sample was drawn"):
        _ = completion.sample


def small_case() -> Case:
    rows = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 0]])
    graph = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=7)
    random = np.random.default_rng(1)
    scores = {name: random.random((len(graph.questions()), 7)) for name in "ab"}
    return Case(graph, [(2, 0, 3)], scores)


def test_pool_files_with_a_sample(tmp_path: Path) -> None:
    case, path = small_case(), tmp_path / "pool.tsv"
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
        ("\tin\n", "\n", "8 columns in place of 9"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(FileError, match=said):
            read_pool(path, case.graph)
    path.write_text(text.replace("\tin\n", "\tmaybe\n", 1))
    with pytest.raises(FileError, match=r"sample=0\.5,seed=3: 'maybe'"):
        read_pooled(path)


# -- The commands ----------------------------------------------------------------------------------


def call(command: object, *arguments: object) -> tuple[str, str]:
    words = [str(word) for word in arguments]
    done = CliRunner().invoke(command, words, catch_exceptions=False)  # type: ignore[arg-type]
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph with few splits' facts, seeds, and a run."""
    write_case(tmp_path, n_seeds=12, systems="a")
    return tmp_path


def is_true(triple: tuple[str, str, str]) -> bool:
    return sum(int(text.split()[1]) for text in triple) % 3 == 0


def test_from_a_sampled_pool_to_inferred_ap(folder: Path) -> None:
    place = ["--graph", folder / "graph", "--seed-triples", folder / "seed.tsv"]
    pool, judged, qrels = (folder / name for name in ("pool.tsv", "judged.tsv", "sample.qrels"))
    shown, said = call(pool_command, *place, folder / "a.run", "--depth", 8, "--sample", 0.6,
                       "--seed", 2, "-o", pool)  # fmt: skip
    assert "to judge" in shown
    assert " of them in the sample" in said
    _, said = call(judge_command, "sheets", pool, "--annotators", "anna", "-o", folder / "sheets")
    sheet = read_sheet(folder / "sheets" / "anna.tsv")
    pooled = read_pooled(pool)
    assert {item.triple for item in sheet.items} == {one.triple for one in pooled if one.drawn}
    assert f"{sum(not one.drawn for one in pooled):,} left out (rule, sample" in said
    answered = [
        item.__class__(*item.triple, label="NY"[is_true(item.triple)]) for item in sheet.items
    ]
    write_sheet(folder / "anna.judged.tsv", answered)
    call(judge_command, "merge", folder / "anna.judged.tsv", "-o", judged)
    printed, said = call(
        complete_command, *place, "--pool", pool, "--judgements", judged, "--write-sample-qrels",
            qrels,
        "--write-qrels", folder / "all.qrels", "--write-runs", folder / "runs", folder / "a.run",
        "-m", "infAP", "-m", "map",
    )  # fmt: skip
    assert "infAP has no interval: an estimate" in said

    # Every pooled candidate and seed is in the qrels, labelled if it was drawn.
    sampled, whole = read_qrels(qrels), read_qrels(folder / "all.qrels")
    seeds = [tuple(x.split("\t")) for x in (folder / "seed.tsv").read_text().splitlines()]
    labels = {one.triple: slow_draw(0.6, 2, one.triple) for one in pooled}
    labels |= {seed: slow_draw(0.6, 2, seed) for seed in seeds}
    graph = kgtrec.read_graph(folder / "graph")
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
        for (h, r, t), drawn in labels.items():
            if r == known_relation and known_entity == (h if side else t):
                true = (h, r, t) in seeds or is_true((h, r, t))
                answer = (t if side else h).replace(" ", "%20")
                expected[answer] = int(true) if drawn else -1
        if name not in whole:
            continue
        assert set(whole[name]) == set(expected)
        assert (1 in expected.values()) == (name in sampled)
        if name in sampled:
            assert sampled[name] == expected
            counted += 1
    assert counted == len(sampled)
    assert 0 < counted < len(whole)
    assert f"{len(whole) - counted} of {len(whole)} questions have no true triple" in said

    output, _ = call(eval_command, "-m", "infAP", qrels, folder / "runs" / "a.run")
    listed = (folder / "runs" / "a.run").read_text().splitlines()
    values = []
    for name, own in sampled.items():
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


def test_bad_samples_are_refused(folder: Path) -> None:
    place = ["--graph", folder / "graph", "--seed-triples", folder / "seed.tsv"]
    out = folder / "out.tsv"
    for more, said in (
        (("--sample", 0), "sample 0.0: give the share"),
        (("--sample", 1.5), "sample 1.5: give the share"),
        (("--seed", 1), "--seed needs --sample"),
    ):
        with pytest.raises(KgtrecError, match=said):
            call(pool_command, *place, folder / "a.run", "-o", out, *more)
    with pytest.raises(KgtrecError, match="seed -1 of the sample is below 0"):
        Draw(0.5, -1)
    with pytest.raises(AssertionError, match="'--seed': -1 is not in the range"):
        call(pool_command, *place, folder / "a.run", "-o", out, "--sample", 0.5, "--seed", -1)
    call(pool_command, *place, folder / "a.run", "-o", folder / "pool.tsv")
    (folder / "judged.tsv").write_text((folder / "seed.tsv").read_text().replace("\n", "\tY\n"))
    rest = ["--pool", folder / "pool.tsv", "--judgements", folder / "judged.tsv"]
    for more, said in (
        (("--write-sample-qrels", out), "needs a pool with a sample"),
        (("--within", 5), "there are none"),
        (("-m", "map"), "there are none"),
        (("-m", "mapp", folder / "a.run"), "unknown measure 'mapp'"),
        (("-m", "num_rel", folder / "a.run"), "has no mean"),
        (("--within", -1, folder / "a.run"), "within -1 is below 0"),
    ):
        with pytest.raises(KgtrecError, match=said):
            call(complete_command, *place, *rest, *more)
        assert not out.exists()
