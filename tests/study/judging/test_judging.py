"""Judging without a server: questions, sheets, batches, agreement, merging, audits, context."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, pairwise, product
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_helpers import TRAIN, write_graph
from refusals import assert_refused, refusals

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.study.judging.agreement import (
    agreement_table,
    agreements,
    audit_sample,
    by_annotator,
    cohen,
    merge_sheets,
)
from kgtrec.study.judging.journal import judged_sheet
from kgtrec.study.judging.questions import (
    Context,
    Templates,
    check_link,
    generated_templates,
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
    make_batches,
    read_pooled,
    read_sheet,
    scan_sheet,
    to_judge,
    write_new_sheets,
    write_sheet,
)
from kgtrec.study.pooling.edited_files import Faults, read_judgements

HEADER = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"


# -- Questions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("/people/person/nationality", "Does the person A have the nationality B?"),
        ("/film/film/written_by", "Is the film A written by B?"),
        ("/film/film/story_by", "Does the film A have story by B?"),
        ("/location/location/contains", "Does the location A contain B?"),
        ("/location/location/partially_contains", "Does the location A partially contain B?"),
        ("/people/person/languages", "Does the person A have B among its languages?"),
        ("/people/ethnicity/people", "Does the ethnicity A have B among its people?"),
        ("/medicine/symptom/symptom_of", "Is the symptom A a symptom of B?"),
        ("/organization/organization/place_founded",
         "Does the organization A have the place founded B?"),
        ("/film/actor/film./film/performance/film",
         "Does the actor A have a performance whose film is B?"),
        ("/people/person/spouse_s./people/marriage/type_of_union",
         "Does the person A have a spouse (marriage) whose type of union is B?"),
        ("/award/award_category/nominees./award/award_nomination/nominated_for",
         "Does the award category A have, among its nominees, an award nomination that is "
         "nominated for B?"),
        ("/influence/influence_node/peers./influence/peer_relationship/peers",
         "Does the influence node A have a peer relationship that has B among its peers?"),
        ("_hypernym", "Is A a kind of B?"),
        ("_has_part", "Is B a part of A?"),
        ("bornIn", "Is A born in B?"),
        ("isMarriedTo", "Is A married to B?"),
        ("lives_in", "Does A live in B?"),
        ("actedIn", "Is it true that A acted in B?"),
        ("capital_of", "Is A a capital of B?"),
        ("http://example.org/ontology/birthPlace", "Does A have the birth place B?"),
        ("_synset_domain_topic_of", "Is A a term of the topic B?"),
        ("P31", "Does “P31” lead from A to B?"),
    ],
)  # fmt: skip
def test_a_relation_makes_a_question(relation: str, question: str):
    templates = generated_templates([relation])
    assert templates.question("A", relation, "B", {}) == question
    names = {"A": "{tail}", "B": "\\1 {head} {0}"}  # names are put in as they are
    asked = templates.question("A", relation, "B", names)
    assert asked.replace("{tail}", "A").replace("\\1 {head} {0}", "B") == question


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


# -- Sheets ------------------------------------------------------------------------------------


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


def test_every_fault_of_a_sheet_is_listed_with_its_line(tmp_path: Path):
    path = tmp_path / "s.tsv"
    rows = [
        "q\ta\tr\tb\tY\t\t",
        "q\ta\tr\tc\t yes \t\t",  # 3: unknown
        "q\ta\tr\tb\t Y\t\t",  # 4: duplicate of 2
        "q\ta\tr\tb\tN\t\t",  # 5: contradicts 2
        "q\ta\tr\td\t?\t",  # 6: columns
        "",  # 7: empty
        "q\ta\t\td\t?\t\t",  # 8: empty relation
        "q\ta\tr\tb\ty\t\t",  # 9: unknown
        "q\ta\tr\tlast\t \t\t",
    ]
    path.write_bytes((HEADER + "\n".join(rows)).replace("\n", "\r\n").encode())
    sheet, faults = scan_sheet(path)
    assert [(fault.line, fault.found.partition(":")[0]) for fault in faults] == [
        (3, "label ' yes ' is unknown"), (4, "a duplicate"), (5, "a contradiction"),
        (6, "6 columns instead of 7"), (7, "an empty line"), (8, "an empty relation"),
        (9, "label 'y' is unknown"),
    ]  # fmt: skip
    assert faults[1].found.endswith("'a r b' is also in line 2")
    assert faults[2].found.endswith("'a r b' has label 'N' here and 'Y' in line 2")
    assert [(item.tail, item.label) for item in sheet.items] == [("b", "Y"), ("last", "")]
    with pytest.raises(Faults, match="7 faults"):
        read_sheet(path)


@pytest.mark.data
def test_the_published_annotations_are_read_with_their_quirks(shared_data: Path):
    folder = shared_data / "kgc-sparsity" / "data" / "FB-Test-S-C"
    sheet, faults = scan_sheet(folder / "supplementary" / "human_labeled.txt")
    assert len(faults) == 26
    assert all(fault.found.startswith("a duplicate") for fault in faults)
    assert len(sheet) + len(faults) == 12_599
    assert {item.label for item in sheet.items} == {"Y", "N", ""}
    whole = judged_sheet(folder / "annotations.txt", blank="N")
    labels = [item.label for item in whole.items]
    assert (labels.count("Y"), labels.count("N")) == (2_738, 19_754)


def test_a_sheet_is_not_written_over(tmp_path: Path):
    items = [Item("a", "r", "b")]
    (tmp_path / "ben.tsv.journal").write_text("")
    with pytest.raises(UsageError, match=r"ben\.tsv\.journal already exists"):
        write_new_sheets(tmp_path, {"anna.tsv": items, "ben.tsv": items})
    assert not (tmp_path / "anna.tsv").exists()


# -- Batches -----------------------------------------------------------------------------------


def pooled(n: int, relations: int = 3) -> list[PooledTriple]:
    return [PooledTriple(f"h{i:03}", f"r{i % relations}", f"t{i:03}") for i in range(n)]


def shared_out(triples: list[PooledTriple], people: int, **more):
    names = [f"p{i}" for i in range(people)]
    templates = generated_templates({one.relation for one in triples})
    return make_batches(triples, templates, annotators=names, **more)


@given(
    n=st.integers(1, 60), people=st.integers(1, 6), percent=st.sampled_from([0, 29, 100]),
    size=st.none() | st.integers(1, 20), seed=st.integers(0, 5), grouped=st.booleans(),
)  # fmt: skip
def test_every_triple_has_its_judges(
    n: int, people: int, percent: int, size: int | None, seed: int, grouped: bool
):
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


def test_pool_files_and_plain_triples_are_read(tmp_path: Path):
    path = tmp_path / "pool.tsv"
    path.write_text(
        "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
        "a\tr\tb\ttail\ttail0\t2\tx:2\t\n"
        "a\tr\tc\ttail\ttail0\t9\tx:9,y:10\t\n"
        "a\tr\td\ttail\ttail0\t1\ty:1\t1-1:tail\n"
    )
    triples = read_pooled(path)
    assert [one.tail for one in to_judge(triples)] == ["b", "c"]
    assert [one.tail for one in to_judge(triples, depth=2)] == ["b"]
    assert [one.tail for one in to_judge(triples, by_rule=True)] == ["b", "c", "d"]
    assert [one.tail for one in to_judge(triples, done=[("a", "r", "b")])] == ["c"]
    path.write_text("a\tr\tb\na\tr\tb\na\tr\tc")
    assert [one.tail for one in read_pooled(path)] == ["b", "c"]
    with pytest.raises(UsageError, match="--depth needs a pool file"):
        to_judge(read_pooled(path), depth=3)


# -- Agreement ---------------------------------------------------------------------------------


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


def pairs_of(counts: list[list[int]], relation: str = "r", start: int = 0) -> list[list[Item]]:
    """Items of two annotators with these counts."""
    labels = [(a, b) for i, a in enumerate("YN?") for j, b in enumerate("YN?")
              for _ in range(counts[i][j])]  # fmt: skip
    return [
        [Item(f"h{start + n}", relation, "t", label=pair[who]) for n, pair in enumerate(labels)]
        for who in (0, 1)
    ]


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=3, max_size=3))
def test_kappa_and_its_error_agree_with_the_slow_way(counts: list[list[int]]):
    kappa, error = cohen(np.array(counts))
    used = [(i, j) for i in range(3) for j in range(3) if counts[i][j]]
    if not used or (len(used) == 1 and used[0][0] == used[0][1]):
        assert math.isnan(kappa)
        assert math.isnan(error)
        return
    n = sum(map(sum, counts))
    assert kappa == pytest.approx(slow_kappa([[c / n for c in row] for row in counts]), abs=1e-12)
    assert error == pytest.approx(slow_error(counts), abs=1e-6)


def test_agreement_by_relation_adds_up():
    tables = {"r": [[5, 1, 0], [2, 9, 1], [0, 0, 2]], "s": [[1, 0, 0], [0, 7, 0], [1, 0, 0]]}
    anna, ben = [], []
    for place, (relation, counts) in enumerate(tables.items()):
        a, b = pairs_of(counts, relation, 100 * place)
        anna, ben = anna + a, ben + b
    blank, lone = Item("x", "r", "y", label=""), Item("z", "r", "z", label="Y")
    random.Random(3).shuffle(ben)
    other = Item("z", "r", "other", label="Y")
    judged = {"anna": [*anna, blank, lone], "ben": [*ben, blank], "carla": [other]}
    results = agreements(judged, by_relation=True)
    assert [one.relation for one in results] == ["all relations", "r", "s"]
    for one, counts in zip(results[1:], tables.values(), strict=True):
        assert one.counts.tolist() == counts
    assert (results[0].counts == results[1].counts + results[2].counts).all()
    row = agreement_table(results).rows[0]
    assert row[:4] == ("anna, ben", "all relations", 29, pytest.approx(24 / 29))
    assert row[-2:] == ("7/19/3", "9/17/3")
    with pytest.raises(InputError, match="judged by two annotators"):
        agreements({"anna": anna, "carla": [other]})


# -- Merging -----------------------------------------------------------------------------------


def one(tail: str, label: str, evidence: str = "", note: str = "", line: int = 0) -> Item:
    return Item("h", "r", tail, f"Is it {tail}?", label, evidence, note, line)


def test_what_annotators_agree_on_stands_and_conflicts_wait():
    anna = [one("1", "Y", "http://a"), one("2", "N"), one("3", "?"), one("4", "Y", "http://x"),
            one("5", "Y"), one("6", "")]  # fmt: skip
    ben = [one("1", "Y", "http://b", "sure"), one("2", "Y", "http://y"), one("3", "?"),
           one("4", "?", "http://x"), one("6", "")]  # fmt: skip
    merged = merge_sheets({"anna": anna, "ben": ben})
    assert {item.tail: item.label for item in merged.final} == {"1": "Y", "3": "?", "5": "Y"}
    assert merged.final[0].evidence == "http://a http://b"
    assert merged.counts == {
        "agreed": 2, "single": 1, "adjudicated": 0, "conflicts": 2, "blank": 1,
    }  # fmt: skip
    waiting = {item.tail: item for item in merged.conflicts}
    assert set(waiting) == {"2", "4"}
    assert all(item.label == item.evidence == "" for item in merged.conflicts)
    assert waiting["2"].note == "links given: http://y"
    assert waiting["4"].note == "links given: http://x"
    assert waiting["2"].question == "Is it 2?"


def test_the_adjudicator_settles():
    judged = {"a": [one("1", "Y", "http://a"), one("2", "N")], "b": [one("1", "N"), one("2", "?")]}
    decided = Sheet("carla.tsv", (one("1", "Y", "http://c"), one("2", "")))
    merged = merge_sheets(judged, decided)
    assert [(i.tail, i.label, i.evidence) for i in merged.final] == [
        ("1", "Y", "http://c http://a")
    ]
    assert [item.tail for item in merged.conflicts] == ["2"]
    stray = Sheet("carla.tsv", (one("1", "Y"), one("9", "Y", line=3)))
    with pytest.raises(Faults, match="no annotator has judged 'h r 9'; remove the line"):
        merge_sheets(judged, stray)
    with pytest.raises(Faults, match="annotators do not disagree on"):
        merge_sheets({"a": judged["a"]}, Sheet("carla.tsv", (one("1", "N", line=2),)))


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["Y", "N", "?", ""])), min_size=1),
       st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["Y", "N", "?", ""]))))  # fmt: skip
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


def test_files_belong_to_annotators_by_name(tmp_path: Path):
    def write(name: str, tails: str) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_sheet(tmp_path / name, [one(tail, "Y") for tail in tails])
        return str(tmp_path / name)

    files = [write("anna.batch1.judged.tsv", "1"), write("anna.batch2.judged.tsv", "2"),
             write("ben.tsv", "12")]  # fmt: skip
    by_name = by_annotator(files)
    assert {name: len(items) for name, items in by_name.items()} == {"anna": 2, "ben": 2}
    with pytest.raises(Faults, match=r"is also in .*batch2"):
        by_annotator([*files, write("anna.batch3.tsv", "2")])
    with pytest.raises(UsageError, match="name the same annotator, 'ben'"):
        by_annotator([*files, write("more/ben.tsv", "3")])


# -- Audits ----------------------------------------------------------------------------------------


LABELS = "YNNNY?NN"


ITEMS = [
    Item(f"h{i}", "r", f"t{i}", f"q{i}", (*LABELS, "")[i % 9], "http://x", "n") for i in range(90)
]


def test_as_many_true_as_false_and_nothing_given_away() -> None:
    labels = {item.triple: item.label for item in ITEMS}
    seen, first = set(), set()
    for seed in range(60):
        sample = audit_sample(ITEMS, 12, seed)
        assert Counter(labels[item.triple] for item in sample) == {"Y": 6, "N": 6}
        assert len({item.triple for item in sample}) == 12
        assert {(item.label, item.evidence, item.note) for item in sample} == {("", "", "")}
        assert audit_sample(reversed(ITEMS), 12, seed) == sample
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
    write_sheet(tmp_path / "j.tsv", [Item("'=x", "-r", "=x", label="Y"),
                                     Item("=x", "-r", "'=x", label="N")])  # fmt: skip
    read = read_judgements(tmp_path / "j.tsv", graph).labels
    assert {(graph.entities[h], graph.entities[t]): label for (h, _, t), label in read.items()} == {
        ("'=x", "=x"): 1, ("=x", "'=x"): 0,
    }  # fmt: skip
    made = Templates({"-r": "=is {head} of {tail}?", "'-r": "Is {head} of {tail}?"})
    write_templates(tmp_path / "t.tsv", made)
    assert "\n-" not in (tmp_path / "t.tsv").read_text()
    assert read_templates(tmp_path / "t.tsv") == made


# -- Links and facts beside a triple ---------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_label_leads_elsewhere(label: str) -> None:
    assert check_link("https://x.org:80/#{label}") == "https://x.org:80/#{label}"
    link = Context("https://x.org/w/{label}?b=1").of(label, "r", "t")["head"]
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


# -- Refusals --------------------------------------------------------------------------------------

TEMPLATES = "relation\ttemplate\n"
SHEET = "head\trelation\ttail\tlabel"


@pytest.mark.parametrize(("read", "text", "words"), [
    (read_sheet, "", "the file is empty"),
    (read_sheet, b"PK\x03\x04...", "a workbook"),
    (read_sheet, "head".encode("utf-16"), "NUL bytes"),
    (read_sheet, HEADER, "it has only a header"),
    (read_sheet, "head\trelation\ttail\n", "s.tsv:1: column 'label' is missing"),
    (read_sheet, f"{SHEET}\tlabel\n", "s.tsv:1: column 'label' appears twice"),
    (read_sheet, f"{SHEET}\tsystem\n", "s.tsv:1: column 'system' is unknown"),
    (read_sheet, f"{SHEET}\na\tr\tb\tY\rx\n", "s.tsv:2: a carriage return inside"),
    (read_templates, "a\tb\n", r"s.tsv:1: the first line is 'a\\tb'; it must be relation<TAB>"),
    (read_templates, f"{TEMPLATES}a\tIs {{head}} x?\nb\t{{head}} {{tail}} {{x}}\n"
     "b\t{head}{tail}\nc\n\t{head}{tail}",
     r"5 faults\n  line 2: template 'Is {head} x\?' lacks {tail}; write both .*\n"
     r"  line 3: .* has other braces; .*\n  line 4: relation 'b' is also in line 3; .*\n"
     r"  line 5: 1 column instead of 2: 'c'; .*\n  line 6: an empty relation"),
    (read_names, "a\tAnna\na\tOther\nb\t \nc\td\te\n",
     r"3 faults\n  line 2: 'a' is called 'Other', .*\n  line 3: an empty .*\n  line"),
    (read_pooled, "head\trelation\ttail\tdepth\na\tr\t\t1\na\tr\tb\tx\na\tr\n",
     r"3 faults\n  line 2: an empty tail.*\n  line 3: depth 'x'; .*\n  line 4: 2 columns in"),
    (read_pooled, "a\tr\tb\tY\n", "4 columns instead of 3"),
    (read_pooled, "head\trelation\ttail\ttail\n", "column 'tail' appears twice"),
    (read_pooled, "head\trelation\ttail\n", "no triple"),
])  # fmt: skip
def test_wrong_files_are_refused_with_their_lines(tmp_path: Path, read, text, words: str):
    path = tmp_path / "s.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match=words):
        read(path)


def batches_of(**more):
    return make_batches(pooled(3), generated_templates(["r0", "r1", "r2"]), **more)


@refusals(
    ("nobody", lambda: batches_of(annotators=[]), UsageError, ("no annotator",)),
    ("twice", lambda: batches_of(annotators="aa"), UsageError, ("two annotators are named 'a'",)),
    ("path", lambda: batches_of(annotators=["../a"]), UsageError, ("must work as a file",)),
    ("batch", lambda: batches_of(annotators=["a.batch1"]), UsageError, ("must work as a file",)),
    ("share", lambda: batches_of(annotators="a", overlap=1.5), UsageError, ("overlap 1.5",)),
    ("nan", lambda: batches_of(annotators="a", overlap=math.nan), UsageError, ("overlap nan",)),
    ("size", lambda: batches_of(annotators="a", size=0), UsageError, ("batch size is 0",)),
    ("templates", lambda: generated_templates(["a"]).require(["b", "a", "c", "b"]), InputError,
     ("2 relations have no template: 'b', 'c'; add a line",)),
    ("tab", lambda: write_sheet("s.tsv", [Item("a\tb", "r", "c")]), InputError,
     ("has a tab or line end",)),
    ("odd audit", lambda: audit_sample(ITEMS, 3), UsageError, ("even number",)),
    ("no audit", lambda: audit_sample(ITEMS, 0), UsageError, ("even",)),
    ("large audit", lambda: audit_sample(ITEMS, 1000), UsageError, ("at most 40",)),
    *((link, lambda link=link: check_link(link), UsageError, ("is not a template",)) for link in (
        "javascript:alert({label})", "https://{label}/x", "https://x.org{label}", "{label}",
        "ftp://x.org/{label}", "https://x.org/", "https://x.org/{label}/{label}", "",
        "https://x.org/{name}", "https://a@b.org/{label}", "https://x.org/ {label}",
    )),
)  # fmt: skip
def test_wrong_calls_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call, error: type[Exception], words
):
    monkeypatch.chdir(tmp_path)
    assert_refused(call, error, words)
    assert not list(tmp_path.iterdir())
