"""The report page in a headless Chromium: sorted, searched, clicked; skips without one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare_cases
import numpy as np
import pytest
from browser import Browser

import kgtrec
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.reporting.page import page_data, page_text

EVIL = '<img src=x onerror="window.evil=1">'
NAMES = ("</script><script>window.evil=1</script>", "TransE", "\u202eRotatE", "=cmd()")
N_RELATIONS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = Browser.find()
    if program is None:
        pytest.skip("no Chromium found: put one on PATH, or name it in KGTREC_TEST_BROWSER")
    with Browser(program, tmp_path_factory.mktemp("profile")) as one:
        yield one
        assert one.log == []


def many_relations() -> dict[str, Ranks]:
    """Four models over labels that try to be markup."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 30, 900), rng.integers(0, N_RELATIONS, 900),
                            rng.integers(0, 30, 900)])  # fmt: skip
    rows = rng.permutation(np.unique(rows, axis=0))
    graph = kgtrec.Graph.from_arrays(
        train=rows[400:], test=rows[:400],
        entities=[f"e{i} {EVIL}" for i in range(30)],
        relations=[f"r{i:02} {EVIL}" for i in range(N_RELATIONS)],
    )  # fmt: skip
    questions = graph.questions()
    ranks = {}
    for number, name in enumerate(NAMES):
        scores = np.random.default_rng(number).random((len(questions), 30)).astype(np.float32)
        ranks[name] = kgtrec.evaluate(scores, questions, progress=False).ranks
    return ranks


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return page_data(many_relations())


@pytest.fixture(scope="module")
def url(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_text(data), "utf-8")
    return path.as_uri()


def opened(browser: Browser, url: str, width: int = 1200, height: int = 900) -> None:
    browser.size(width, height)
    browser.open(url)
    browser.wait("document.body.dataset.ready === 'true'")
    browser.eval("document.querySelectorAll('details.fold').forEach(fold => { fold.open = true; })")


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


def click_heading(browser: Browser, section: str, number: int) -> None:
    browser.eval(f"document.querySelectorAll('#{section} thead button')[{number}].click()")


def test_labels_stay_text(browser: Browser, url: str, data: dict[str, Any]) -> None:
    opened(browser, url)
    assert browser.eval("window.evil") is None
    assert browser.eval("document.querySelectorAll('main img, main script').length") == 0
    shown = column(browser, "headline", 0)
    assert shown == list(NAMES)
    assert column(browser, "relations", 0)[0] == data["relations"]["names"][0]
    assert EVIL in column(browser, "relations", 0)[0]


def test_relations_sort_by_every_heading(browser: Browser, url: str, data: dict[str, Any]) -> None:
    opened(browser, url)
    values = data["relations"]["values"]["mrr"]
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


def test_pages_of_rows(browser: Browser, url: str) -> None:
    opened(browser, url)
    status = "document.querySelector('#relations [role=status]').textContent"
    assert browser.eval(status) == f"1 to 25 of {N_RELATIONS}"
    browser.eval("document.querySelectorAll('#relations .pager button')[1].click()")
    assert browser.eval(status) == f"26 to 50 of {N_RELATIONS}"
    browser.eval("document.querySelectorAll('#relations .pager button')[1].click()")
    assert len(column(browser, "relations", 0)) == N_RELATIONS - 50
    assert browser.eval("document.querySelectorAll('#relations .pager button')[1].disabled")


def test_relations_are_searched(browser: Browser, url: str) -> None:
    opened(browser, url)
    browser.eval("document.querySelector('#relations input').focus()")
    browser.type("R1")
    assert sorted(name[:3] for name in column(browser, "relations", 0)) == [
        f"r1{i}" for i in range(10)
    ]
    browser.type("zzz")
    assert column(browser, "relations", 0) == []
    status = "document.querySelector('#relations [role=status]').textContent"
    assert browser.eval(status) == "0 to 0 of 0"


def test_another_metric(browser: Browser, url: str, data: dict[str, Any]) -> None:
    opened(browser, url)
    browser.eval(
        "(select => { select.value = 'mr'; select.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#relations select'))"
    )
    due = data["relations"]["values"]["mr"][0][:25]
    same(column(browser, "relations", 2), due, 2)


def test_best_is_marked_as_in_plain_python(
    browser: Browser, url: str, data: dict[str, Any]
) -> None:
    opened(browser, url)
    marks = browser.eval(
        "[...document.querySelectorAll('#relations tbody tr')].map(row => "
        "[...row.children].slice(2).map(cell => cell.className))"
    )
    for number, row in enumerate(marks):
        shown = [round(data["relations"]["values"]["mrr"][m][number], 4) for m in range(4)]
        distinct = sorted(set(shown), reverse=True)
        for value, mark in zip(shown, row, strict=True):
            best = len(distinct) > 1 and value == distinct[0]
            assert (mark == "best") == best


def test_definitions_on_pointing_and_by_keyboard(browser: Browser, url: str) -> None:
    opened(browser, url)
    tip = "(tip => tip.hidden ? '' : tip.textContent)(document.getElementById('tip'))"
    browser.eval("document.querySelectorAll('#headline thead button')[1].focus()")
    assert "Mean of 1/rank" in browser.eval(tip)
    browser.press("Escape")
    assert browser.eval(tip) == ""
    browser.eval("document.querySelector('#headline').scrollIntoView({behavior: 'instant'})")
    x, y = browser.eval(
        "(box => [box.left + 5, box.top + 5])"
        "(document.querySelector('#headline tbody td').getBoundingClientRect())"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "sum w (1/r) / sum w" in browser.wait(tip)


def test_headings_are_sorted_by_the_enter_key(browser: Browser, url: str) -> None:
    opened(browser, url)
    browser.eval("document.querySelectorAll('#headline thead button')[1].focus()")
    before = column(browser, "headline", 1)
    browser.press("Enter")
    assert column(browser, "headline", 1) == sorted(before, reverse=True)
    assert browser.eval("document.activeElement.textContent") == "MRR"


def test_downloads_hold_what_is_shown(browser: Browser, url: str, data: dict[str, Any]) -> None:
    opened(browser, url)
    browser.eval("window.kept = []; download = (...given) => window.kept.push(given)")
    browser.eval("document.querySelector('#headline .csv').click()")
    browser.eval("document.getElementById('all-data').click()")
    (name, text, _), (_, everything, _) = browser.eval("window.kept")
    assert name == "results.csv"
    lines = text.splitlines()
    assert lines[4].startswith("'=cmd(),")
    assert float(lines[2].split(",")[1]) == data["headline"]["values"][0][1]
    assert json.loads(everything)["models"] == list(NAMES)


def test_series_are_hidden_and_questions_chosen(browser: Browser, url: str) -> None:
    opened(browser, url)
    count = "document.querySelectorAll('#distribution path.line').length"
    assert browser.eval(count) == 4
    browser.eval("document.querySelector('#distribution .legend button').click()")
    assert browser.eval(count) == 3
    first = column(browser, "questions", 0)
    browser.eval(
        "(select => { select.value = 'best'; select.dispatchEvent(new Event('change')); })"
        "(document.querySelectorAll('#questions select')[1])"
    )
    assert column(browser, "questions", 0) != first
    assert len(column(browser, "questions", 0)) == 20


def test_changes_of_two_models_in_either_order(
    browser: Browser, url: str, data: dict[str, Any]
) -> None:
    opened(browser, url)
    (pair,) = (one for one in data["changes"] if one["models"] == [0, 2])
    numbers = "[...document.querySelectorAll('#changes tbody:first-of-type')]"
    hits = f"{numbers}[0].querySelectorAll('tr')"
    row = f"[...{hits}[0].children].map(cell => cell.textContent)"

    def select(place: int, value: int) -> None:
        browser.eval(
            f"(select => {{ select.value = '{value}'; "
            "select.dispatchEvent(new Event('change')); })"
            f"(document.querySelectorAll('#changes select')[{place}])"
        )

    select(1, 2)
    gained, lost = pair["hits"][0][5:7]
    assert gained != lost
    assert browser.eval(row)[5:7] == [str(gained), str(lost)]
    largest = column(browser, "changes", 0)[-len(pair["largest"]) :]
    assert largest == [question for question, *_ in pair["largest"]]
    select(0, 2)  # choosing the other model swaps the two
    values = "[...document.querySelectorAll('#changes select')].map(select => select.value)"
    assert browser.eval(values) == ["2", "0"]
    assert browser.eval(row)[5:7] == [str(lost), str(gained)]
    assert "Add the runs" in browser.eval("document.getElementById('changes').textContent")


def test_intervals_of_listed_predictions(browser: Browser, tmp_path: Path) -> None:
    questions = compare_cases.graph().questions("test")
    listed = {}
    for seed, name in enumerate(("a", "b")):
        scores = np.random.default_rng(seed).random((len(questions), 40))
        run = kgtrec.evaluate(scores, questions, run_depth=10, progress=False).run
        listed[name] = kgtrec.rank_lists(run, questions)
    data = page_data(listed)
    path = tmp_path / "lists.html"
    path.write_text(page_text(data), "utf-8")
    opened(browser, path.as_uri())
    keys = data["headline"]["keys"]
    mrr, hits = (keys.index(f"both.realistic.micro.{name}") for name in ("mrr", "hits@1"))
    due = ["\u2013".join(f"{end:.4f}" for end in ends) for ends in data["headline"]["ends"][mrr]]
    assert column(browser, "headline", mrr + 1) == due
    assert all(re.fullmatch(r"0\.\d{4}", text) for text in column(browser, "headline", hits + 1))
    marked = browser.eval(
        f"document.querySelectorAll('#headline td:nth-child({mrr + 2})[class*=best]').length"
    )
    assert marked == 0
    assert "beyond their predicted lists" in browser.eval(
        "document.getElementById('warnings').textContent"
    )


@pytest.mark.parametrize("width", [320, 360, 768, 1600])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_every_width(browser: Browser, url: str, width: int, theme: str) -> None:
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": theme}])  # fmt: skip
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


def test_it_prints(browser: Browser, url: str) -> None:
    opened(browser, url)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    hidden = browser.eval("getComputedStyle(document.querySelector('.controls')).display")
    assert hidden == "none"
    assert browser.call("Page.printToPDF")["data"]
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def test_print_has_every_section_and_row(browser: Browser, url: str) -> None:
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


def test_sections_fold_and_links_open_them(browser: Browser, url: str) -> None:
    browser.size(1200, 900)
    browser.open(url)
    browser.wait("document.body.dataset.ready === 'true'")
    is_open = "document.querySelector('#questions details').open"
    assert not browser.eval(is_open)
    browser.eval("document.querySelector('a[href=\"#questions\"]').click()")
    assert browser.eval(is_open)
    browser.eval("document.getElementById('fold').click()")
    assert browser.eval("document.querySelectorAll('details.fold:not([open])').length") == 0


def test_numbers_are_those_of_python(browser: Browser, url: str) -> None:
    opened(browser, url)
    rng = np.random.default_rng(0)
    values = [0.03125, 0.09375, 2.5, 0.5, 1.5, 12345.678, 0.00005, 1e-9, *rng.random(200).tolist(),
              *(rng.integers(1, 4096, 200) / 1024).tolist()]  # fmt: skip
    for digits in (0, 2, 4):
        texts = browser.eval(f"{json.dumps(values)}.map(value => rounded(value, {digits}))")
        assert texts == [f"{value:,.{digits}f}" for value in values]
    ranks = browser.eval("[1, 1234, 2.5, null].map(rankText)")
    assert ranks == ["1", "1,234", "2.5", "\u2013"]
    assert browser.eval("[shown(0, 4), smallText(1e-9)]") == ["0", "< 0.00001"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, url: str, theme: str) -> None:
    place = os.environ.get("KGTREC_TEST_AXE")
    if not place:
        pytest.skip("name axe-core's axe.min.js in KGTREC_TEST_AXE")
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": theme}])  # fmt: skip
    opened(browser, url)
    browser.eval(Path(place).read_text("utf-8") + "; 0")
    faults = browser.eval(
        "axe.run().then(found => found.violations.map(v => v.id + ': ' + v.nodes.length + ' ' + "
        "v.nodes[0].html + ' ' + v.nodes[0].failureSummary))"
    )
    assert faults == []
