"""Folders of other people: dictionaries beside triples, more triples, and numbers as labels.

A folder belongs to a model that numbers entities in its own way. Either the graph numbers them the
same way and has all facts, or kgtrec refuses the folder, or it warns.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from graph_files import lines, write
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from refusals import each_row

import kgtrec
from kgtrec.errors import FileError, FilterWarning, GraphWarning, InputError
from kgtrec.questions.requests import QuestionRequest

# -- One folder of each form -----------------------------------------------------------------------

TRAIN = [("zoe", "likes", "ann"), ("bob", "knows", "ann")]
TEST = [("zoe", "likes", "bob")]
NUMBERS = {"zoe": 0, "ann": 1, "unused": 2, "bob": 3}
RELATIONS = {"likes": 0, "knows": 1}


def by_label(numbers: dict[str, int]) -> str:
    return lines(list(numbers.items()))


def by_number(numbers: dict[str, int]) -> str:
    return lines([(number, label) for label, number in numbers.items()])


def listed(numbers: dict[str, int]) -> str:
    return "".join(f"{label}\n" for label in sorted(numbers, key=numbers.__getitem__))


def counted(numbers: dict[str, int]) -> str:
    return f"{len(numbers)}\n" + by_label(numbers)


FORMS = [
    (("entity2id.txt", "relation2id.txt"), by_label),
    (("entity2id.txt", "relation2id.txt"), counted),
    (("entity2id.txt", "relation2id.txt"), lambda numbers: counted(numbers).replace("\t", " ")),
    (("ent2id.tsv", "rel2id.tsv"), by_label),
    (("entity_to_id.tsv.gz", "relation_to_id.tsv.gz"), lambda n: "id\tlabel\n" + by_number(n)),
    (("id2entity.txt", "id2relation.txt"), by_number),
    (("entity_ids.del", "relation_ids.del"), by_number),
    (("entities.txt", "relations.txt"), listed),
    (("entities.txt", "relations.txt"), by_number),
    (("entities.txt", "relations.txt"), by_label),
    (("vocab/entity_vocab.json", "vocab/relation_vocab.json"), json.dumps),
]


def make(folder: Path, train: list = TRAIN, test: list = TEST, **files: str) -> Path:
    """A folder with a train and a test split, and more files (``__`` is the dot of their names)."""
    write(folder / "train.txt", lines(train))
    write(folder / "valid.txt", lines(train[:1]))
    write(folder / "test.txt", lines(test))
    for name, content in files.items():
        write(folder / name.replace("__", "."), content)
    return folder


@each_row("names, form", FORMS)
def test_dictionaries_number_entities_and_relations(
    tmp_path: Path, names: tuple[str, str], form
) -> None:
    make(tmp_path)
    for name, numbers in zip(names, (NUMBERS, RELATIONS), strict=True):
        write(tmp_path / name, form(numbers))
    for spec in (str(tmp_path), f"tsv,hrt:{tmp_path}", f"rotate:{tmp_path}"):
        with pytest.warns(GraphWarning, match=r"no triple names 1 of the 4 .*\(first 'unused'\)"):
            graph = kgtrec.read_graph(spec)
        assert list(graph.entities) == ["zoe", "ann", "unused", "bob"], spec
        assert list(graph.relations) == ["likes", "knows"], spec
        assert graph.splits["test"].tolist() == [[0, 0, 3]], spec
    assert list(kgtrec.read_graph(f"tsv:{tmp_path}").entities) == ["ann", "bob", "zoe"]
    scores = np.array([[0, 0.5, 0.2, 1]], np.float32)
    with pytest.warns(GraphWarning, match="no triple names"):
        questions = kgtrec.read_graph(tmp_path).questions(sides="tail")
    assert kgtrec.evaluate(scores, questions)["tail.micro.mrr"] == 1


def test_a_dictionary_that_changes_the_order_of_columns_is_named(tmp_path: Path) -> None:
    make(tmp_path, entity2id__txt=by_label({"zoe": 0, "ann": 1, "bob": 2}))
    with pytest.warns(GraphWarning, match=r"columns are in the order of entity2id\.txt"):
        kgtrec.read_graph(tmp_path)
    make(tmp_path, entity2id__txt=by_label({"ann": 0, "bob": 1, "zoe": 2}))
    kgtrec.read_graph(tmp_path)  # silent: the same order


def test_facts_and_train_are_one_split_for_programs_that_learn_rules(tmp_path: Path) -> None:
    make(
        tmp_path,
        [("bob", "brother of", "cleo")],
        [("bob", "brother of", "eve")],
        facts__txt=lines(
            [("ann", "aunt of", "bob"), ("ann", "aunt of", "cleo"), ("dan", "aunt of", "eve")]
        ),
        entities__txt=listed({"ann": 0, "bob": 1, "cleo": 2, "dan": 3, "eve": 4}),
        relations__txt="brother of\naunt of\n",
    )
    graph = kgtrec.read_graph(tmp_path)
    assert (graph.n_entities, graph.n_relations, len(graph.splits["train"])) == (5, 2, 4)
    assert list(graph.relations) == ["brother of", "aunt of"]
    (tmp_path / "entities.txt").unlink()
    with pytest.raises(FileError, match="neural-lp:DIR if it is a part of the training graph"):
        kgtrec.read_graph(tmp_path)
    assert len(kgtrec.read_graph(f"neural-lp:{tmp_path}").splits["train"]) == 4
    assert len(kgtrec.read_graph(f"tsv:{tmp_path}").splits["train"]) == 1


def test_ingram_asks_about_the_graph_of_its_messages(tmp_path: Path) -> None:
    make(tmp_path, [("x", "old", "y")], [("b", "new", "c")])
    write(tmp_path / "msg.txt", lines([("a", "new", "b"), ("c", "newer", "a")]))
    write(tmp_path / "valid.txt", lines([("a", "newer", "c")]))
    with pytest.raises(FileError, match="ingram:DIR"):
        kgtrec.read_graph(tmp_path)
    graph = kgtrec.read_graph(f"ingram:{tmp_path}")
    assert list(graph.entities) == ["a", "b", "c"]
    assert list(graph.relations) == ["new", "newer", "old"]
    assert len(graph.splits["train"]) == 2


def test_known_files_are_not_called_unread(tmp_path: Path) -> None:
    make(tmp_path, graph__txt=lines([("ann", "likes", "bob")]))
    with pytest.warns(FilterWarning, match=r"'graph.txt' holds triples, .*known="):
        kgtrec.read_graph(tmp_path)
    known = QuestionRequest(str(tmp_path), known=(str(tmp_path / "graph.txt"),)).questions()
    assert len(known.known.ids) > len(kgtrec.read_graph(f"tsv:{tmp_path}").questions().known.ids)


# -- Folders of numbers: OpenKE, LibKGE ------------------------------------------------------------


def openke(folder: Path) -> Path:
    """Four entities, two relations, and all files that OpenKE derives from the splits."""
    for name, rows in (
        ("train2id", [(0, 1, 0), (1, 2, 1)]),
        ("valid2id", [(2, 3, 0)]),
        ("test2id", [(0, 3, 0)]),
        ("1-1", [(0, 3, 0)]),
        ("1-n", [(0, 3, 0)]),
        ("n-1", [(0, 3, 0)]),
        ("n-n", [(0, 3, 0)]),
    ):
        write(folder / f"{name}.txt", f"{len(rows)}\n" + lines(rows, " "))
    write(folder / "test2id_all.txt", "1\n3\t0 3 0\n")
    write(folder / "type_constrain.txt", "2\n0\t1\t2\n0\t1\t3\n1\t1\t2\n1\t1\t3\n")
    write(folder / "entity2id.txt", counted({f"/m/{e}": i for i, e in enumerate("abcd")}))
    write(folder / "relation2id.txt", counted({"/r": 0, "/s": 1}))
    return folder


def libkge(folder: Path) -> Path:
    """The same as LibKGE's preprocessing writes it."""
    for name, rows in (
        ("train", [(0, 0, 1), (1, 1, 2)]),
        ("valid", [(2, 0, 3)]),
        ("test", [(0, 0, 3)]),
    ):
        for ending in ("", "_without_unseen", "_sample"):
            write(folder / f"{name}{ending}.del", lines(rows))
        named = [(f"/m/{'abcd'[h]}", f"/{'rs'[r]}", f"/m/{'abcd'[t]}") for h, r, t in rows]
        write(folder / f"{name}.txt", lines(named))
    write(folder / "valid_negatives.del", "0\t0\t0\n")
    write(folder / "entity_ids.del", by_number({f"/m/{e}": i for i, e in enumerate("abcd")}))
    write(folder / "relation_ids.del", by_number({"/r": 0, "/s": 1}))
    write(
        folder / "dataset.yaml",
        (
            "dataset:\n  name: x\n  files.train.filename: train.del\n"
            "  files.valid_negatives.filename: valid_negatives.del\n"
        ),
    )
    return folder


@each_row(
    "make_folder, name, content, words",
    [
        (openke, "graph.txt", "2\n0 2 0\n3 0 0\n", "give their numbers"),
        (openke, "background.txt", "0 2 0\n3 0 0\n", "give their numbers"),
        (openke, "graph.tsv", "/m/a\t/r\t/m/c\n", "filter them with known="),
        (openke, "facts.txt", "/m/a\t/r\t/m/c\n", "filter them with known="),
        (
            openke,
            "other.txt",
            "x\ty\tz\n",
            "their relations are not those of the graph; move it away",
        ),
        (openke, "valid_negatives.txt", "1\n2 0 0\n", "so they filter nothing; move"),
        (libkge, "graph.del", "0\t0\t2\n", "give their numbers"),
        (libkge, "train2.del", "0\t0\t2\n", "give their numbers"),
        (libkge, "graph.txt", "/m/a\t/r\t/m/c\n", "filter them with known="),
        (libkge, "test_negatives.txt", "/m/a\t/r\t/m/c\n", "`kgtrec classify` evaluates them"),
    ],
)
def test_further_triples_beside_numbers_get_a_line(
    tmp_path: Path, make_folder, name: str, content: str, words: str
) -> None:
    make_folder(tmp_path)
    kgtrec.read_graph(tmp_path)  # silent: all files are the program's
    write(tmp_path / name, content)
    with pytest.warns(FilterWarning, match=f"'{name}' holds triples, .*{words}") as caught:
        graph = kgtrec.read_graph(tmp_path)
    (said,) = (str(each.message) for each in caught)
    assert "tsv:DIR" not in said  # which would read the numbers as labels
    before = graph.questions().known
    if "known=" in said:  # each way that the message names
        path = str(tmp_path / name)
        options: list[dict] = [{"known": path}] if "filter them with" in said else []
        if not options:
            triples = np.loadtxt(path, int, skiprows=int(content.startswith("2\n")), ndmin=2)
            triples = triples[:, [0, 2, 1]] if make_folder is openke else triples
            labels = [
                (graph.entities[h], graph.relations[r], graph.entities[t])
                for h, r, t in triples.tolist()
            ]
            write(tmp_path / "beside/more", lines(labels))
            options = [{"extra_known": triples}, {"known": str(tmp_path / "beside/more")}]
        for option in options:
            known = graph.questions(**option).known
            assert len(known.ids) > len(before.ids), option
    (tmp_path / name).unlink()
    kgtrec.read_graph(f"openke,htr:{tmp_path}" if make_folder is openke else tmp_path)


# -- Numbers ---------------------------------------------------------------------------------------


def ring(n: int, extra: tuple = ()) -> list[tuple]:
    return [(e, 0, (e + 1) % n, *extra) for e in range(n)]


def test_whole_numbers_are_in_numeric_order(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(make(tmp_path, ring(12), [(3, 0, 11), (10, 0, 2)]))
    assert list(graph.entities) == [*map(str, range(12))]
    assert graph.splits["test"].tolist() == [[3, 0, 11], [10, 0, 2]]
    scores = np.eye(12, dtype=np.float32)[[11, 2]]
    questions = graph.questions(sides="tail")
    assert kgtrec.evaluate(scores, questions)["tail.micro.mrr"] == 1
    # Ties go by label, descending in byte order: "9" comes before "11".
    ranks = kgtrec.rank(np.zeros((2, 12)), questions)[0]
    assert ranks.rank("ordinal").tolist() == [8, 8]


def test_labels_with_leading_zeros_stay_in_byte_order(tmp_path: Path) -> None:
    rows = [("00260881", "r", "12"), ("9", "r", "00260881")]
    assert list(kgtrec.read_graph(make(tmp_path, rows, rows)).entities) == ["00260881", "12", "9"]


@each_row(
    "files",
    [
        {"stat__txt": "14\t1\t0\n"},
        {"entity2id__txt": by_label({f"name {e}": e for e in range(14)})},
        {"entities__txt": listed({f"name {e}": e for e in range(14)})},
    ],
)
def test_files_say_how_many_numbers_there_are(tmp_path: Path, files: dict) -> None:
    for spec, time in (("{}", ()), ("timed:{}", (7,))):
        make(tmp_path, ring(12, time), [(3, 0, 11, *time)], **files)
        with pytest.warns(GraphWarning, match=r"no triple names 2 of the 14 .*\(first '12'\)"):
            graph = kgtrec.read_graph(spec.format(tmp_path))
        assert list(graph.entities) == [*map(str, range(14))]
        assert graph.splits["test"].tolist() == [[3, 0, 11]]


@each_row(
    "stat, words",
    [
        (
            "4\t1\n",
            r"stat.txt:1: 4 entities, numbered from 0, but the triples name '11' "
            r"\(tail in line 1 of test.txt\); correct the first number of its first line",
        ),
        ("11 1 0\n", "11 entities, numbered from 0, but the triples name '11'"),
        ("14 1\n", ""),
    ],
)
def test_a_size_below_the_largest_number_is_refused(tmp_path: Path, stat: str, words: str) -> None:
    make(tmp_path, [(0, 0, 1), (1, 0, 4)], [(3, 0, 11)], stat__txt=stat)
    if words:
        with pytest.raises(FileError, match=words):
            kgtrec.read_graph(tmp_path)
        kgtrec.read_graph(f"tsv:{tmp_path}")  # the splits alone
        stat = "14 1\n"  # as the message says
        write(tmp_path / "stat.txt", stat)
    with pytest.warns(GraphWarning, match=r"no triple names 9 of the 14 entities of stat\.txt"):
        graph = kgtrec.read_graph(tmp_path)
    assert graph.splits["test"].tolist() == [[3, 0, 11]]
    (tmp_path / "stat.txt").unlink()
    with pytest.warns(GraphWarning, match="gaps"):
        kgtrec.read_graph(tmp_path)
    many = [(e, r, e) for e, r in enumerate((0, 1, 2))]
    make(tmp_path, many, many, stat__txt="3 2\n")
    with pytest.raises(FileError, match=r"2 relations, .*'2' .*correct the second number"):
        kgtrec.read_graph(tmp_path)


def test_the_width_of_scores_says_how_many_numbers_there_are(tmp_path: Path) -> None:
    said: list[str] = []
    make(tmp_path, [(0, 0, 1), (1, 0, 7)], [(0, 0, 7)])
    request = QuestionRequest(str(tmp_path), say=said.append, n_columns=lambda: 9)
    with pytest.warns(GraphWarning, match=r"whole numbers with gaps \(no 2\)"):
        questions = request.questions()
    assert list(questions.graph.entities) == [*map(str, range(9))]
    assert questions.graph.splits["test"].tolist() == [[0, 0, 7]]
    assert said == [
        "scores have 9 columns, so column e is entity e: 6 numbers that no fact names are "
        "candidates, too"
    ]
    with pytest.warns(GraphWarning, match="numeric order"):
        narrow = kgtrec.read_graph(tmp_path)
    assert list(narrow.entities) == ["0", "1", "7"]
    with pytest.raises(InputError, match="write '9 1', the numbers of entities and of relations"):
        kgtrec.evaluate(np.zeros((2, 9)), narrow.questions())
    write(tmp_path / "stat.txt", "9 1\n")  # as the message says
    with pytest.warns(GraphWarning, match=r"6 of the 9 entities of stat\.txt"):
        kgtrec.evaluate(np.zeros((2, 9)), kgtrec.read_graph(tmp_path).questions())


# -- Dictionaries that do not fit ------------------------------------------------------------------

SWAPPED = {**NUMBERS, "zoe": 1, "ann": 0}
WRONG = [
    (
        {"entity2id__txt": by_label({"zoe": 0, "ann": 1})},
        FileError,
        r"entity2id.txt: 'bob' \(head in line 2 of train.txt\) is not in it; add a line",
    ),
    ({"entity2id__txt": by_label({"zoe": 0, "ann": 2, "bob": 3})}, FileError, "no line for id 1"),
    (
        {"entity2id__txt": by_label({"zoe": 0, "ann": 1, "bob": 1})},
        FileError,
        r"entity2id.txt:3: id 1 is repeated \(first in line 2\)",
    ),
    (
        {"entity2id__txt": "5\n" + by_label({"zoe": 0, "ann": 1, "bob": 2})},
        FileError,
        "no line for id 3, but the first line says 5 ids",
    ),
    ({"entity2id__txt": "zoe\nann\nbob\n"}, FileError, "entity2id.txt:1: 'zoe'; each line must be"),
    (
        {"entity2id__txt": "zoe\t0\nann\t1\nbob\t2\nzoe\t3\n"},
        GraphWarning,
        "number 3 is called 'zoe#3'",
    ),
    (
        {"entity2id__txt": by_label(NUMBERS), "entities__dict": by_number(SWAPPED)},
        FileError,
        "number 0 is 'ann' here, but 'zoe' in entity2id.txt; keep the file",
    ),
    (
        {"entities__txt": "zoe\nann\n"},
        GraphWarning,
        r"entities.txt is not used: 'bob' \(head in line 2",
    ),
    ({"entities__txt": "zoe\ta b\nann\tc d\nbob\te f\n"}, GraphWarning, "entities.txt is not used"),
    (
        {
            "entities__txt": "zoe\nann\nbob\n",
            "entity2id__txt": by_label({"ann": 0, "bob": 1, "zoe": 2}),
        },
        GraphWarning,
        "entities.txt is not used: its order differs from that of entity2id.txt",
    ),
    ({"stat__txt": "9\t2\n"}, GraphWarning, "stat.txt counts 9 entities, but the triples name 3"),
    ({"vocab/entity_vocab.json": "[1]"}, FileError, "not an object from labels to numbers"),
]


@each_row("files, kind, text", WRONG)
def test_a_dictionary_that_does_not_fit_is_never_silent(
    tmp_path: Path, files: dict, kind: type, text: str
) -> None:
    folder = make(tmp_path, **files)
    with pytest.raises(kind, match=text):  # warnings are errors here
        kgtrec.read_graph(folder)
    kgtrec.read_graph(f"tsv:{folder}")  # the splits alone


def test_repeated_labels_keep_their_numbers_unless_a_triple_names_them(tmp_path: Path) -> None:
    make(tmp_path, entity2id__txt="x\t0\nzoe\t1\nx\t2\nann\t3\nbob\t4\n")
    with pytest.warns(GraphWarning) as caught:
        graph = kgtrec.read_graph(tmp_path)
    assert list(graph.entities) == ["x", "zoe", "x#2", "ann", "bob"]
    assert "label 'x' has the numbers 0 and 2; number 2 is called 'x#2' here" in str(
        caught[0].message
    )
    write(tmp_path / "entity2id.txt", "zoe\t0\nann\t1\nbob\t2\nzoe\t3\n")
    with (
        pytest.warns(GraphWarning),
        pytest.raises(FileError, match=r"'zoe' .* has the numbers 0 and 3"),
    ):
        kgtrec.read_graph(tmp_path)


def test_labels_and_numbers_that_differ_are_ambiguous(tmp_path: Path) -> None:
    make(tmp_path, ring(3), ring(3)[:1], entity2id__txt=by_label({"2": 0, "1": 1, "0": 2}))
    write(tmp_path / "relation2id.txt", by_label({"0": 0}))
    with pytest.raises(FileError, match="'0' is a label with the number 2, and also a number"):
        kgtrec.read_graph(tmp_path)
    rotate = kgtrec.read_graph(f"rotate:{tmp_path}")  # as the message says
    numbers = kgtrec.read_graph(f"dgl-ke,hrt:{tmp_path}")
    assert rotate.splits["test"].tolist() == [[2, 0, 1]]
    assert numbers.splits["test"].tolist() == [[0, 0, 1]]


# -- Any folder ------------------------------------------------------------------------------------

EXTRA = (
    "graph.txt",
    "full_graph.txt",
    "background.txt",
    "raw.kb",
    "facts.txt",
    "msg.txt",
    "inference.txt",
    "valid_negatives.txt",
    "more.tsv",
    "old",
    "train2.txt",
    "kg.nt.bak",
    "triples.dat",
    "Facts.TSV",
)
DAMAGE = ("nothing", "a label less", "a gap", "a number twice", "a label twice", "another order")


@dataclass(frozen=True)
class Case:
    """A folder, what its model numbers, and how the folder is declared."""

    n: int
    named: tuple[int, ...]
    order: tuple[int, ...]
    has_numbers: bool
    is_timed: bool
    relations: tuple[int, ...]
    form: int | None
    has_stat: bool
    extra: str | None
    separator: str
    damage: str
    facts: tuple[tuple[int, int, int], ...]

    def label(self, number: int) -> str:
        return str(number) if self.has_numbers else f"e{self.order[number]:02}"

    def relation(self, number: int) -> str:
        return str(number) if self.has_numbers else f"r{self.relations[number]}"


@st.composite
def cases(draw) -> Case:
    n = draw(st.integers(3, 14))
    ends = st.integers(0, n - 1)
    facts = draw(st.lists(st.tuples(ends, st.integers(0, 1), ends), min_size=3, max_size=20))
    facts += ring(n) * draw(st.booleans())  # names all numbers
    return Case(
        n,
        tuple(sorted({e for h, _, t in facts for e in (h, t)})),
        tuple(draw(st.permutations(range(n)))),
        draw(st.booleans()),
        draw(st.booleans()),
        tuple(draw(st.permutations(range(2)))),
        draw(st.sampled_from([None, *range(len(FORMS))])),
        draw(st.booleans()),
        draw(st.sampled_from([None, *EXTRA])),
        draw(st.sampled_from("\t, ")),
        draw(st.sampled_from(DAMAGE)),
        tuple(facts),
    )


def dictionary(case: Case, names: dict[str, int]) -> dict[str, int]:
    """The model's numbers, with the case's fault."""
    last = max(names, key=names.__getitem__)
    if case.damage == "a label less" and len(names) > 1:
        return {label: number for label, number in names.items() if label != last}
    if case.damage == "a gap":
        return {**names, last: names[last] + 1}
    if case.damage == "a number twice" and len(names) > 1:
        return {**names, last: 0}
    return names


def write_case(case: Case, folder: Path) -> set[tuple[str, str, str]]:
    """Write the folder; returns the facts that its owner means."""
    time = ("5",) if case.is_timed else ()
    facts = [(case.label(h), case.relation(r), case.label(t), *time) for h, r, t in case.facts]
    third = max(1, len(facts) // 3)
    parts = {"train": facts[:third], "valid": facts[third : 2 * third], "test": facts[2 * third :]}
    more: list = []
    if case.extra is not None:
        more, parts["train"] = parts["train"], parts["train"][:1]
        write(folder / case.extra, lines(more, case.separator))
    for split, rows in parts.items():
        write(folder / f"{split}.txt", lines(rows))
    if case.form is not None:
        names, form = FORMS[case.form]
        shown = "name {}" if case.has_numbers and case.damage != "another order" else "{}"
        for name, numbers in zip(
            names,
            (
                {shown.format(case.label(i)): i for i in range(case.n)},
                {shown.format(case.relation(i)): i for i in range(2)},
            ),
            strict=True,
        ):
            text = form(dictionary(case, numbers))
            if case.damage == "a label twice":
                text += text.splitlines()[-1] + "\n" if "json" not in name else ""
            write(folder / name, text)
    if case.has_stat:
        write(folder / "stat.txt", f"{case.n}\t2\t0\n")
    return {row[:3] for row in facts + more}


def plain_cases() -> st.SearchStrategy[Case]:
    """Folders of numbers alone, of which each is named: only the numbers say the order."""
    return cases().flatmap(
        lambda case: st.integers(11, 30).map(
            lambda n: replace(
                case,
                n=n,
                has_numbers=True,
                form=None,
                has_stat=False,
                extra=None,
                facts=(*ring(n), *((h, 0, t) for h, _, t in case.facts if max(h, t) < n)),
            )
        )
    )


@examples(15)
@given(plain_cases())
def test_folders_of_numbers_are_in_numeric_order_without_a_line(case: Case) -> None:
    """From 11 numbers on, the order of bytes is another: 10 comes before 2."""
    with TemporaryDirectory() as name:
        write_case(case, Path(name))
        graph = kgtrec.read_graph(f"timed:{name}" if case.is_timed else name)
        assert list(graph.entities) == [*map(str, range(case.n))]


@examples(15)
@given(cases())
def test_any_folder_is_right_or_refused_or_gets_a_line(case: Case) -> None:
    with TemporaryDirectory() as name, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        facts = write_case(case, Path(name))
        spec, context = (f"timed:{name}", "time") if case.is_timed else (name, None)
        said: list[str] = []
        try:
            request = QuestionRequest(
                spec, context=context, say=said.append, n_columns=lambda: case.n
            )
            questions = request.questions()
            graph = questions.graph
        except InputError:
            return
    if caught or said:
        return
    assert {
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for rows in graph.splits.values()
        for h, r, t in rows.tolist()
    } == facts
    if case.form is None and not case.has_numbers:  # the model has no other order than ours
        return
    if len(graph.entities) < case.n:  # its scores have another width, which a ranking refuses
        with pytest.raises(InputError, match="columns"):
            kgtrec.rank(np.zeros((len(questions), case.n)), questions)
        return
    assert list(graph.entities) == [case.label(number) for number in range(case.n)]


@pytest.mark.parametrize(
    "name", ["entity2idx.txt", "ent2id.pkl", "entity2id.csv", "Nodes_map.json"]
)
def test_a_dictionary_of_an_unknown_form_has_a_line(tmp_path: Path, name: str) -> None:
    """Without it, columns in the order of that file would be ranked as those of other labels."""
    (tmp_path / "test.txt").write_text("a\tr\tb\n")
    (tmp_path / "train.txt").write_text("b\tr\tc\n")
    (tmp_path / name).write_text("c,0\na,1\nb,2\n")
    with pytest.warns(GraphWarning, match=f"{name} is not read, so columns are in the order"):
        kgtrec.read_graph(tmp_path)
    (tmp_path / "entity2id.txt").write_text("c\t0\na\t1\nb\t2\n")
    with pytest.warns(GraphWarning) as caught:
        graph = kgtrec.read_graph(tmp_path)
    assert list(graph.entities) == ["c", "a", "b"]
    assert not any("is not read" in str(warning.message) for warning in caught)


@pytest.mark.parametrize(("n", "differs"), [(1, True), (2, False), (3, False), (4, True)])
def test_numbers_beside_labels_have_as_many_triples(tmp_path: Path, n: int, differs: bool) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\na\tr\tb\nb\tr\tc\n")  # a repeated triple
    (tmp_path / "train2id.txt").write_text(f"{n}\n" + "0 1 0\n" * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kgtrec.read_graph(tmp_path)
    text = f"'train2id.txt' has {n} triples, but split 'train' has 3 in its file of labels"
    assert any(text in str(warning.message) for warning in caught) == differs
