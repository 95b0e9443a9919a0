"""Advice of messages about graph folders is followed on the folder that caused the message.

Advice on runs, qrels, frames and models is followed elsewhere: in tests/golden/cases, in
tests/trec/test_forms.py and in tests/graph/test_other_peoples_files.py.
"""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path

import pytest
from graph_files import lines, write
from refusals import each_row

import kgtrec
from kgtrec.errors import FileError

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


ADVICE = [  # the declaration of a folder, its files, the declaration that the message suggests
    ("", texts("{}.csv", ","), "csv,hrt:DIR"),
    ("", texts(further="\t201{}"), "timed:DIR"),
    ("", texts(further="\tsince\t201{}"), "statements:DIR"),
    ("", texts() | {"facts.txt": "dan\tlikes\tann\n"}, "neural-lp:DIR"),
    ("", texts() | {"facts.txt": "dan\tlikes\tann\n"}, "tsv:DIR"),
    ("", texts() | {"graph.txt": "dan\tlikes\tann\n"}, "tsv:DIR"),
    ("", counted(numbers("hrt")), "openke,hrt:DIR"),
    ("dgl-ke:", numbers("hrt") | dictionaries(), "dgl-ke,hrt:DIR"),
    ("", texts() | {"msg.txt": "ann\tknows\tcid\n"}, "ingram:DIR"),
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
    if advice == "ingram:DIR":  # msg.txt has other entities than train: the next message is right
        assert facts is not None or "msg" in after[0]
        return
    assert facts is not None, after
    due = {split: sorted(rows) for split, rows in RIGHT.items()}
    if advice == "neural-lp:DIR":
        due["train"] = sorted([*due["train"], ("dan", "likes", "ann")])
    assert facts == due
    assert not any(advice in text for text in after)


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
