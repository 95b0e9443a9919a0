"""The layout of the report page with many models and long names, on phones and on paper."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from browser import Browser, launched

import kgtrec
from kgtrec._internal.text import shorten_names
from kgtrec.study.reporting.builder import build_page_data
from kgtrec.study.reporting.page import render_page

N_MODELS, N_RELATIONS = 12, 40
NAMES = [f"experiments-2026_transe_margin-{k:02}.5_batch-1024_seed-17" for k in range(N_MODELS)]
RELATIONS = [
    f"/{domain}/a_long_group_of_properties./{domain}/property_{i:02}/of_some_longer_kind"
    for i, domain in enumerate(["film", "people", "location", "award"] * (N_RELATIONS // 4))
]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    facts = rng.integers(0, (90, N_RELATIONS, 90), (1500, 3))
    rows = rng.permutation(np.unique(facts, axis=0))
    graph = kgtrec.Graph.from_arrays(
        train=rows[400:],
        test=rows[:400],
        entities=[f"/m/entity_{i:03}" for i in range(90)],
        relations=RELATIONS,
    )
    questions = graph.questions()
    ranks = {}
    for number, name in enumerate(NAMES):
        scores = rng.random((len(questions), 90), dtype=np.float32)
        for row, answers in enumerate(questions.answers):
            scores[row, answers] += 0.1 + 0.05 * number
        ranks[name] = kgtrec.evaluate(scores, questions, progress=False).ranks
    return build_page_data(ranks, graph=graph)


@pytest.fixture(scope="module")
def url(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("layout") / "report.html"
    path.write_text(render_page(data), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launched(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
        assert browser.log == []


def show(browser: Browser, url: str, width: int, height: int = 844) -> None:
    """Open the page with all sections and tables open, as a phone if it is narrow."""
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=2,
        mobile=width < 600,
    )
    browser.open(url)
    browser.wait("document.body.dataset.ready === 'true'")
    browser.eval("document.querySelectorAll('details').forEach(box => { box.open = true; })")
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    browser.eval(f"{frames}.then(() => 0)")


SEEN = (
    "(element => [...element.childNodes].map(node => node.className === 'gone' ? '…' : "
    "node.textContent).join(''))"
)
"""The text of a label that readers see."""


def test_long_names_are_short_where_space_is_and_the_summary_names_the_best(
    data: dict[str, Any],
) -> None:
    assert data["short"] == shorten_names(NAMES, 28)
    assert all(f"margin-{k:02}.5" in text for k, text in enumerate(data["short"]))
    (averages,) = (text for text in data["summary"] if "Micro or macro?" in text)
    best = data["comparisons"][0]["order"][0]
    assert [name for name in NAMES if name in averages] == [NAMES[best]]
    labels = [comparison["label"] for comparison in data["comparisons"]]
    assert labels == ["MRR, micro", "Hits@10, micro", "MRR, macro"]


def luminance(colour: str) -> float:
    """The relative luminance of a colour such as #1b1d21, as WCAG defines it."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


STYLE = (resources.files("kgtrec.study.reporting") / "assets" / "report.css").read_text("utf-8")


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_of_colours(scheme: int) -> None:
    block = re.findall(r":root \{(.*?)\}", STYLE, re.S)[scheme]
    colours = dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{3,6});", block))
    for paper in ("paper", "card", "best"):
        for ink in ("ink", "quiet"):
            assert contrast(colours[ink], colours[paper]) >= 7
    assert contrast(colours["accent"], colours["paper"]) >= 7
    assert contrast(colours["alarm"], colours["alarm-paper"]) >= 7
    for line in ("edge", *(f"s{number}" for number in range(7))):
        assert contrast(colours[line], colours["paper"]) >= 3


def test_numbers_are_not_underlined(browser: Browser, url: str) -> None:
    assert "underline" not in "".join(re.findall(r"^t[dh][^{]*\{[^}]*\}", STYLE, re.M))
    show(browser, url, 1200)
    second = "[...document.querySelectorAll('td.second, td.second *')]"
    assert browser.eval(f"{second}.length") > 0
    lines = f"[...new Set({second}.map(e => getComputedStyle(e).textDecorationLine))]"
    assert browser.eval(lines) == ["none"]
    described = "document.querySelector('td.second').getAttribute('aria-description')"
    assert browser.eval(described) == "second best"


def test_arrows_show_what_is_better_and_selectors_have_titles(browser: Browser, url: str) -> None:
    show(browser, url, 1200)
    headings = "[...document.querySelectorAll('#headline thead tr:last-child th')]"
    texts = browser.eval(f"{headings}.map(cell => cell.textContent)")
    assert texts[:7] == ["Model", "MRR ↑", "Hits@1 ↑", "Hits@3 ↑", "Hits@10 ↑", "MR ↓", "AMRI ↑"]
    options = browser.eval("[...document.querySelectorAll('option')].map(each => each.textContent)")
    assert not any("realistic" in text for text in options)
    assert {"MRR", "MR", "MRR, micro", "MRR, macro"} < {*options}
    last = "'#parts .part > svg > text:last-of-type'"
    axis = f"[...document.querySelectorAll({last})].map(text => text.textContent)"
    assert {*browser.eval(axis)} == {"MRR ↑"}
    browser.eval(
        "(select => { select.value = 'mr'; select.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#parts select'))"
    )
    assert {*browser.eval(axis)} == {"MR ↓"}
    caption = browser.eval("document.querySelector('#parts table caption').textContent")
    assert caption.startswith("MR ↓ of every model")


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_names_and_labels_keep_what_differs(
    browser: Browser, url: str, data: dict[str, Any], width: int
) -> None:
    show(browser, url, width)
    assert browser.eval("document.documentElement.scrollWidth") <= width
    for place in ("#headline tbody th .entry", "#parts .part:first-child .legend .entry"):
        names = f"[...document.querySelectorAll('{place}')].map(entry => entry.textContent)"
        assert browser.eval(names) == data["short"]
    labels = f"[...document.querySelectorAll('#relations tbody th .label')].map({SEEN})"
    whole = "[...document.querySelectorAll('#relations tbody th')].map(cell => cell.textContent)"
    assert len({*browser.eval(labels)}) == len({*browser.eval(whole)}) == 25
    assert {*browser.eval(whole)} < {*RELATIONS}
    rows = "[...document.querySelectorAll('#comparison svg .row')]"
    seen = browser.eval(f"{rows}.map(name => name.firstChild.data)")
    assert [NAMES[data["short"].index(text)] for text in seen] == [
        NAMES[model] for model in data["comparisons"][0]["order"]
    ]


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_markers_are_beside_names_and_labels_within_cells(
    browser: Browser, url: str, width: int
) -> None:
    show(browser, url, width)
    apart = browser.eval(
        "[...document.querySelectorAll('.entry, .legend button')].map(entry => { const box = part "
        "=> entry.querySelector(part).getBoundingClientRect(), a = box('.sample'), b = box('bdi');"
        "return [a.right - b.left, Math.max(a.top - b.bottom, b.top - a.bottom)]; })"
    )
    assert len(apart) > 3 * N_MODELS
    assert all(sideways <= 0 and below < 0 for sideways, below in apart)
    beyond = browser.eval(
        "[...document.querySelectorAll('tbody .label, tbody .entry bdi')].filter(label => { const "
        "range = document.createRange(); range.selectNodeContents(label); return "
        "range.getBoundingClientRect().right > "
        "label.closest('td, th').getBoundingClientRect().right + 0.5; }).length"
    )
    assert beyond == 0


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_axes_have_three_ticks_that_do_not_meet(browser: Browser, url: str, width: int) -> None:
    show(browser, url, width)
    for metric in ("mrr", "hits@10", "mr"):
        for section in ("parts", "popularity"):
            browser.eval(
                f"(select => {{ select.value = '{metric}'; "
                "select.dispatchEvent(new Event('change')); })"
                f"(document.querySelector('#{section} select'))"
            )
        charts = browser.eval(
            "[...document.querySelectorAll('figure .part > svg')].map(chart => "
            "[...chart.querySelectorAll('text.x')].map(text => { const box = "
            "text.getBoundingClientRect(); return [box.left, box.right]; }))"
        )
        assert len(charts) > 4
        for ticks in charts:
            assert len(ticks) >= 3
            assert all(a[1] < b[0] for a, b in pairwise(ticks))


def test_ticks_of_any_range(browser: Browser, url: str) -> None:
    show(browser, url, 1200)
    rng = np.random.default_rng(2)
    for low, high in [(0.2, 0.21), (0, 1), (3, 3.5), *rng.random((40, 2)).cumsum(axis=1).tolist()]:
        for count in (3, 5, 6):
            values = browser.eval(f"ticks({low}, {high}, {count})")
            assert 3 <= len(values) <= 2 * count + 3
            assert all(low - 1e-9 <= value <= high + 1e-9 for value in values)
            steps = np.diff(values)
            assert steps == pytest.approx(steps[0])
    for low, high in [(1, 14541), (14, 1843), (0.5, 40), (30, 95), (5, 8), (120, 190)]:
        values = browser.eval(f"powers({low}, {high})")
        assert len(values) >= 3
        assert values == sorted(values)
        assert all(low <= value <= high for value in values)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1200, 700)])
def test_parts_of_a_chart_fit_the_window_and_repeat_axis_and_legend(
    browser: Browser, url: str, data: dict[str, Any], width: int, height: int
) -> None:
    show(browser, url, width, height)
    parts = browser.eval(
        "[...document.querySelectorAll('#parts .part')].map(part => [part.clientHeight, "
        "part.querySelectorAll('.legend li').length, part.querySelectorAll('text.x').length, "
        "part.querySelectorAll('.row').length])"
    )
    assert len(parts) > 2
    assert sum(rows for *_, rows in parts) == len(data["parts"]["names"])
    assert all(high <= height and entries == N_MODELS for high, entries, _, _ in parts)
    assert len({ticks for _, _, ticks, _ in parts}) == 1
    first = "chart.querySelector('.x')"
    scale = f"{first}.textContent + ' at ' + {first}.getAttribute('x')"
    charts = f"[...document.querySelectorAll('#parts .part > svg')].map(chart => {scale})"
    assert len({*browser.eval(charts)}) == 1


def test_nothing_is_requested(browser: Browser, url: str) -> None:
    browser.requests.clear()
    show(browser, url, 1200)
    assert {*browser.requests} == {url}


@dataclass(frozen=True)
class Word:
    """A word of a printed sheet, with its edges as shares of the sheet's width and height."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


_PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.S)
_WORD = re.compile(
    r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">([^<]*)<'
)


def print_words(browser: Browser, url: str, folder: Path) -> list[list[Word]]:
    """Print the page on A4; return the words of each sheet."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler) reads the printed page")
    browser.size(1200, 900)
    browser.open(url)
    browser.wait("document.body.dataset.ready === 'true'")
    printed = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    (folder / "page.pdf").write_bytes(base64.b64decode(printed))
    subprocess.run(["pdftotext", "-bbox", "page.pdf", "page.html"], cwd=folder, check=True)
    sheets = []
    for width, height, words in _PAGE.findall((folder / "page.html").read_text("utf-8")):
        scale = [float(width), float(height)] * 2
        sheets.append(
            [
                Word(*(float(edge) / by for edge, by in zip(edges, scale, strict=True)), text)
                for *edges, text in _WORD.findall(words)
            ]
        )
    return sheets


SECTIONS = {"Summary", "Results", "Sides", "Relations", "Popularity", "Comparison", "Which", "Ties"}


def test_paper_has_every_column_and_no_half_empty_sheet(
    browser: Browser, url: str, data: dict[str, Any], tmp_path: Path
) -> None:
    sheets = print_words(browser, url, tmp_path)
    assert len(sheets) > 5
    found = set()
    for number, sheet in enumerate(sheets):
        assert max(word.right for word in sheet) < 0.99
        last = max(word.bottom for word in sheet)
        assert last > 0.55 or number == len(sheets) - 1
        usual = median(word.bottom - word.top for word in sheet)
        for word in sheet:
            if word.text in SECTIONS and word.bottom - word.top > 1.4 * usual:
                found.add(word.text)
                assert last > word.bottom + 0.08  # its section begins below it
    assert found == SECTIONS
    # A part of a chart never needs more than a third of a sheet, so less than that stays empty.
    browser.eval("dispatchEvent(new Event('beforeprint'))")
    charts = browser.eval(
        "[...document.querySelectorAll('.part > svg')].map(chart => chart.height.baseVal.value)"
    )
    assert len(charts) > 5
    assert max(charts) < 350
    # A table of twelve models is in blocks of columns: every number of every row is on paper.
    texts = {word.text for sheet in sheets for word in sheet}
    for values in data["relations"]["values"]["mrr"]:
        assert {f"{value:.4f}" for value in values} <= texts
    browser.eval("dispatchEvent(new Event('afterprint'))")
    assert browser.eval("document.querySelectorAll('.further').length") == 0
    headings = browser.eval("document.querySelectorAll('#relations thead th').length")
    assert headings == 3 + N_MODELS
