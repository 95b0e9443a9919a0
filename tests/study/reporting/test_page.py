"""The report page: its contents against plain Python over ranks, and what a browser shows."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from browser import Browser, launched
from compare_cases import graph, systems

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.text import shorten_names
from kgtrec.ranking.ranks import Ranks
from kgtrec.study import compare, samples_of_ranks
from kgtrec.study.changes import answer_changes
from kgtrec.study.reporting.builder import build_page_data
from kgtrec.study.reporting.page import dump_for_script, render_page


@pytest.fixture(scope="module")
def ranks() -> dict[str, Ranks]:
    return systems(3)


@pytest.fixture(scope="module")
def report(ranks: dict[str, Ranks]) -> dict[str, Any]:
    return build_page_data(ranks, graph=graph())


def test_relations_parts_and_headline(report: dict[str, Any], ranks: dict[str, Ranks]) -> None:
    assert report["models"] == list(ranks)
    relations, parts, headline = (report[name] for name in ("relations", "parts", "headline"))
    assert len(set(parts["names"])) == len(parts["names"])
    for model, one in enumerate(ranks.values()):
        result = kgtrec.Result(one)
        for key, values in zip(headline["keys"], headline["values"], strict=True):
            assert values[model] == result[key]
        for metric in ("mrr", "hits@1", "hits@10", "mr"):
            key = f"both.realistic.micro.{metric}"
            for shown, by, names in (
                (relations, "relation", relations["names"]),
                (parts, "side", ("head", "tail")),
            ):
                table = {row[0]: row[-2:] for row in result.slice(by, [key]).rows}
                for name in names:
                    at = shown["names"].index(name)
                    found = shown["instances"][at], shown["values"][metric][model][at]
                    assert found == pytest.approx(table[name], rel=1e-5)
    assert {end for ends in headline["ends"] for end in ends} == {None}
    assert set(relations["categories"]) <= {"1-1", "1-N", "N-1", "N-N", "unseen"}
    for metric, models in parts["values"].items():
        low, high = (np.array(parts[end][metric]) for end in ("low", "high"))
        assert (low <= np.array(models)).all()
        assert (np.array(models) <= high).all()


def test_a_summary_comes_first(report: dict[str, Any]) -> None:
    size, best, tested, ties, where, averages = report["summary"]
    assert size.startswith("3 models on ")
    keys = report["headline"]["keys"]
    values = report["headline"]["values"][keys.index("both.realistic.micro.mrr")]
    winner = report["models"][values.index(max(values))]
    assert f"{winner} by MRR" in best
    assert tested == report["comparisons"][0]["sentence"]
    assert "MRR" in ties or "No answer ties" in ties
    assert where.startswith(f"{winner} has its highest MRR on ")
    assert averages.startswith("Micro or macro? ")
    assert all(f"MRR of {name}: micro " in averages for name in report["models"])
    assert not any("beyond" in warning for warning in report["warnings"])


def test_distribution_and_popularity(report: dict[str, Any], ranks: dict[str, Ranks]) -> None:
    places, shown = report["distribution"], report["popularity"]
    for model, one in enumerate(ranks.values()):
        shares = [np.mean(one.rank() <= k) for k in places["k"]]
        assert places["share"][model] == pytest.approx(shares, rel=1e-5)
        for low, high, n, value in zip(
            shown["from"],
            shown["to"],
            shown["instances"],
            shown["values"]["mrr"][model],
            strict=True,
        ):
            own = (low <= one.answer_popularity) & (one.answer_popularity <= high)
            assert n == own.sum()
            assert math.floor(math.log2(low)) == math.floor(math.log2(high))
            assert value == pytest.approx(np.mean(1 / one.rank()[own]), rel=1e-5)
    assert sum(shown["instances"]) == len(ranks["s0"])


def listed_ranks(depth: int) -> dict[str, Ranks]:
    """Ranks of two models by lists of this length."""
    questions = graph().questions("test")
    listed = {}
    for seed, name in enumerate(("a", "b")):
        scores = np.random.default_rng(seed).random((len(questions), 40))
        run = kgtrec.evaluate(scores, questions, run_depth=depth, progress=False).run
        listed[name] = kgtrec.rank_lists(run, questions)
    return listed


def test_answers_beyond_their_lists_have_intervals() -> None:
    listed = listed_ranks(3)
    data = build_page_data(listed)
    at = data["headline"]["keys"].index("both.realistic.micro.mrr")
    for model, ranks in enumerate(listed.values()):
        beyond = ranks.unlisted.tolist()
        first = [g + 1 for g in ranks.greater.tolist()]
        last = [
            c if b else r for b, c, r in zip(beyond, ranks.candidates.tolist(), first, strict=True)
        ]
        low, high = data["headline"]["ends"][at][model]
        assert low == pytest.approx(mean(1 / r for r in last))
        assert high == pytest.approx(mean(1 / r for r in first))
        middle = mean(2 / (a + b) for a, b in zip(first, last, strict=True))
        assert data["comparisons"][0]["values"][model] == pytest.approx(middle, rel=1e-5)
        warning = f"{'ab'[model]}: {sum(beyond)} of {len(beyond)} answers are beyond"
        assert any(line.startswith(warning) for line in data["warnings"]), data["warnings"]
    assert json.loads(dump_for_script(data))["headline"]["ends"][at][0] == pytest.approx(
        data["headline"]["ends"][at][0]
    )


def test_worst_best_and_ahead(report: dict[str, Any], ranks: dict[str, Ranks]) -> None:
    questions = report["questions"]
    rank = np.array([one.rank()[np.lexsort((one.side, one.triple))] for one in ranks.values()])
    for place, name in enumerate(ranks):
        shown = {
            kind: np.array([questions["rows"][i]["ranks"] for i in rows]).T
            for kind, rows in questions["lists"][name].items()
        }
        own = np.sort(rank[place]).tolist()
        assert shown.pop("best")[place].tolist() == own[:20]
        assert shown.pop("worst")[place].tolist() == own[:-21:-1]
        ahead, every = (
            1 / one[place] - np.delete(1 / one, place, axis=0).mean(axis=0)
            for one in (shown.pop("ahead"), rank)
        )
        assert ahead == pytest.approx(np.sort(every)[:-21:-1])
        assert not shown
    one = ranks["s0"]
    known = {*zip(one.given.tolist(), one.relation.tolist(), one.answer.tolist(), strict=True)}
    for row in questions["rows"]:
        _, entity, relation = asked_by(row["question"])
        assert (entity, relation, int(row["answer"])) in known
        assert row["first"] == [None] * 3


def asked_by(question: str) -> tuple[int, int, int]:
    """Side, entity and relation of a question in words."""
    head, relation, tail = question[1:-1].split(", ")
    return (0, int(tail), int(relation)) if head == "?" else (1, int(head), int(relation))


def test_what_was_ranked_first_comes_from_runs(tmp_path) -> None:
    questions = graph().questions("test")
    scores = np.random.default_rng(3).integers(0, 5, (len(questions), 40)).astype(np.float32)
    result = kgtrec.evaluate(scores, questions, run_depth=10, progress=False)
    result.run.write(tmp_path / "a.run")
    columns = kgtrec.trec.read_run(tmp_path / "a.run", as_="columns")
    page = build_page_data({"a": result.ranks}, runs={"a": columns})["questions"]
    assert page["runs"] == ["a"]
    rows = zip(questions.side, questions.entity, questions.relation, strict=True)
    number = {key: question for question, key in enumerate(rows)}
    for row in page["rows"]:
        question = number[asked_by(row["question"])]
        best = result.run.documents[result.run.offsets[question] :][:3].tolist()
        due = [[str(entity), entity in questions.answers[question]] for entity in best]
        assert [*map(list, row["first"][0])] == due


def test_comparisons_are_those_of_compare(ranks: dict[str, Ranks]) -> None:
    comparisons = build_page_data(ranks, test="t")["comparisons"]
    for shown in comparisons:
        (samples,) = samples_of_ranks(ranks, [shown["key"]])
        due = compare(samples, test="t", resampling=Resampling(resamples=1000))
        name = f"{shown['title']} over {samples.unit}"
        assert shown["sentence"] == due.sentence(name)
        assert due.sentence() == shown["sentence"].replace(name, shown["key"], 1)
        for (i, j), p in zip(due.tests.pairs.tolist(), due.tests.corrected, strict=True):
            assert shown["p"][i][j] == shown["p"][j][i] == pytest.approx(float(p), rel=1e-5)
            assert shown["difference"][i][j] == -shown["difference"][j][i]
    assert build_page_data({"s0": ranks["s0"]})["comparisons"] == []
    one = {name: own.subset(own.question == own.question[0]) for name, own in ranks.items()}
    assert build_page_data(one)["comparisons"] == []


def test_changes_are_those_of_every_two_models(tmp_path: Path) -> None:
    questions, ranks, runs = graph().questions("test"), {}, {}
    for seed, name in enumerate(("s0", "s1", "s2")):
        scores = np.random.default_rng(seed).integers(0, 9, (len(questions), 40)).astype(float)
        ranks[name], run = kgtrec.rank(scores, questions, run_depth=5, progress=False)
        run.write(tmp_path / f"{name}.run")
        if name != "s1":
            runs[name] = kgtrec.trec.read_run(tmp_path / f"{name}.run", as_="columns")
    changes = build_page_data(ranks, runs=runs)["changes"]
    names = list(ranks)
    assert [one["models"] for one in changes] == [[0, 1], [0, 2], [1, 2]]
    for one in changes:
        before, after = (names[number] for number in one["models"])
        both = {before: ranks[before], after: ranks[after]}
        files = [runs[before], runs[after]] if {before, after} <= runs.keys() else None
        due = answer_changes(both, files)
        assert one["hits"] == due.table().rows
        assert one["largest"] == due.largest(25).rows
        assert one["best"] == (files and due.best_table().rows)
    assert build_page_data({"s0": ranks["s0"]}, runs={"s0": runs["s0"]})["changes"] == []
    bare = {name: Ranks(one.columns(), one.manifest) for name, one in ranks.items()}
    assert {one["best"] for one in build_page_data(bare, runs=runs)["changes"]} == {None}


HOSTILE = "</script><script>x()</script><!-- <img src=x onerror=x()> {{data}} \u2028 & \udce9"


class Outline(HTMLParser):
    """Tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data


def test_nothing_is_loaded_and_labels_make_no_markup(ranks: dict[str, Ranks]) -> None:
    plain, hostile = Outline(), Outline()
    data = build_page_data(ranks)
    plain.feed(render_page(data))
    other = build_page_data({HOSTILE: ranks["s0"], "=1+1": ranks["s1"], "b": ranks["s2"]})
    other["graph"] = HOSTILE
    text = render_page(other)
    hostile.feed(text)
    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in hostile.tags]
    assert json.loads(hostile.scripts[0])["models"][0] == HOSTILE
    text.encode("utf-8")
    for tag, attributes in hostile.tags:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "link":
            assert attributes["href"] == "data:,"
    policy = next(a["content"] for _, a in hostile.tags if a.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)
    assert "{{" not in render_page(data)


def test_json_for_scripts_reads_back_and_cannot_end_a_script() -> None:
    value = {"a": HOSTILE, "b": [1.5, None, math.nan, True], "</script>": "\u2029"}
    text = dump_for_script(value)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {**value, "b": [1.5, None, None, True]}


EVIL = '<img src=x onerror="window.evil=1">'
NAMES = ("</script><script>window.evil=1</script>", "TransE", "\u202eRotatE", "=cmd()")
N_RELATIONS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launched(tmp_path_factory.mktemp("profile")) as one:
        yield one
        assert one.log == []


def many_relations() -> dict[str, Ranks]:
    """Four models over labels that try to be markup."""
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.integers(0, 30, 900), rng.integers(0, N_RELATIONS, 900), rng.integers(0, 30, 900)]
    )
    rows = rng.permutation(np.unique(rows, axis=0))
    graph = kgtrec.Graph.from_arrays(
        train=rows[400:],
        test=rows[:400],
        entities=[f"e{i} {EVIL}" for i in range(30)],
        relations=[f"r{i:02} {EVIL}" for i in range(N_RELATIONS)],
    )
    questions = graph.questions()
    ranks = {}
    for number, name in enumerate(NAMES):
        scores = np.random.default_rng(number).random((len(questions), 30)).astype(np.float32)
        ranks[name] = kgtrec.evaluate(scores, questions, progress=False).ranks
    return ranks


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return build_page_data(many_relations())


@pytest.fixture(scope="module")
def url(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(data), "utf-8")
    return path.as_uri()


def opened(browser: Browser, url: str, width: int = 1200, height: int = 900) -> None:
    browser.size(width, height)
    browser.open(url)
    browser.wait("document.body.dataset.ready === 'true'")
    browser.eval("document.querySelectorAll('details.fold').forEach(fold => { fold.open = true; })")
    # Charts and labels are fitted to their space in the next frame.
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    browser.eval(f"{frames}.then(() => 0)")


def column(browser: Browser, section: str, number: int) -> list[str]:
    cells: list[str] = browser.eval(
        f"[...document.querySelectorAll('#{section} tbody tr')]"
        f".map(row => row.children[{number}].textContent)"
    )
    return cells


def same(shown: list[str], due: list[float], digits: int) -> None:
    """Printed numbers are the values, rounded."""
    assert len(shown) == len(due)
    for text, value in zip(shown, due, strict=True):
        assert len(text.partition(".")[2]) == digits
        assert abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-digits + 1e-9


def choose(browser: Browser, selects: str, place: int, value: object) -> None:
    browser.eval(
        f"(select => {{ select.value = '{value}'; select.dispatchEvent(new Event('change')); }})"
        f"(document.querySelectorAll('{selects}')[{place}])"
    )


def click_heading(browser: Browser, section: str, number: int) -> None:
    browser.eval(f"document.querySelectorAll('#{section} thead button')[{number}].click()")


def test_labels_stay_text_on_the_page_and_in_downloads(browser, url, data):
    opened(browser, url)
    assert browser.eval("window.evil") is None
    assert browser.eval("document.querySelectorAll('main img, main script').length") == 0
    shown = column(browser, "headline", 0)
    assert shown == data["short"] == shorten_names(NAMES, 28)
    tips = "[...document.querySelectorAll('#headline tbody th [data-tip]')].map(e => e.dataset.tip)"
    assert browser.eval(tips) == [NAMES[0]]
    assert column(browser, "relations", 0)[0] == data["relations"]["names"][0]
    assert EVIL in column(browser, "relations", 0)[0]
    browser.eval("window.kept = []; download = (...given) => window.kept.push(given)")
    browser.eval("document.querySelector('#headline .csv').click()")
    browser.eval("document.getElementById('all-data').click()")
    (name, text, _), (_, everything, _) = browser.eval("window.kept")
    assert name == "results.csv"
    lines = text.splitlines()
    assert lines[4].startswith("'=cmd(),")
    assert float(lines[2].split(",")[1]) == data["headline"]["values"][0][1]
    assert json.loads(everything)["models"] == list(NAMES)


def test_relations_sort_by_every_heading(browser: Browser, url: str, data: dict[str, Any]) -> None:
    opened(browser, url)
    values = data["relations"]["values"]["mrr"]
    marks = browser.eval(
        "[...document.querySelectorAll('#relations tbody tr')].map(row => "
        "[...row.children].slice(2).map(cell => cell.className))"
    )
    for number, row in enumerate(marks):
        shown = [round(values[model][number], 4) for model in range(4)]
        best = [len(set(shown)) > 1 and value == max(shown) for value in shown]
        assert [mark == "best" for mark in row] == best
    for model in range(len(NAMES)):
        click_heading(browser, "relations", 2 + model)
        due = sorted(values[model], reverse=True)[:25]
        same(column(browser, "relations", 2 + model), due, 4)
        click_heading(browser, "relations", 2 + model)
        same(column(browser, "relations", 2 + model), sorted(values[model])[:25], 4)
    headings = "[...document.querySelectorAll('#relations thead th')]"
    sorts = f"{headings}.map(th => th.getAttribute('aria-sort'))"
    assert browser.eval(sorts) == [None] * (1 + len(NAMES)) + ["ascending"]
    click_heading(browser, "relations", 0)
    assert column(browser, "relations", 0) == sorted(data["relations"]["names"])[:25]
    opened(browser, url)
    choose(browser, "#relations select", 0, "mr")
    same(column(browser, "relations", 2), data["relations"]["values"]["mr"][0][:25], 2)


def test_rows_have_pages_and_are_searched(browser: Browser, url: str) -> None:
    opened(browser, url)
    status = "document.querySelector('#relations [role=status]').textContent"
    assert browser.eval(status) == f"1 to 25 of {N_RELATIONS}"
    following = "document.querySelectorAll('#relations .pager button')[1]"
    browser.eval(f"{following}.click()")
    assert browser.eval(status) == f"26 to 50 of {N_RELATIONS}"
    browser.eval(f"{following}.click()")
    assert len(column(browser, "relations", 0)) == N_RELATIONS - 50
    assert browser.eval(f"{following}.disabled")
    browser.eval("document.querySelector('#relations input').focus()")
    browser.type("R1")
    found = sorted(name[:3] for name in column(browser, "relations", 0))
    assert found == [f"r1{i}" for i in range(10)]
    browser.type("zzz")
    assert column(browser, "relations", 0) == ["No relation matches."]
    assert browser.eval(status) == "No relation matches."
    browser.eval("document.querySelector('#relations input').select()")
    browser.type("r00")
    assert len(column(browser, "relations", 0)) == 1
    assert browser.eval(status) == "1 to 1 of 1"


def test_definitions_and_order_on_pointing_and_by_keyboard(browser: Browser, url: str) -> None:
    opened(browser, url)
    tip = "(tip => tip.hidden ? '' : tip.textContent)(document.getElementById('tip'))"
    browser.eval("document.querySelectorAll('#headline thead button')[1].focus()")
    assert "Mean of 1/rank" in browser.eval(tip)
    browser.press("Escape")
    assert browser.eval(tip) == ""
    before = column(browser, "headline", 1)
    browser.press("Enter")
    assert column(browser, "headline", 1) == sorted(before, reverse=True)
    assert browser.eval("document.activeElement.textContent") == "MRR ↑"
    browser.eval("document.querySelector('#headline').scrollIntoView({behavior: 'instant'})")
    x, y = browser.eval(
        "(box => [box.left + 5, box.top + 5])"
        "(document.querySelector('#headline tbody td').getBoundingClientRect())"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "sum w (1/r) / sum w" in browser.wait(tip)


def test_series_are_hidden_and_questions_chosen(browser: Browser, url: str) -> None:
    opened(browser, url)
    count = "document.querySelectorAll('#distribution path.line').length"
    assert browser.eval(count) == 4
    browser.eval("document.querySelector('#distribution .legend button').click()")
    assert browser.eval(count) == 3
    first = column(browser, "questions", 0)
    choose(browser, "#questions select", 1, "best")
    assert column(browser, "questions", 0) != first
    assert len(column(browser, "questions", 0)) == 20


def test_changes_of_two_models_in_either_order(browser, url, data):
    opened(browser, url)
    (pair,) = (one for one in data["changes"] if one["models"] == [0, 2])
    numbers = "[...document.querySelectorAll('#changes tbody:first-of-type')]"
    hits = f"{numbers}[0].querySelectorAll('tr')"
    row = f"[...{hits}[0].children].map(cell => cell.textContent)"
    choose(browser, "#changes select", 1, 2)
    gained, lost = pair["hits"][0][5:7]
    assert gained != lost
    assert browser.eval(row)[5:7] == [str(gained), str(lost)]
    largest = column(browser, "changes", 0)[-len(pair["largest"]) :]
    assert largest == [question for question, *_ in pair["largest"]]
    choose(browser, "#changes select", 0, 2)  # choosing the other model swaps the two
    values = "[...document.querySelectorAll('#changes select')].map(select => select.value)"
    assert browser.eval(values) == ["2", "0"]
    assert browser.eval(row)[5:7] == [str(lost), str(gained)]
    assert "Add the runs" in browser.eval("document.getElementById('changes').textContent")


def test_intervals_of_listed_predictions(browser: Browser, tmp_path: Path) -> None:
    data = build_page_data(listed_ranks(10))
    path = tmp_path / "lists.html"
    path.write_text(render_page(data), "utf-8")
    opened(browser, path.as_uri())
    keys = data["headline"]["keys"]
    mrr, hits = (keys.index(f"both.realistic.micro.{name}") for name in ("mrr", "hits@1"))
    due = ["\u2013".join(f"{end:.4f}" for end in ends) for ends in data["headline"]["ends"][mrr]]
    assert column(browser, "headline", mrr + 1) == due
    assert all(re.fullmatch(r"0\.\d{4}", text) for text in column(browser, "headline", hits + 1))
    marked = f"document.querySelectorAll('#headline td:nth-child({mrr + 2})[class*=best]').length"
    assert browser.eval(marked) == 0
    warnings = browser.eval("document.getElementById('warnings').textContent")
    assert "beyond their predicted lists" in warnings


@pytest.mark.parametrize(
    ("width", "theme"), [(320, "light"), (360, "dark"), (768, "light"), (1600, "dark")]
)
def test_it_fits_every_width(browser: Browser, url: str, width: int, theme: str) -> None:
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}]
    )
    opened(browser, url, width, 700)
    assert browser.eval("document.documentElement.scrollWidth") <= width
    for chart in ("distribution", "popularity", "comparison"):
        beyond = browser.eval(
            f"(svg => {{ const box = svg.getBoundingClientRect(); return "
            "[...svg.querySelectorAll('text')].filter(text => { const b = "
            "text.getBoundingClientRect(); return b.left < box.left - 1 || b.right > box.right + 1"
            f" || b.bottom > box.bottom + 1; }}).length; }})"
            f"(document.querySelector('#{chart} figure svg'))"
        )
        assert beyond == 0


def test_sections_fold_and_print_has_every_one_and_all_rows(browser: Browser, url: str) -> None:
    opened(browser, url)
    browser.eval(
        "document.querySelectorAll('details.fold').forEach(fold => { fold.open = false; })"
    )
    browser.eval("dispatchEvent(new Event('beforeprint'))")
    closed = "document.querySelectorAll('details.fold:not([open])').length"
    assert browser.eval(closed) == 0
    assert len(column(browser, "relations", 0)) == N_RELATIONS
    browser.eval("dispatchEvent(new Event('afterprint'))")
    assert browser.eval(closed) > 5
    assert len(column(browser, "relations", 0)) == 25
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    hidden = browser.eval("getComputedStyle(document.querySelector('.controls')).display")
    assert hidden == "none"
    assert browser.call("Page.printToPDF")["data"]
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    is_open = "document.querySelector('#questions details').open"
    assert not browser.eval(is_open)
    browser.eval("document.querySelector('a[href=\"#questions\"]').click()")
    assert browser.eval(is_open)
    browser.eval("document.getElementById('fold').click()")
    assert browser.eval(closed) == 0


def test_numbers_are_those_of_python(browser: Browser, url: str) -> None:
    opened(browser, url)
    rng = np.random.default_rng(0)
    values = [
        0.03125,
        0.09375,
        2.5,
        0.5,
        1.5,
        12345.678,
        0.00005,
        1e-9,
        *rng.random(200).tolist(),
        *(rng.integers(1, 4096, 200) / 1024).tolist(),
    ]
    for digits in (0, 2, 4):
        texts = browser.eval(f"{json.dumps(values)}.map(value => rounded(value, {digits}))")
        assert texts == [f"{value:,.{digits}f}" for value in values]
    ranks = browser.eval("[1, 1234, 2.5, null].map(rankText)")
    assert ranks == ["1", "1,234", "2.5", "\u2013"]
    assert browser.eval("[shown(0, 4), smallText(1e-9)]") == ["0", "< 0.00001"]
    zeros = "[0, -0, 1e-17, -1e-17, 4e-7, -4e-7, 6e-7].map(value => shown(value, 6))"
    assert browser.eval(zeros) == ["0", "0", "0", "0", "≈0", "≈0", "0.000001"]
    marks = "places(['0.5000', '≈0', '0', '\\u2013'], true)"
    assert browser.eval(marks) == ["best", "second", "second", ""]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, url: str, theme: str) -> None:
    place = os.environ.get("KGTREC_TEST_AXE")
    if not place:
        pytest.skip("name axe-core's axe.min.js in KGTREC_TEST_AXE")
    browser.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}]
    )
    opened(browser, url)
    browser.eval(Path(place).read_text("utf-8") + "; 0")
    faults = browser.eval(
        "axe.run().then(found => found.violations.map(v => v.id + ': ' + v.nodes.length + ' ' + "
        "v.nodes[0].html + ' ' + v.nodes[0].failureSummary))"
    )
    assert faults == []
