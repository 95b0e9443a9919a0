"""Folders as other people publish them: each is read rightly, or a message says the doubt."""

from __future__ import annotations

import re
import subprocess
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import lines, write
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import each_row

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import FileError
from kgtrec.trec.files.text import read_text

Rows = list[tuple[Any, ...]]
PEOPLE = ["ann", "bob", "cleo", "dan"]
SPLITS: dict[str, Rows] = {
    "train": [("ann", "likes", "bob"), ("bob", "likes", "cleo"), ("cleo", "knows", "dan")],
    "valid": [("ann", "knows", "cleo")],
    "test": [("dan", "likes", "ann"), ("bob", "knows", "dan")],
}


def folder(home: Path, ending: str = ".txt", separator: str = "\t", **splits: Rows) -> Path:
    for split, rows in splits.items():
        write(home / f"{split}{ending}", lines(rows, separator))
    return home


def read(spec: Any) -> tuple[kgtrec.Graph, list[str]]:
    """The graph, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = kgtrec.read_graph(spec)
    return graph, [str(one.message) for one in caught]


def labelled(graph: kgtrec.Graph) -> dict[str, Rows]:
    return {
        split: [
            (graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows.tolist()
        ]
        for split, rows in graph.splits.items()
    }


def refusal(spec: Any) -> str:
    with pytest.raises(FileError) as caught:
        read(spec)
    return str(caught.value)


def run_awk(message: str, source: Path, target: Path) -> None:
    """Run the command that a message suggests on the files of a folder."""
    (command,) = re.findall(r"(awk .*?) OLD > NEW", message)
    target.mkdir()
    for path in source.iterdir():
        with open(target / path.name, "wb") as file:
            subprocess.run(["sh", "-c", f'{command} "$1"', "sh", path], stdout=file, check=True)


# -- Order of columns ------------------------------------------------------------------------------


@each_row(
    "columns, advice",
    [
        ("rht", "tsv,rht:DIR (rth if"),
        ("htr", "tsv,htr:DIR (thr if"),
        ("rth", "(rth if"),
    ],
)
def test_another_order_of_columns_is_doubted_with_the_right_one(
    tmp_path: Path, columns: str, advice: str
) -> None:
    places = ["hrt".index(c) for c in columns]
    folder(
        tmp_path,
        **{s: [tuple(row[i] for i in places) for row in rows] for s, rows in SPLITS.items()},
    )
    _, said = read(tmp_path)
    assert any(advice in text and "are also entities, first" in text for text in said), said
    graph, said = read(f"tsv,{columns}:{tmp_path}")
    assert (labelled(graph), said) == (SPLITS, [])


def test_numbers_and_right_readings_have_no_doubtful_order(tmp_path: Path) -> None:
    assert read(folder(tmp_path / "right", **SPLITS))[1] == []
    rows: Rows = [(0, 1, 2), (1, 2, 3), (2, 0, 1)]
    assert read(folder(tmp_path / "numbers", train=rows, valid=rows, test=rows))[1] == []


# -- Headings --------------------------------------------------------------------------------------


@each_row(
    "heading, spec, ending, separator",
    [
        (("head", "relation", "tail"), "{}", ".txt", "\t"),
        (("Subject", "predicate", "OBJECT"), "{}", ".tsv", "\t"),
        (("h", "r", "t"), "tsv,hrt:{}", ".txt", "\t"),
        (("source", "edge_type", "target"), "csv,hrt:{}", ".csv", ","),
    ],
)
def test_names_of_columns_are_skipped_with_a_line(
    tmp_path: Path, heading: tuple[str, ...], spec: str, ending: str, separator: str
) -> None:
    folder(tmp_path, ending, separator, **{s: [heading, *rows] for s, rows in SPLITS.items()})
    graph, said = read(spec.format(tmp_path))
    assert labelled(graph) == SPLITS
    assert len(said) == 1
    assert "so it is skipped; if it is a triple, move it" in said[0]


def test_headings_say_the_order(tmp_path: Path) -> None:
    turned = {
        s: [("target", "source", "relation"), *((t, h, r) for h, r, t in rows)]
        for s, rows in SPLITS.items()
    }
    assert labelled(read(folder(tmp_path / "tsv", **turned))[0]) == SPLITS
    assert labelled(read(folder(tmp_path / "csv", ".csv", ",", **turned))[0]) == SPLITS
    assert "but declared as hrt; leave the declaration out" in refusal(f"tsv,hrt:{tmp_path}/tsv")
    names = ("time", "head", "relation", "tail")
    timed = folder(
        tmp_path / "timed",
        **{s: [names, *((7, *row) for row in rows)] for s, rows in SPLITS.items()},
    )
    message = refusal(f"timed:{timed}")
    run_awk(f"{message} OLD > NEW", timed, tmp_path / "in order")
    graph, said = read(f"timed:{tmp_path}/in order")
    assert (labelled(graph), list(graph.contexts)) == (SPLITS, ["7"])
    assert len(said) == 1


def test_a_heading_of_one_file_is_skipped_only_if_it_cannot_be_a_triple(tmp_path: Path) -> None:
    heading = ("subject", "predicate", "object")
    one = folder(tmp_path / "one", **SPLITS | {"train": [heading, *SPLITS["train"]]})
    graph, said = read(one)
    assert labelled(graph) == SPLITS
    assert "the first line of train.txt names the columns" in said[0]
    also = {
        **SPLITS,
        "train": [heading, *SPLITS["train"]],
        "valid": [("ann", "predicate", "subject")],
    }
    graph, said = read(folder(tmp_path / "also", **also))
    assert labelled(graph) == also
    assert "its labels also occur in other lines, so it is read as a triple" in said[0]
    again = {s: [heading, *rows, heading] for s, rows in SPLITS.items()}
    assert "train.txt:5: the names of the columns again" in refusal(
        folder(tmp_path / "again", **again)
    )


# -- Blanks, encodings -----------------------------------------------------------------------------


@each_row("blank", [" ", "   ", "\u00a0", "\ufeff", "\u3000"])
def test_labels_that_differ_in_outer_blanks_are_one(tmp_path: Path, blank: str) -> None:
    padded = {s: [(h + blank, r + blank, t) for h, r, t in rows] for s, rows in SPLITS.items()}
    for name, spec in (("plain", "{}"), ("timed", "timed:{}")):
        time = (7,) * (name == "timed")
        home = folder(
            tmp_path / name, **{s: [(*row, *time) for row in rows] for s, rows in padded.items()}
        )
        graph, said = read(spec.format(home))
        assert labelled(graph) == SPLITS
        assert "begin or end with blanks, first 'ann" in said[0]
        assert "in train.txt:1; the blanks are removed" in said[0]


def test_blanks_that_merge_nothing_remain_with_a_line(tmp_path: Path) -> None:
    padded = {s: [(h, f"{r} ", t) for h, r, t in rows] for s, rows in SPLITS.items()}
    graph, said = read(folder(tmp_path, **padded))
    assert labelled(graph) == padded
    assert "first 'likes ' in train.txt:1; the blanks are parts of the labels" in said[0]


def test_encodings_and_unicode_forms_have_a_line(tmp_path: Path) -> None:
    write(tmp_path / "a/train.txt", "zoë\tlikes\tbob\n")
    write(tmp_path / "a/valid.txt", "bob\tlikes\tann\n")
    write(tmp_path / "a/test.txt", "zoë\tlikes\tann\n".encode("latin-1"))
    said = read(tmp_path / "a")[1]
    assert r"1 labels are not UTF-8, first 'zo\\xeb' in test.txt:1, but 1 are" in said[0]
    assert r"2 entities are the same text in another encoding or Unicode form" in said[1]
    for form, split in (("NFC", "train"), ("NFD", "valid"), ("NFD", "test")):
        write(tmp_path / f"b/{split}.txt", unicodedata.normalize(form, "zoë\tlikes\tbob\n"))
    (said_once,) = read(tmp_path / "b")[1]
    assert r"first 'zoe\u0308' and 'zo\xeb'" in said_once
    for split, rows in SPLITS.items():
        write(tmp_path / f"c/{split}.txt", lines(rows).replace("bob", "zoë").encode("latin-1"))
    assert read(tmp_path / "c")[1] == []


@each_row(
    "encoding, name",
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32"),
        ("utf-32-be", "UTF-32BE"),
    ],
)
def test_wide_encodings_have_one_sentence(tmp_path: Path, encoding: str, name: str) -> None:
    for ending, spec, separator in ((".txt", "{}", "\t"), (".csv", "csv,hrt:{}", ",")):
        home = folder(tmp_path / ending[1:], ending, separator, **SPLITS)
        path = home / f"valid{ending}"
        write(path, path.read_text().encode(encoding))
        message = refusal(spec.format(home))
        run, qrels = tmp_path / "run", tmp_path / "qrels"
        write(run, "q Q0 d1 1 2.5 tag\nq Q0 d2 2 1.5 tag\n".encode(encoding))
        write(qrels, "query 0 d1 1\nquery 0 d2 0\n".encode(encoding))
        for path, columns in ((run, "run"), (qrels, "qrels")):
            with pytest.raises(FileError, match=f"{name} text; save it as UTF-8"):
                read_text(path, columns == "run")
        assert f"{name} text; save it as UTF-8, as by iconv -f {name} -t UTF-8" in message


# -- Further columns -------------------------------------------------------------------------------


@each_row("true, false", [("1", "-1"), ("1", "0"), ("True", "False")])
def test_labels_of_false_triples_are_never_cut(tmp_path: Path, true: str, false: str) -> None:
    own = {s: [(*row, true) for row in rows] for s, rows in SPLITS.items()}
    own["train"] = SPLITS["train"]
    for split in ("valid", "test"):
        own[split] = [*own[split], ("ann", "likes", "ann", false)]
    message = refusal(folder(tmp_path / "old", **own))
    assert f"the fourth column holds only {true} and {false}, which are labels of true" in message
    assert "cut" not in message
    run_awk(message, tmp_path / "old", tmp_path / "new")
    assert labelled(read(tmp_path / "new")[0]) == SPLITS


@each_row(
    "further, words",
    [
        (
            [("2014-01-02",), ("2014-01-03",)],
            "if the fourth column is a time, read it as timed:DIR",
        ),
        ([("0.8",), ("0.25",)], "the fourth column holds weights"),
        ([("1",), ("1",)], "the fourth column is always '1'; remove it (cut -f 1-3)"),
        ([("occursSince", "1990"), ()], "so some facts have a time and others have none"),
        ([("120", "0"), ("144", "0")], "read it as timed:DIR"),
    ],
)
def test_hints_for_further_columns_look_at_the_data(
    tmp_path: Path, further: list[tuple[str, ...]], words: str
) -> None:
    rows = {s: [(*row, *further[i % 2]) for i, row in enumerate(own)] for s, own in SPLITS.items()}
    message = refusal(folder(tmp_path / "old", **rows))
    assert words in message
    if "OLD > NEW" in message:
        run_awk(message, tmp_path / "old", tmp_path / "new")
        spec = "timed:{}" if "timed" in message else "{}"
        graph = read(spec.format(tmp_path / "new"))[0]
        kept = {
            s: [row for i, row in enumerate(own) if further[i % 2] != ("0.25",)]
            for s, own in SPLITS.items()
        }
        assert labelled(graph) == kept


def test_times_of_forecasting_are_numbers(tmp_path: Path) -> None:
    for last in ("0", "-1"):
        home = folder(
            tmp_path / last,
            **{
                s: [(*row, 24 * (5 - i), last) for i, row in enumerate(rows)]
                for s, rows in SPLITS.items()
            },
        )
        graph, said = read(f"timed:{home}")
        assert list(graph.contexts) == ["72", "96", "120"]
        assert f"the fifth column is always {last}, as in RE-Net's files" in said[0]
    years = [(988, 1448), (-405, 1990), (100, 100), (999, 2021), (988, "-"), ("-", 7)]
    home = folder(tmp_path / "years", train=[("a", "r", "b", *year) for year in years])
    assert list(read(f"timed:{home}")[0].contexts) == [
        "-/7",
        "-405/1990",
        "100/100",
        "988/1448",
        "988/-",
        "999/2021",
    ]


# -- Forms of other programs -----------------------------------------------------------------------


def test_facts_of_several_entities_are_read(tmp_path: Path) -> None:
    rows = {
        "train": [("plays", "ann", "chess", "bob"), ("likes", "bob", "ann")],
        "test": [("plays", "bob", "chess", "dan", "ann")],
    }
    home = folder(tmp_path / "hype", **rows)
    assert "if so, read it as hype:DIR" in refusal(home)
    graph = read(f"hype:{home}")[0]
    assert labelled(graph) == {
        "train": [("ann", "plays", "chess"), ("bob", "likes", "ann")],
        "test": [("bob", "plays", "chess")],
    }
    assert graph.contexts[graph.facts["test"][0, 3]] == "plays#3=dan,plays#4=ann"
    facts = "2\nLos Angeles, California\tin\tUSA\nbob\tplays\tchess\tsince\t1990\n"
    for split in ("train", "valid", "test"):
        write(tmp_path / f"hynt/{split}.txt", facts)
    assert "declare statements:DIR" in refusal(tmp_path / "hynt")
    graph = read(f"statements:{tmp_path}/hynt")[0]
    assert labelled(graph)["test"] == [
        ("Los Angeles, California", "in", "USA"),
        ("bob", "plays", "chess"),
    ]
    write(tmp_path / "hynt/test.txt", facts.replace("2\n", "3\n", 1))
    assert "2 facts, but the first line says 3" in refusal(f"statements:{tmp_path}/hynt")
    record = '{"award.nomination1": ["a", "b"], "award.nomination2": "c", "N": 3}\n'
    for split in ("train", "valid", "test"):
        write(tmp_path / f"hinge/n-ary_{split}.json", record)
    graph = read(tmp_path / "hinge")[0]
    assert labelled(graph)["test"] == [("a", "award.nomination1", "b")]
    assert graph.contexts[graph.facts["test"][0, 3]] == "award.nomination2=c"


def test_triples_of_multihopkg_are_read(tmp_path: Path) -> None:
    for name, split in (("train", "train"), ("dev", "valid"), ("test", "test")):
        write(tmp_path / f"{name}.triples", lines((h, t, r) for h, r, t in SPLITS[split]))
    assert labelled(read(tmp_path)[0]) == SPLITS


def test_numbers_of_openke_in_another_order_are_doubted(tmp_path: Path) -> None:
    rows = [(i, i % 2, (7 * i + 3) % 20) for i in range(20)]
    for split in ("train", "valid", "test"):
        write(tmp_path / f"{split}2id.txt", "20\n" + lines(rows, " "))
    for name, n in (("entity", 20), ("relation", 2)):
        write(tmp_path / f"{name}2id.txt", f"{n}\n" + lines((f"{name[0]}{i}", i) for i in range(n)))
    assert "if the order is head relation tail, declare it, as in openke,hrt:DIR" in refusal(
        tmp_path
    )
    assert read(f"openke,hrt:{tmp_path}")[0].splits["test"].tolist() == [[*row] for row in rows]
    write(tmp_path / "relation2id.txt", "20\n" + lines((f"r{i}", i) for i in range(20)))
    assert "20 different numbers, but the second, the tail, only 2" in read(tmp_path)[1][0]


# -- What the head of a ranking says ---------------------------------------------------------------


def test_what_a_split_shares_with_train_is_in_the_head(tmp_path: Path) -> None:
    home = folder(
        tmp_path / "g",
        train=[("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")],
        valid=[("a", "r", "c")],
        test=[("c", "r", "a"), ("d", "r", "b")],
    )
    np.save(tmp_path / "s.npy", np.random.default_rng(0).random((4, 4), np.float32))
    out = str(tmp_path / "r.parquet")
    head = (
        "1 of 2 test triples is also in train.\n"
        "1 of 4 entities of the questions is in no train triple (1 triple).\n"
    )
    for words in (
        ["rank", "--graph", str(home), "--scores", str(tmp_path / "s.npy"), "-o", out],
        ["report", out, "-m", "mrr"],
    ):
        assert head in CliRunner().invoke(cli, words, catch_exceptions=False).stdout
    result = kgtrec.evaluate(np.load(tmp_path / "s.npy"), kgtrec.read_graph(home).questions())
    assert head in str(result)


def test_inverse_pairs_within_test_are_counted(tmp_path: Path) -> None:
    home = folder(
        tmp_path,
        train=[("a", "r", "b"), ("b", "r_reverse", "a")],
        valid=[("a", "r", "d")],
        test=[("c", "r", "d"), ("d", "r_reverse", "c")],
    )
    shown = CliRunner().invoke(cli, ["stats", str(home)], catch_exceptions=False).stdout
    assert "mirrored within test                   2  100.0" in shown
    questions = kgtrec.read_graph(home).questions()
    result = kgtrec.evaluate(np.zeros((len(questions), 4)), questions)
    assert "2 of 2 test triples are mirrored in test" in str(result)


def test_cartesian_products_are_counted(tmp_path: Path) -> None:
    full: Rows = [(f"a{i}", "full", f"b{j}") for i in range(4) for j in range(4)]
    star: Rows = [("c", "star", f"b{j}") for j in range(4)] * 3
    home = folder(
        tmp_path, train=[*full[:14], *star], valid=star[:1], test=[*full[14:], ("a0", "star", "b0")]
    )
    leaks = kgtrec.graph.statistics.leakage.find_leaks(kgtrec.read_graph(home))
    assert (leaks.of_products, len(leaks.products)) == (2, 1)


# -- One thing is wrong ----------------------------------------------------------------------------

names = st.sampled_from([*PEOPLE, "zoë", "Łódź", "x y"])
facts = st.lists(
    st.tuples(names, st.sampled_from(["likes", "knows", "né"]), names),
    min_size=1,
    max_size=6,
    unique=True,
)
FAULTS = ["order", "heading", "padding", "encoding", "wide", "form", "time", "mixed", "labels"]


def names_of(splits: dict[str, Rows]) -> set[str]:
    return {name for rows in splits.values() for row in rows for name in row}


@given(st.fixed_dictionaries({"train": facts, "valid": facts, "test": facts}), st.data())
def test_a_fault_is_cured_or_told(
    tmp_path_factory: pytest.TempPathFactory, splits: dict[str, Rows], data: st.DataObject
) -> None:
    """The result is right, or there is a warning or a refusal: never neither."""
    fault = data.draw(st.sampled_from(FAULTS))
    rows: dict[str, Rows] = {s: [*own] for s, own in splits.items()}
    split, format = data.draw(st.sampled_from([*rows])), "{}"
    texts: dict[str, bytes] = {}
    if fault == "heading":
        heading = data.draw(st.sampled_from([("head", "relation", "tail"), ("s", "p", "o")]))
        rows = {s: [heading, *own] for s, own in rows.items()}
    elif fault == "padding":
        rows[split] = [(f"{h} ", r, t) for h, r, t in rows[split]]
    elif fault == "time":
        format = "timed:{}"
        rows = {s: [(*row, 8 + i, 0) for i, row in enumerate(own)] for s, own in rows.items()}
    elif fault == "mixed":
        format = data.draw(st.sampled_from(["{}", "timed:{}"]))
        rows[split] = [(*rows[split][0], "since", "1990"), *rows[split][1:]]
    elif fault == "labels":
        rows[split] = [(*row, i % 2) for i, row in enumerate(rows[split])]
    elif fault == "order":
        order = data.draw(st.permutations([0, 1, 2]))
        # The sign is that labels are in both kinds of columns: else no reader can see the order.
        triples = [row for own in rows.values() for row in own]
        middle = {row[order[1]] for row in triples}
        ends = {row[i] for row in triples for i in (order[0], order[2])}
        assume([*order] == [0, 1, 2] or len(middle & ends) > 0.1 * len(middle))
        rows = {s: [tuple(row[i] for i in order) for row in own] for s, own in rows.items()}
    elif fault == "encoding":
        texts[split] = lines(rows[split]).encode("cp1250")
        # Labels may have any encoding. The sign is one that another file has in UTF-8.
        odd = {name for row in rows[split] for name in row if not name.isascii()}
        assume(
            not odd or odd & {name for s in rows if s != split for row in rows[s] for name in row}
        )
    elif fault == "wide":
        encoding = data.draw(st.sampled_from(["utf-16", "utf-16-le", "utf-16-be"]))
        texts[split] = lines(rows[split]).encode(encoding)
    else:
        # The sign is a label that another file has composed: alone, either form is a label.
        rows[split] = [tuple(unicodedata.normalize("NFD", x) for x in row) for row in rows[split]]
    home = folder(tmp_path_factory.mktemp("g"), **rows)
    for name, text in texts.items():
        write(home / f"{name}.txt", text)
    try:
        graph, said = read(format.format(home))
    except FileError:
        return
    right = {s: [*dict.fromkeys(own)] for s, own in splits.items()}
    if fault == "form" and len(names_of(rows)) == len(names_of(splits)):
        right = {s: [*dict.fromkeys(own)] for s, own in rows.items()}
    assert said or labelled(graph) == right, (fault, rows)
    if fault == "time":
        assert [int(time) for time in graph.contexts] == sorted(map(int, graph.contexts))


def test_a_further_file_of_openke_is_reported_once(tmp_path: Path) -> None:
    texts = {
        "entity2id": "3\na 0\nb 1\nc 2\n",
        "relation2id": "1\nr 0\n",
        "train2id": "2\n0 1 0\n1 2 0\n",
        "train2id_old": "1\n0 1 0\n",
        "test2id": "1\n2 0 0\n",
    }
    for name, text in texts.items():
        write(tmp_path / f"{name}.txt", text)
    for folder in (str(tmp_path), f"openke:{tmp_path}"):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            kgtrec.read_graph(folder)
        said = [str(one.message) for one in shown if "train2id_old.txt" in str(one.message)]
        assert len(said) == 1, said
        assert "'train2id_old.txt' is not read: split 'train' is read from" in said[0]
