"""Judging without a server: questions, sheets, batches, agreement, merging, audits, context."""

from __future__ import annotations

import math
import sys
from collections import Counter
from itertools import combinations, pairwise, product
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_helpers import TRAIN, write_graph

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.study.judging.agreement import (
    compute_agreements,
    describe_agreements,
    draw_audit,
    merge_sheets,
    tabulate_agreements,
)
from kgtrec.study.judging.coefficients import (
    coefficient_interval,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from kgtrec.study.judging.evidence import find_missing_evidence, read_sources
from kgtrec.study.judging.journal import read_judged_sheet
from kgtrec.study.judging.questions import (
    Context,
    Templates,
    check_link,
    generate_templates,
    read_names,
    read_templates,
    template_of,
    write_templates,
)
from kgtrec.study.judging.sheets import (
    Item,
    PooledTriple,
    Sheet,
    annotator_of,
    find_changes,
    make_batches,
    read_asked,
    read_sheet,
    scan_sheet,
    write_sheet,
)
from kgtrec.study.pooling.edited_files import read_judgements

HEADER = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"


@given(st.text("/._-:#{}“ aeinosydABZé013", min_size=1))
def test_every_relation_makes_a_template_that_can_be_kept(relation: str):
    template = template_of(relation)
    assert template.count("{head}") == template.count("{tail}") == 1
    rest = template.replace("{head}", "").replace("{tail}", "")
    assert not set(rest) & set("{}")
    assert template[0].isupper()
    assert template.endswith("?")


def test_names_are_read_without_spaces_and_marks(tmp_path: Path):
    path = tmp_path / "n.tsv"
    path.write_bytes(b"\xef\xbb\xbfid\tname\r\na\tAnna \r\nb\tBen")
    assert read_names(path) == {"a": "Anna", "b": "Ben"}


def items_strategy() -> st.SearchStrategy[list[Item]]:
    plain = st.characters(blacklist_characters="\t\r\n\0\ufeff", codec="utf-8")
    text = st.text(plain | st.sampled_from("'=+-@\udcff"), max_size=8)
    # The header is recognised by its words; a label that equals a column's name breaks it.
    name = text.filter(lambda one: one and one.lower().strip() not in ("head", "label"))
    item = st.builds(Item, name, name, name, text, st.sampled_from(["Y", "N", "?", ""]), text, text)
    return st.lists(item, min_size=1, max_size=8, unique_by=lambda one: one.triple)


@given(items_strategy())
def test_a_sheet_is_read_back(tmp_path_factory: pytest.TempPathFactory, items: list[Item]):
    path = tmp_path_factory.mktemp("sheet") / "s.tsv"
    write_sheet(path, items)
    assert read_sheet(path).items == tuple(items)
    cells = path.read_bytes().replace(b"\n", b"\t").split(b"\t")
    assert not [cell for cell in cells if cell.startswith((b"=", b"+", b"-", b"@"))]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04...", "a workbook"),
        ("head".encode("utf-16"), "UTF-16 text"),
        (b"a\tr\tb\tY\r\na\tr\tc\tY\rx\n", "s.tsv:2: a carriage return inside"),
    ],
)
def test_files_that_are_no_lines_of_text_are_refused(tmp_path: Path, content: bytes, words: str):
    (tmp_path / "s.tsv").write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_sheet(tmp_path / "s.tsv")


@pytest.mark.data
def test_the_published_annotations_are_read_with_their_quirks(shared_data: Path):
    folder = shared_data / "kgc-sparsity" / "data" / "FB-Test-S-C"
    sheet, faults = scan_sheet(folder / "supplementary" / "human_labeled.txt")
    assert len(faults) == 26
    assert all(fault.problem.startswith("a duplicate") for fault in faults)
    assert len(sheet) + len(faults) == 12_599
    assert {item.label for item in sheet.items} == {"Y", "N", ""}
    whole = read_judged_sheet(folder / "annotations.txt", blank="N")
    labels = [item.label for item in whole.items]
    assert (labels.count("Y"), labels.count("N")) == (2_738, 19_754)


def pooled(n: int, relations: int = 3) -> list[PooledTriple]:
    return [PooledTriple(f"h{i:03}", f"r{i % relations}", f"t{i:03}") for i in range(n)]


def shared_out(triples: list[PooledTriple], people: int, **more):
    names = [f"p{i}" for i in range(people)]
    templates = generate_templates({one.relation for one in triples})
    return make_batches(triples, templates, annotators=names, **more)


@pytest.mark.parametrize("name", ["a" * 201, "é" * 101, "", ".a", "a/b", "a\0b", "a.batch1"])
def test_annotators_must_be_file_names(name: str) -> None:
    templates = generate_templates({"r0"})
    with pytest.raises(UsageError, match="the name must work as a file name"):
        make_batches(pooled(1, 1), templates, annotators=[name])


def test_names_are_cut_only_to_the_width() -> None:
    items = [
        Item(f"h{i}", "/a/long/path/of/a/relation/" * 3, "t", label="YN"[i % 2]) for i in range(9)
    ]
    agreements = compute_agreements({"anna": items, "ben": items}, by_relation=True)
    table = tabulate_agreements(agreements)
    assert items[0].relation in describe_agreements(agreements, table, sys.maxsize)
    text = describe_agreements(agreements, table)
    assert items[0].relation not in text
    assert max(map(len, text.splitlines())) <= 100


@given(
    n=st.integers(1, 60),
    people=st.integers(1, 6),
    percent=st.sampled_from([0, 29, 100]),
    size=st.none() | st.integers(1, 20),
    seed=st.integers(0, 5),
    grouped=st.booleans(),
)
def test_every_triple_has_its_judges(n, people, percent, size, seed, grouped):
    batches = shared_out(
        pooled(n), people, overlap=percent / 100, size=size, seed=seed, by_relation=grouped
    )
    judges: dict[tuple[str, str, str], list[str]] = {}
    loads = {f"p{i}": 0 for i in range(people)}
    for name, items in batches.items():
        assert size is None or len(items) <= size
        loads[annotator_of(name)] += len(items)
        for item in items:
            judges.setdefault(item.triple, []).append(annotator_of(name))
    assert len(judges) == n
    assert all(len(set(names)) == len(names) for names in judges.values())
    twice = round(percent / 100 * n) if people > 1 else 0
    assert sorted(map(len, judges.values())) == [1] * (n - twice) + [2] * twice
    assert max(loads.values()) - min(loads.values()) <= 2
    if people == 4 and percent == 100:
        own = [{t for t, names in judges.items() if f"p{i}" in names} for i in range(4)]
        common = [len(a & b) for a, b in combinations(own, 2)]
        assert max(common) - min(common) <= 1  # all pairs meet
    if grouped and people == 1:
        relations = [item.relation for items in batches.values() for item in items]
        assert sum(a != b for a, b in pairwise(relations)) == len(set(relations)) - 1


@pytest.mark.parametrize(
    ("n", "first", "last"), [(9, "1", "9"), (10, "01", "10"), (100, "001", "100")]
)
def test_sheets_are_sorted_by_their_names(n: int, first: str, last: str) -> None:
    names = list(shared_out(pooled(n), 1, size=1))
    assert names == sorted(names)
    assert (names[0], names[-1]) == (f"p0.batch{first}.tsv", f"p0.batch{last}.tsv")
    assert {annotator_of(name) for name in names} == {"p0"}


def test_the_order_tells_nothing_of_the_pool():
    # The same triples from another pool, in another order, with other depths: the same sheets.
    first = pooled(50)
    second = [one._replace(depth=i, rule="") for i, one in enumerate(reversed(first))]
    batches = [shared_out(triples, 2, seed=7) for triples in (first, second)]
    assert batches[0] == batches[1]
    assert shared_out(first, 2, seed=8) != batches[0]
    anna, ben = ([item.triple for item in items] for items in batches[0].values())
    assert sorted(anna) == sorted(ben)
    assert anna != ben
    assert anna != sorted(anna)


def slow_kappa(p: list[list[float]]) -> float:
    k = range(len(p))
    agreed = sum(p[i][i] for i in k)
    chance = sum(sum(p[i]) * sum(row[i] for row in p) for i in k)
    return (agreed - chance) / (1 - chance)


def slow_error(counts: list[list[int]]) -> float:
    """The delta method, with slopes by differences, of shares that vary as a multinomial."""
    n, step = sum(map(sum, counts)), 1e-6
    p = [[count / n for count in row] for row in counts]
    mean = square = 0.0
    for i, j in product(range(len(p)), repeat=2):
        moved = [[row[:] for row in p] for _ in "+-"]
        moved[0][i][j] += step
        moved[1][i][j] -= step
        slope = (slow_kappa(moved[0]) - slow_kappa(moved[1])) / (2 * step)
        mean += p[i][j] * slope
        square += p[i][j] * slope**2
    return math.sqrt(max(0.0, square - mean**2) / n)


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=3, max_size=3))
def test_kappa_and_its_error_agree_with_the_slow_way(counts: list[list[int]]):
    kappa, error = cohen_kappa(np.array(counts))
    used = [(i, j) for i in range(3) for j in range(3) if counts[i][j]]
    if not used or (len(used) == 1 and used[0][0] == used[0][1]):
        assert math.isnan(kappa)
        assert math.isnan(error)
        return
    n = sum(map(sum, counts))
    assert kappa == pytest.approx(slow_kappa([[c / n for c in row] for row in counts]), abs=1e-12)
    assert error == pytest.approx(slow_error(counts), abs=1e-6)


def slow_alpha(units: list[list[str]]) -> float:
    """Alpha from pairs of labels: within triples they disagree less than in the whole."""
    pairs = [
        (a, b, len(unit) - 1)
        for unit in units
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    ]
    everything = [label for unit in units for label in unit]
    observed = sum(1 / others for a, b, others in pairs if a != b) / len(everything)
    strangers = len(everything) * (len(everything) - 1)
    expected = (
        sum(a != b for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j)
        / strangers
    )
    return 1 - observed / expected if expected else math.nan


def slow_ac1(units: list[list[str]], categories: str) -> float:
    agreed = chance = 0.0
    for unit in units:
        alike = sum(a == b for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j)
        agreed += alike / (len(unit) * (len(unit) - 1)) / len(units)
    for label in categories:
        share = sum(unit.count(label) / len(unit) for unit in units) / len(units)
        chance += share * (1 - share) / (len(categories) - 1)
    return (agreed - chance) / (1 - chance)


def whole(coefficient, units: list[list[str]], categories: str) -> float:
    labels = np.array([[unit.count(label) for label in categories] for unit in units])
    return float(coefficient(labels, np.ones((1, len(units)), np.int64))[0])


@pytest.mark.parametrize("coefficient", [krippendorff_alpha, gwet_ac1])
@given(st.lists(st.lists(st.sampled_from("YN?"), min_size=2, max_size=5), min_size=1, max_size=12))
def test_alpha_and_ac1_agree_with_the_slow_way(coefficient, units: list[list[str]]):
    slow = slow_alpha(units) if coefficient is krippendorff_alpha else slow_ac1(units, "YN?")
    assert whole(coefficient, units, "YN?") == pytest.approx(slow, abs=1e-12, nan_ok=True)


# A column per rater of Krippendorff (2011, section C); "." has no label.
RATERS = "123321412...", "1233224125.3", ".3332342251.", "12332441251."


def test_published_values() -> None:
    units = [[*"".join(unit).replace(".", "")] for unit in zip(*RATERS, strict=True)]
    several = [unit for unit in units if len(unit) > 1]
    assert whole(krippendorff_alpha, several, "12345") == pytest.approx(0.743, abs=5e-4)
    # Gwet (2008): 125 triples, kappa -0.023 and AC1 0.941 of the same labels.
    counts = np.array([[118, 5], [2, 0]])
    pairs = [["Y", "Y"]] * 118 + [["Y", "N"]] * 7
    assert cohen_kappa(counts)[0] == pytest.approx(-0.023, abs=5e-4)
    assert whole(gwet_ac1, pairs, "YN") == pytest.approx(0.941, abs=5e-4)


@given(st.lists(st.text("YN.", min_size=3, max_size=3), min_size=2, max_size=20))
def test_alpha_is_that_of_another_program(units: list[str]) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    several = [[*unit.replace(".", "")] for unit in units if len(unit.replace(".", "")) > 1]
    if len({label for unit in several for label in unit}) < 2:
        return
    table = [[".NY".index(unit[i]) or math.nan for unit in units] for i in range(3)]
    theirs = krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    assert whole(krippendorff_alpha, several, "YN") == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("coefficient", [krippendorff_alpha, gwet_ac1])
def test_intervals_draw_whole_triples(coefficient) -> None:
    rng = np.random.default_rng(1)
    units = rng.choice(
        [[3, 0], [0, 3], [2, 1], [0, 2], [1, 1]], size=200, p=[0.2, 0.5, 0.1, 0.1, 0.1]
    )
    value, low, high = coefficient_interval(coefficient, units, Resampling(80, 4000, seed=5))
    once = np.ones((1, len(units)), np.int64)
    assert value == pytest.approx(coefficient(units, once)[0], abs=1e-12)
    drawn = [coefficient(units[rng.integers(0, 200, 200)], once)[0] for _ in range(4000)]
    assert [low, high] == pytest.approx(np.quantile(drawn, [0.1, 0.9]), abs=0.006)


@given(
    st.lists(st.tuples(*[st.sampled_from(["Y", "N", "?", ""])] * 3), min_size=1, max_size=12),
    st.booleans(),
)
def test_agreements_of_all_annotators(rows: list[tuple[str, ...]], by_relation: bool) -> None:
    judged = {
        name: [Item("h", f"r{i % 2}", f"t{i}", label=row[column]) for i, row in enumerate(rows)]
        for column, name in enumerate(["a", "b", "c"])
    }
    groups = {"a, b": (0, 1), "a, c": (0, 2), "b, c": (1, 2), "all 3": (0, 1, 2)}
    due = {}
    for name, people in groups.items():
        for part in ["all relations", *(["r0", "r1"] if by_relation else [])]:
            units = [
                [row[i] for i in people if row[i]]
                for i, row in enumerate(rows)
                if part in ("all relations", f"r{i % 2}")
            ]
            units = [unit for unit in units if len(unit) > 1]
            if units:
                labels = "YN?" if any("?" in unit for unit in units) else "YN"
                due[name, part] = len(units), slow_alpha(units), slow_ac1(units, labels)
    if not due:
        with pytest.raises(InputError, match="no triple was judged by two"):
            compute_agreements(judged, by_relation)
        return
    table = tabulate_agreements(compute_agreements(judged, by_relation), Resampling(resamples=100))
    keys = [table.keys.index(key) for key in ("triples", "alpha", "ac1")]
    got = {row[:2]: tuple(row[key] for key in keys) for row in table.rows}
    assert list(got) == list(due)
    for name, values in due.items():
        assert got[name] == pytest.approx(values, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (("NN",) * 118 + ("NY",) * 7, True),
        (("NN",) * 60 + ("YY",) * 58 + ("NY",) * 7, False),  # two labels: kappa is high
        (("NN",) * 60 + ("NY",) * 60, False),  # not nearly all are equal
        (("NN",) * 10, False),  # nobody differs: kappa is NaN
    ],
)
def test_low_kappa_of_nearly_equal_labels_is_explained(labels: tuple[str, ...], says: bool) -> None:
    judged = {
        name: [Item("h", "r", f"t{i}", label=row[column]) for i, row in enumerate(labels)]
        for column, name in enumerate("ab")
    }
    agreements = compute_agreements(judged)
    text = describe_agreements(agreements, tabulate_agreements(agreements))
    assert (
        "Kappa and alpha are low although annotators agree (a, b): 97.2% of the" in text
    ) == says


def one(tail: str, label: str, evidence: str = "", note: str = "", line: int = 0) -> Item:
    return Item("h", "r", tail, f"Is it {tail}?", label, evidence, note, line)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["Y", "N", "?", ""])), min_size=1),
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["Y", "N", "?", ""]))),
)
def test_merging_agrees_with_the_plain_words(first: list, second: list):
    judged = {
        name: [one(str(tail), label) for tail, label in dict(rows).items()]
        for name, rows in (("a", first), ("b", second))
    }
    labels_of = {}
    for items in judged.values():
        for item in items:
            labels_of.setdefault(item.tail, []).append(item.label)
    said = {tail: {label for label in labels if label} for tail, labels in labels_of.items()}
    if not any(said.values()):
        with pytest.raises(InputError, match="no triple has a label"):
            merge_sheets(judged)
        return
    merged = merge_sheets(judged)
    unanimous = {tail: next(iter(labels)) for tail, labels in said.items() if len(labels) == 1}
    assert {item.tail: item.label for item in merged.final} == unanimous
    assert {item.tail for item in merged.conflicts} == {t for t, s in said.items() if len(s) > 1}
    assert sum(merged.counts.values()) == len(said)


LABELS = "YNNNY?NN"
ITEMS = [
    Item(f"h{i}", "r", f"t{i}", f"q{i}", (*LABELS, "")[i % 9], "http://x", "n") for i in range(90)
]


def test_as_many_true_as_false_and_nothing_given_away() -> None:
    labels = {item.triple: item.label for item in ITEMS}
    seen, first = set(), set()
    for seed in range(60):
        sample = draw_audit(ITEMS, 12, seed)
        assert Counter(labels[item.triple] for item in sample) == {"Y": 6, "N": 6}
        assert len({item.triple for item in sample}) == 12
        assert {(item.label, item.evidence, item.note) for item in sample} == {("", "", "")}
        assert draw_audit(reversed(ITEMS), 12, seed) == sample
        seen |= {item.triple for item in sample}
        first.add(labels[sample[0].triple])
    assert seen == {triple for triple, label in labels.items() if label in "YN" and label}
    assert first == {"Y", "N"}


def test_judgements_and_templates_read_back(tmp_path: Path) -> None:
    # A file without a header is from another program, and stays unchanged.
    (tmp_path / "plain.tsv").write_text("'=x\tr\ty\tY\n")
    assert read_sheet(tmp_path / "plain.tsv").items[0].head == "'=x"
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 0, 1]], test=[[1, 0, 0]], entities=["'=x", "=x"], relations=["-r"]
    )
    write_sheet(
        tmp_path / "j.tsv", [Item("'=x", "-r", "=x", label="Y"), Item("=x", "-r", "'=x", label="N")]
    )
    read = read_judgements(tmp_path / "j.tsv", graph).labels
    assert {(graph.entities[h], graph.entities[t]): label for (h, _, t), label in read.items()} == {
        ("'=x", "=x"): 1,
        ("=x", "'=x"): 0,
    }
    made = Templates({"-r": "=is {head} of {tail}?", "'-r": "Is {head} of {tail}?"})
    write_templates(tmp_path / "t.tsv", made)
    assert "\n-" not in (tmp_path / "t.tsv").read_text()
    assert read_templates(tmp_path / "t.tsv") == made


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_label_leads_elsewhere(label: str) -> None:
    assert check_link("https://x.org:80/#{label}") == "https://x.org:80/#{label}"
    link = Context("https://x.org/w/{label}?b=1").build(label, "r", "t")["head"]
    assert isinstance(link, dict)
    parts = urlsplit(link["link"])
    assert parts[:2] + parts[3:] == ("https", "x.org", "b=1", "")
    assert unquote(parts.path) == "/w/" + label.removeprefix("/")


def test_facts_are_of_different_relations_first_and_never_what_is_asked(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(write_graph(tmp_path), progress=False)
    for most in (1, 2, 3, 10):
        context = Context(None, graph, {"b": "Bee"}, most)
        for entity in "abc":
            for triple in [*TRAIN, ("b", "s", "c")]:
                listed = context.facts(graph, entity, triple)
                own = [t for t in TRAIN if entity in (t[0], t[2]) and t != triple]
                assert len(listed) == min(most, len(own))
                plain = [tuple("b" if x == "Bee" else x for x in fact) for fact in listed]
                assert set(plain) <= set(own)
                kinds = {(r, h == entity) for h, r, _ in own}
                shown = {(r, h == entity) for h, r, _ in plain}
                own_kind = int((triple[1], triple[0] == entity) not in kinds)
                assert len(shown) >= min(most, len(kinds) + own_kind - 1)
    assert Context().facts(graph, "nobody", ("a", "r", "b")) == []


def test_edited_questions_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "templates.tsv"
    made = generate_templates(["bornIn", "knows"])
    write_templates(path, made)
    write_templates(path, generate_templates(["bornIn", "knows", "likes"]))  # nobody's work
    for text in (
        "relation\ttemplate\nbornIn\tDoes {head} come from {tail}?\n",
        "relation\ttemplate\nbornIn\tNo placeholders?\n",  # faulty, but somebody's
        "head\trelation\ttail\n",
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match="exists and would be lost"):
            write_templates(path, made)
        assert path.read_text() == text
    path.write_text("")  # as mktemp makes it
    write_templates(path, made)


HOSTS = {
    "https://a.org/x": "a.org",
    "http://www.b.net": "b.net",
    "HTTPS://x.a.org": "x.a.org",
    "http://ba.org/?https": "ba.org",
    "http://[x": "",
    "https://c.a.org:80/a.org": "c.a.org",
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Y", "N", "?", ""]),
            st.lists(
                st.sampled_from(["", "no link", *HOSTS]),
                max_size=2,
            ),
        ),
        min_size=1,
    ),
    st.booleans(),
    st.none() | st.sets(st.sampled_from(["a.org", "b.net", "x.a.org"])),
)
def test_missing_evidence_in_plain_words(rows: list, required: bool, sources: set | None) -> None:
    items, due = [], []
    for line, (label, cells) in enumerate(rows, start=2):
        items.append(Item("h", "r", str(line), "", label, " ".join(cells), line=line))
        hosts = [HOSTS[cell] for cell in cells if cell in HOSTS]
        lacks = required and label == "Y" and not hosts
        strange = sources is not None and any(
            not any(h == s or h.endswith(f".{s}") for s in sources) for h in hosts
        )
        if lacks or strange:
            due.append((line, lacks))
    faults = find_missing_evidence(items, required, sources)
    assert [(fault.line, "without a link" in fault.problem) for fault in faults] == due


@given(st.data())
def test_changes_of_a_sheet_in_plain_words(data: st.DataObject) -> None:
    asked = [Item("h", "r", f"t{k}", f"Is it t{k}?", line=k + 2) for k in range(6)]
    kinds = data.draw(
        st.lists(st.sampled_from(["kept", "lost", "moved", "asks"]), min_size=6, max_size=6)
    )
    filled, lost, strange, other = [], [], [], []
    for item, kind in zip(data.draw(st.permutations(asked)), kinds, strict=True):
        line = len(filled) + 2
        tail, question = item.tail, item.question
        if kind == "moved":
            tail = f"x{tail}"
            strange.append(line)
        if kind == "asks":
            question = data.draw(st.sampled_from(["", "Is it?"]))
            other += [line] * (question != "")
        if kind in ("lost", "moved"):
            lost.append(item.line)
        if kind != "lost":
            filled.append(Item("h", "r", tail, question, "Y", "http://x", "note", line))
    faults = find_changes(Sheet("filled", tuple(filled)), Sheet("asked", tuple(asked)))
    if len(lost) == len(asked):
        assert [fault.problem for fault in faults] == ["none of its triples is in asked"]
        return
    assert faults == sorted(faults)
    assert [f.line for f in faults if f"missing (line {f.line} of asked)" in f.problem] == sorted(
        lost
    )
    assert [f.line for f in faults if "not asked in asked" in f.problem] == strange
    assert [f.line for f in faults if f.problem.startswith("the question of")] == other
    assert len(faults) == len(lost) + len(strange) + len(other)


@pytest.mark.parametrize(
    "name", ["ann.b.batch1.tsv", "ann.b.batch1.judged.tsv", "ann.b.batch1.txt"]
)
def test_the_unfilled_sheet_is_found_by_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    for k in (1, 2):
        write_sheet(folder / f"ann.b.batch{k}.tsv", [Item("h", "r", f"t{k}")])
    assert read_asked(folder, tmp_path / name).items[0].tail == "t1"
    assert read_asked(folder / "ann.b.batch2.tsv", tmp_path / name).items[0].tail == "t2"
    (tmp_path / name).symlink_to(folder / "ann.b.batch1.tsv")
    with pytest.raises(UsageError, match="compared with itself"):
        read_asked(folder, tmp_path / name)


def test_sources_are_read(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Wikipedia.org\r\nhttps://www.imdb.com/title \nwww.a.b.net\n")
    assert read_sources(tmp_path / "s.txt") == {"wikipedia.org", "imdb.com", "a.b.net"}
