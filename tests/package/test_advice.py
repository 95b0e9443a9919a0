"""Advice of messages is followed on the input that caused the message, and leads to what is right.

Every piece of advice in the package's messages is followed by a row here, by a recorded call
(golden/cli/advice.txt and others), or by a test that `ELSEWHERE` names.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import advice as advice_in_texts
import numpy as np
import pytest
from graph_files import lines, write
from refusals import each_row

import kgtrec
from kgtrec import cluster, trec
from kgtrec.errors import FileError
from kgtrec.integrations.embeddings import load_factors

Facts = dict[str, list[tuple[str, ...]]]

RIGHT: Facts = {
    "train": [("ann", "knows", "bob"), ("bob", "likes", "cid"), ("cid", "knows", "dan")],
    "valid": [("ann", "likes", "cid")],
    "test": [("bob", "knows", "dan")],
}
NUMBERS = {"ann": "0", "bob": "1", "cid": "2", "dan": "3", "knows": "0", "likes": "1"}
ENTITIES, RELATIONS = ["ann", "bob", "cid", "dan"], ["knows", "likes"]


def texts(pattern: str = "{}.txt", separator: str = "\t", further: str = "") -> dict[str, str]:
    """A file per split: facts, each with the text `further` behind it; {} is its number."""
    rows_of = {
        split: [(*row[:2], row[2] + further.format(at)) for at, row in enumerate(rows, 5)]
        for split, rows in RIGHT.items()
    }
    return {pattern.format(split): lines(rows, separator) for split, rows in rows_of.items()}


def numbers(order: str) -> dict[str, str]:
    """A file per split: numbers in this order of columns."""
    at = ["hrt".index(letter) for letter in order]
    return {
        f"{split}.txt": lines(tuple(NUMBERS[row[i]] for i in at) for row in rows)
        for split, rows in RIGHT.items()
    }


def counted(files: dict[str, str]) -> dict[str, str]:
    """OpenKE's files: a count, then lines."""
    return {
        name.replace(".txt", "2id.txt"): f"{text.count(chr(10))}\n{text}".replace("\t", " ")
        for name, text in files.items()
    } | {
        "entity2id.txt": "4\n" + "".join(f"{e}\t{NUMBERS[e]}\n" for e in ENTITIES),
        "relation2id.txt": "2\n" + "".join(f"{r}\t{NUMBERS[r]}\n" for r in RELATIONS),
    }


def dictionaries() -> dict[str, str]:
    """``entities.dict`` and ``relations.dict``."""
    names = {"entities.dict": ENTITIES, "relations.dict": RELATIONS}
    return {file: "".join(f"{NUMBERS[x]}\t{x}\n" for x in own) for file, own in names.items()}


def by_tail() -> dict[str, str]:
    """A file per split: head, tail, relation."""
    return {f"{split}.txt": lines((h, t, r) for h, r, t in rows) for split, rows in RIGHT.items()}


COUNTED = {
    "entity2id.txt": "4\nann 0\nbob 1\ncid 2\ndan 3\n",
    "relation2id.txt": "2\nknows 0\nlikes 1\n",
}

ADVICE = [  # the declaration of a folder, its files, the declaration that the message suggests
    ("", texts("{}.csv", ","), "csv,hrt:DIR"),
    ("", texts(further="\t201{}"), "timed:DIR"),
    ("", texts(further="\tsince\t201{}"), "statements:DIR"),
    ("", texts() | {"facts.txt": "dan\tlikes\tann\n"}, "neural-lp:DIR"),
    ("", texts() | {"facts.txt": "dan\tlikes\tann\n"}, "tsv:DIR"),
    ("", texts() | {"graph.txt": "dan\tlikes\tann\n"}, "tsv:DIR"),
    ("", counted(numbers("hrt")), "openke,hrt:DIR"),
    ("dgl-ke:", numbers("hrt") | dictionaries(), "dgl-ke,hrt:DIR"),
    ("", texts("{}.txt") | dictionaries(), "rotate:DIR"),
    ("", by_tail() | dictionaries(), "rotate,htr:DIR"),
    ("", by_tail() | COUNTED, "tsv,htr:DIR"),
]


def messages(place: str) -> tuple[Facts | None, list[str]]:
    """The facts of a folder by label, if it can be read, and what kgtrec says on it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            graph = kgtrec.read_graph(place)
        except FileError as error:
            return None, [str(error)]
    e, r = list(graph.entities), list(graph.relations)
    facts = {s: [(e[h], r[p], e[t]) for h, p, t in rows] for s, rows in graph.splits.items()}
    return {s: sorted(rows) for s, rows in facts.items()}, [str(own.message) for own in caught]


def make_folder(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        write(path / name, text)
    return path


@each_row("declaration, files, advice", ADVICE)
def test_suggested_declarations_lead_to_the_facts(
    tmp_path: Path, declaration: str, files: dict[str, str], advice: str
) -> None:
    make_folder(tmp_path, files)
    _, said = messages(f"{declaration}{tmp_path}")
    assert any(advice in text for text in said), said
    facts, after = messages(advice.replace("DIR", str(tmp_path)))
    assert facts is not None, after
    due = {split: sorted(rows) for split, rows in RIGHT.items()}
    if advice == "neural-lp:DIR":
        due["train"] = sorted([*due["train"], ("dan", "likes", "ann")])
    assert facts == due
    assert not any(advice in text for text in after)


INDUCTIVE = {
    "ilpc": {
        "train.txt": "x\tr\ty\n",
        "inference.txt": "ann\tr\tbob\n",
        "inference_validation.txt": "bob\tr\tann\n",
        "inference_test.txt": "ann\tr\tann\n",
    },
    "ingram": {
        "train.txt": "x\tr\ty\n",
        "msg.txt": "ann\tr\tbob\n",
        "valid.txt": "bob\tr\tann\n",
        "test.txt": "ann\tr\tann\n",
    },
    "ultra": {
        "train.txt": "x\tr\ty\n",
        "transductive_train.txt": "x\tr\ty\n",
        "inference_graph.txt": "ann\tr\tbob\n",
        "inf_valid.txt": "bob\tr\tann\n",
        "inf_test.txt": "ann\tr\tann\n",
    },
}


@pytest.mark.parametrize("made", INDUCTIVE)
def test_declared_inductive_folders_ask_about_their_inference_graph(
    tmp_path: Path, made: str
) -> None:
    """The right declaration leads to the facts, another one to a message on files that it needs."""
    make_folder(tmp_path / "f", INDUCTIVE[made])
    (said,) = messages(str(tmp_path / "f"))[1]
    for kind in ("ilpc", "grail", "ultra", *(["ingram"] if made == "ingram" else [])):
        assert f"{kind}:DIR" in said
        facts, after = messages(f"{kind}:{tmp_path}/f")
        if kind == made:
            assert facts is not None, after
            assert facts["test"] == [("ann", "r", "ann")]
            assert ("ann", "r", "bob") in facts["train"]
        else:
            assert facts is None
            assert str(tmp_path) in after[0]


def test_a_declared_folder_of_grail_asks_about_its_inference_graph(tmp_path: Path) -> None:
    files = {"v1/train.txt": "x\tr\ty\n", "v1/inference.txt": ""}
    files |= {f"v1_ind/{name}": text for name, text in INDUCTIVE["ingram"].items()}
    files["v1_ind/train.txt"] = files.pop("v1_ind/msg.txt")
    make_folder(tmp_path, files)
    assert "grail:DIR" in messages(f"{tmp_path}/v1")[1][0]
    facts, _ = messages(f"grail:{tmp_path}/v1")
    assert facts is not None
    assert facts["test"] == [("ann", "r", "ann")]


@pytest.mark.parametrize(
    ("further", "line"),
    [("\t0.{}", "awk"), ("\t1", "cut -f 1-3"), ("\tx", "cut -f 1-3")],
    ids=["weights", "constant", "text"],
)
def test_suggested_lines_of_a_shell_lead_to_the_facts(
    tmp_path: Path, further: str, line: str
) -> None:
    old = make_folder(tmp_path / "old", texts(further=further))
    (said,) = messages(str(old))[1]
    assert line in said, said
    command = line if line.startswith("cut") else re.findall(r"(awk .*?) OLD > NEW", said)[0]
    (tmp_path / "new").mkdir()
    for path in old.iterdir():
        shell = f'{command} "$1" > "$2"'
        words = ["sh", "-c", shell, "sh", path, tmp_path / "new" / path.name]
        subprocess.run(words, check=True)
    due = {split: sorted(rows) for split, rows in RIGHT.items()}
    assert messages(str(tmp_path / "new")) == (due, [])


@pytest.mark.skipif(shutil.which("iconv") is None, reason="needs iconv")
def test_another_encoding_is_converted(tmp_path: Path) -> None:
    old = make_folder(tmp_path / "old", texts())
    text = (old / "train.txt").read_text()
    (old / "train.txt").write_bytes(text.encode("utf-16"))
    (said,) = messages(str(old))[1]
    (command,) = re.findall(r"(iconv .*?) OLD > NEW", said)
    done = subprocess.run([*command.split(), old / "train.txt"], capture_output=True, check=True)
    (old / "train.txt").write_bytes(done.stdout)
    assert messages(str(old)) == ({split: sorted(rows) for split, rows in RIGHT.items()}, [])


def test_some_times_are_completed(tmp_path: Path) -> None:
    files = texts(further="\t201{}")
    old = make_folder(tmp_path / "old", files)
    with open(old / "train.txt", "a") as file:
        file.write("dan\tlikes\tann\n")
    (said,) = messages(str(old))[1]
    (command,) = re.findall(r"(awk .*?) OLD > NEW", said)
    (tmp_path / "new").mkdir()
    for path in old.iterdir():
        words = ["sh", "-c", f'{command} "$1" > "$2"', "sh", path, tmp_path / "new" / path.name]
        subprocess.run(words, check=True)
    facts, _ = messages(f"timed:{tmp_path}/new")
    due = RIGHT | {"train": [*RIGHT["train"], ("dan", "likes", "ann")]}
    assert facts == {split: sorted(rows) for split, rows in due.items()}


# -- Lines of Python -------------------------------------------------------------------------------

TIED = "{'q': {'d': 1}}, {'q': {'d': 1.0, 'e': 1.0}}, ['recip_rank']"
QUESTIONS = "graph.questions(sides='tail')"
LINES = [  # the advice, the call that causes it, the call that follows it, its value
    (
        "ties='expected'",
        f"trec.evaluate({TIED})",
        f"trec.evaluate({TIED}, ties='expected')",
        {"q": {"recip_rank": 0.75}},
    ),
    (
        "ties='name'",
        f"trec.evaluate({TIED})",
        f"trec.evaluate({TIED}, ties='name')",
        {"q": {"recip_rank": 0.5}},
    ),
    (
        "summary=True",
        "trec.evaluate({'q': {'d': 1}}, {'q': {'d': 1.0}}, ['runid'])",
        "trec.evaluate({'q': {'d': 1}}, {'q': {'d': 1.0}}, ['runid'], summary=True)",
        {"runid": ""},
    ),
    (
        "qrels_format='beir'",
        "trec.read_qrels('three')",
        "trec.read_qrels('three', qrels_format='beir')",
        {"q": {"d": 2, "e": 1}},
    ),
    (
        "run_format='scores'",
        "trec.read_run('three')",
        "trec.read_run('three', run_format='scores')",
        {"q": {"d": 2.0, "e": 1.0}},
    ),
    (
        "run_format='msmarco'",
        "trec.read_run('three')",
        "trec.read_run('three', run_format='msmarco')",
        {"q": {"d": -2.0, "e": -1.0}},
    ),
    (
        "known_has_answers=True",
        "asked(known_has_answers=False)",
        "asked(known_has_answers=True)",
        [[0]],
    ),
    (
        "nan='worst'",
        f"kgtrec.rank(holes, {QUESTIONS})[0].rank().tolist()",
        f"kgtrec.rank(holes, {QUESTIONS}, nan='worst')[0].rank().tolist()",
        [4.0],
    ),
    ("outside='worst'", "among([0, 1])", "among([0, 1], outside='worst')", [3.0]),
    (
        "duplicates='ignore'",
        f"repeated({QUESTIONS})",
        f"repeated({QUESTIONS}, duplicates='ignore')",
        [1.0],
    ),
    (
        "filter='test'",
        "len(graph.questions('test', 'tail', filter='valid'))",
        "len(graph.questions('test', 'tail', filter='test'))",
        1,
    ),
    (
        "run_depth=1000",
        f"written(kgtrec.rank(scores, {QUESTIONS}, 0)[1])",
        f"written(kgtrec.rank(scores, {QUESTIONS}, run_depth=1000)[1])",
        "tail0 Q0 dan 1 4 kgtrec\ntail0 Q0 cid 2 3 kgtrec\ntail0 Q0 bob 3 2 kgtrec\n"
        "tail0 Q0 ann 4 1 kgtrec\n",
    ),
    (
        "sides='both'",
        "len(graph.questions(sides='qualifier'))",
        "len(graph.questions(sides='both'))",
        2,
    ),
    (
        "rows='instances'",
        "chunked(np.repeat(scores, 3, axis=0))",
        "chunked(np.repeat(scores, 2, axis=0), rows='instances')",
        [2.0, 1.0],
    ),
    (
        "normalize='vectors'",
        "openke(norm='l1')",
        "openke(norm='l1', normalize='vectors')",
        ("norm: l1", "normalization: vectors are scaled to length 1"),
    ),
    ("normalize='none'", "openke(norm='l1')", "openke(norm='l1', normalize='none')", ("norm: l1",)),
    ("inverse='offset'", "vectors()", "vectors(inverse='offset')", (4, 2)),
    ("inverse='interleaved'", "vectors()", "vectors(inverse='interleaved')", (4, 2)),
]


def names_in_lines(folder: Path) -> dict[str, object]:
    """What the calls of `LINES` use."""
    make_folder(folder, texts())
    graph = kgtrec.read_graph(folder)
    scores = np.array([[1, 2, 3, 4]], np.float32)
    holes = np.array([[1, 2, 3, np.nan]], np.float32)

    def asked(**how: bool) -> list[list[int]]:
        made = kgtrec.Questions.from_answers([["a"]], [["a", "b"]], labels=["a", "b", "c"], **how)
        return [made.answers[0].tolist()]

    def among(some: list[int], **how: str) -> list[float]:
        own = graph.questions(sides="tail").restrict(candidates=[some], **how)
        return kgtrec.rank(scores, own)[0].rank().tolist()

    def repeated(questions: kgtrec.Questions, **how: str) -> list[float]:
        ranker = kgtrec.Ranker(questions, **how)
        ranker.update([0, 0], np.repeat(scores, 2, axis=0))
        return ranker.finish()[0].rank().tolist()

    def chunked(matrix: np.ndarray, **how: str) -> list[float]:
        array = pytest.importorskip("dask.array").from_array(matrix)
        with pytest.importorskip("dask").config.set(scheduler="synchronous"):
            return cluster.rank(array, graph.questions(), **how)[0].rank().tolist()

    def written(run: kgtrec.Run) -> str:
        run.write(folder / "run")
        return (folder / "run").read_text()

    def vectors(**how: str) -> tuple[int, int]:
        ones = np.ones((4, 2), np.float32)
        own = kgtrec.Factors.from_embeddings(
            graph.questions(), "distmult", entity=ones, relation=ones, **how
        )
        return own.entities.shape

    def openke(**how: str) -> tuple[str, ...]:
        arrays = {
            "zero_const": np.zeros(1),
            "ent_embeddings.weight": np.eye(4, 2),
            "rel_embeddings.weight": np.eye(2),
        }
        np.savez(folder / "openke.npz", **{n: a.astype(np.float32) for n, a in arrays.items()})
        return load_factors(folder / "openke.npz", graph.questions(), "transe", **how).facts

    (folder / "three").write_text("q d 2\nq e 1\n")
    return {"np": np, "kgtrec": kgtrec, "trec": trec} | locals()


def evaluated(call: str, names: dict[str, object]) -> tuple[object, str]:
    """The value of a call, and all that it says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = eval(call, names)
        except kgtrec.KgtrecError as error:
            return None, str(error)
    return value, "\n".join(str(one.message) for one in caught)


@pytest.mark.parametrize(("advice", "cause", "follow", "due"), LINES, ids=[r[0] for r in LINES])
def test_suggested_lines_of_python_lead_to_the_value(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    advice: str,
    cause: str,
    follow: str,
    due: object,
) -> None:
    monkeypatch.chdir(tmp_path)
    names = names_in_lines(tmp_path)
    assert advice in evaluated(cause, names)[1]
    assert advice in follow
    assert evaluated(follow, names) == (due, "")


# -- Nothing is suggested that no test follows -----------------------------------------------------

ELSEWHERE = {  # tests that need other libraries, or many files
    "pre_filtered_triples=False": "integrations/test_pykeen.py::test_the_attribute_is_as_it_was",
    "model='rotate'": "integrations/test_saved_models.py::test_a_configuration_without_a_model",
    "model_config='config.json'": (
        "integrations/test_saved_models.py::test_the_configuration_names_the_formula"
    ),
    "phase_weight=0": "integrations/test_saved_models.py::test_advice_on_weights_is_followed",
    "modulus_weight=3": "integrations/test_saved_models.py::test_advice_on_weights_is_followed",
    "hype:": "graph/test_other_peoples_files.py::test_facts_of_several_entities_are_read",
}


def test_every_piece_of_advice_is_followed() -> None:
    """A row of this file, a recorded call or a named test follows what any message suggests."""
    given = advice_in_texts.advice()
    here = {row[2].replace("DIR", "") for row in ADVICE} | {row[0] for row in LINES}
    here |= {f"{kind}:" for kind in (*INDUCTIVE, "grail")} | {"awk", "cut -f", "iconv"}
    missing = {*given} - here - {*ELSEWHERE} - advice_in_texts.followed({*given})
    assert not missing, "\n".join(
        f"kgtrec/{given[piece]} suggests {piece!r}, but no test does what it says: add a row to "
        "LINES or ADVICE of this file, or two calls to golden/cli/advice.txt, the first of which "
        "causes the message, while the second follows it"
        for piece in sorted(missing)
    )
    idle = {*ELSEWHERE, *advice_in_texts.NONE} - {*given, *advice_in_texts.NONE}
    assert not idle, f"no message suggests {idle} any more: remove these rows"


@pytest.mark.parametrize("piece", ELSEWHERE)
def test_the_named_tests_follow_the_advice(piece: str) -> None:
    file, _, name = ELSEWHERE[piece].partition("::")
    tree = ast.parse((Path(__file__).parents[1] / file).read_text("utf-8"))
    bodies = [ast.unparse(one) for one in ast.walk(tree) if getattr(one, "name", "") == name]
    assert len(bodies) == 1
    assert bodies[0].count(piece) >= 2 or piece.partition("=")[0] in bodies[0]


def test_new_advice_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.py").write_text("raise ValueError(f'{x}: pass unheard=True, or --unheard-of')")
    monkeypatch.setattr(advice_in_texts, "PACKAGE", tmp_path)
    assert {*advice_in_texts.advice()} == {"unheard=True"}
    assert not advice_in_texts.followed({"unheard=True"})
