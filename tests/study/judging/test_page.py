"""The judging page in a headless Chromium, driven by keys; these tests skip without a browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from judge_helpers import Client, Running, Serving, write_graph, write_rows

from kgtrec.study.judging.journal import judged_sheet

DONE = "document.getElementById('done').textContent"


QUESTION = "document.getElementById('question').textContent"


PLACE = "document.getElementById('place').textContent"


FOCUS = "document.activeElement.id"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = a_browser()
    with Browser(program, tmp_path_factory.mktemp("profile")) as one:
        yield one
        faults = [entry for entry in one.log if "ERR_CONNECTION" not in str(entry)]
        faults = [entry for entry in faults if "403" not in str(entry)]
        assert faults == []


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "s.tsv")


def a_browser() -> str:
    """A program; without one, the test skips with a reason."""
    return Browser.find() or pytest.skip(
        "this test needs a browser: put a Chromium on PATH, or name it in KGTREC_TEST_BROWSER"
    )


def open_page(browser: Browser, server: Client) -> None:
    # Chromium asks before it leaves a page with unsaved data; a crash does not.
    browser.eval("window.onbeforeunload = null")
    browser.open(server.url)
    browser.wait(f"{PLACE} !== ''")


def done(browser: Browser, number: int, total: int = 6) -> None:
    browser.wait(f"{DONE} === '{number} of {total} judged'")
    assert browser.eval("document.getElementById('bar').value") == number


def labels(sheet: Path) -> list[str]:
    return [item.label for item in judged_sheet(sheet).items]


def test_a_sheet_is_judged_by_keyboard(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        assert browser.eval(QUESTION) == "Is e0 a friend of f0?"
        for number, key in enumerate(["y", "n", "?", "Y"], start=1):
            browser.press(key, modifiers=8 * (key in "?Y"))
            done(browser, number)
            assert labels(sheet)[:number] == list("YN?Y")[:number]
        assert browser.eval(QUESTION) == "Is e4 a friend of f4?"
        browser.press("u")
        done(browser, 3)
        assert browser.eval(PLACE) == "Triple 4 of 6"
        browser.press("u")
        done(browser, 2)
        assert labels(sheet) == ["Y", "N", "", "", "", ""]
        open_page(browser, server)  # as in another browser, after a crash
        done(browser, 2)
        assert browser.eval(PLACE) == "Triple 3 of 6"
        browser.press("ArrowLeft")
        browser.wait(f"{PLACE} === 'Triple 2 of 6'")
        assert browser.eval("document.querySelector('[aria-pressed=true]').dataset.label") == "N"
        browser.press("y")  # changed, and on to the next open one
        browser.wait(f"{PLACE} === 'Triple 3 of 6'")
        browser.press("ArrowRight")
        browser.wait(f"{PLACE} === 'Triple 4 of 6'")
        for number in range(3, 7):
            browser.press("/")
            done(browser, number)
        browser.wait("!document.getElementById('finished').hidden")
        assert browser.eval(FOCUS) == "finished"
        assert labels(sheet) == ["Y", "Y", "?", "?", "?", "?"]
        assert (sheet.parent / "s.judged.tsv").exists()
        browser.press("u")
        done(browser, 5)
        assert browser.eval("document.getElementById('finished').hidden") is True


def test_links_and_notes_are_kept_as_they_are_typed(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        browser.press("e")
        assert browser.eval(FOCUS) == "evidence"
        browser.type("example.org/y")  # the letter y is text here
        browser.wait("document.getElementById('hint').textContent.includes('not look like')")
        browser.wait("document.getElementById('saved').textContent.startsWith('Saved: evid')")
        assert (labels(sheet)[0], judged_sheet(sheet).items[0].evidence) == ("", "example.org/y")
        assert browser.eval(FOCUS) == "evidence"
        browser.press("Tab")
        assert browser.eval(FOCUS) == "note"
        browser.type("seen <b>twice</b>")
        browser.press("Enter")
        browser.press("y")  # at once, while the note may still be in transit
        done(browser, 1)
        first = judged_sheet(sheet).items[0]
        assert (first.label, first.evidence, first.note) == (
            "Y", "example.org/y", "seen <b>twice</b>",
        )  # fmt: skip
        assert browser.eval("document.getElementById('evidence').value") == ""
        browser.press("ArrowLeft")
        browser.wait("document.getElementById('note').value === 'seen <b>twice</b>'")


@pytest.mark.slow
def test_a_killed_browser_loses_nothing(sheet: Path, tmp_path: Path):
    program = a_browser()
    with Serving(sheet) as server:
        with Browser(program, tmp_path / "one") as first:
            open_page(first, server)
            first.press("n")
            done(first, 1)
            first.press("y")
            done(first, 2)
        with Browser(program, tmp_path / "two") as second:
            open_page(second, server)
            done(second, 2)
            assert second.eval(PLACE) == "Triple 3 of 6"
            second.press("u")
            done(second, 1)
    assert labels(sheet) == ["N", "", "", "", "", ""]


def test_a_killed_server_is_waited_for(browser: Browser, sheet: Path):
    with Running(sheet) as server:
        open_page(browser, server)
        browser.press("y")
        done(browser, 1)
        server.kill()
        browser.press("n")
        browser.wait("document.getElementById('alarm').textContent.startsWith('Not saved yet')")
        assert browser.eval(PLACE) == "Triple 2 of 6"
        browser.press("y")  # about the same triple: the first label stays
        with Running(sheet, port=server.port):  # which accepts the page again
            done(browser, 2)
            browser.wait("document.getElementById('alarm').hidden")
            assert labels(sheet) == ["Y", "N", "", "", "", ""]


def test_keys_that_are_held_or_meant_for_the_browser_do_nothing(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        browser.press("y", repeat=True)
        browser.press("n", modifiers=2)  # Ctrl
        browser.press("x")
        time.sleep(0.2)
        assert labels(sheet) == [""] * 6
        browser.eval("document.getElementById('keys').click()")
        browser.press("y")
        time.sleep(0.2)
        assert labels(sheet) == [""] * 6
        assert browser.eval("getComputedStyle(document.querySelector('kbd')).display") == "none"


def test_it_works_by_tab_and_enter_alone(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        browser.eval("document.getElementById('keys').click()")
        browser.eval("document.getElementById('question').focus()")
        reached = []
        for _ in range(9):
            browser.press("Tab")
            reached.append(browser.eval(
                "document.activeElement.dataset.label || document.activeElement.id"
            ))  # fmt: skip
        order = ["Y", "N", "?", "evidence", "note", "forth", "jump", "keys"]
        assert reached[: len(order)] == order
        browser.eval("document.getElementById('question').focus()")
        browser.press("Tab")
        browser.press("Tab")
        browser.press("Enter")
        done(browser, 1)
        assert labels(sheet)[0] == "N"
        assert browser.eval(FOCUS) == "question"  # where screen readers read the next question
        assert browser.eval("document.getElementById('saved').textContent") == (
            "Saved: No for triple 1."
        )


CONTRAST = """
(() => {
  const light = (rgb) => rgb.match(/[\\d.]+/g).slice(0, 3)
    .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = (node) => {
    const colour = getComputedStyle(node).backgroundColor;
    return /, 0\\)$/.test(colour) ? paper(node.parentElement) : colour;
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!text || !node.offsetParent || node.closest(":disabled")) continue;
    const pair = [light(getComputedStyle(node).color), light(paper(node))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 7) bad.push([node.id || node.tagName, ratio]);
  }
  return bad;
})()
"""


def test_it_can_be_read(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        unnamed = """[...document.querySelectorAll("button, input, progress")].filter((node) =>
            !(node.textContent.trim() || node.labels?.length || node.ariaLabel
              || node.getAttribute("aria-labelledby"))).length"""
        assert browser.eval(unnamed) == 0
        assert browser.eval("document.documentElement.lang") == "en"
        browser.press("y")
        done(browser, 1)
        browser.press("ArrowLeft")
        browser.wait(f"{PLACE} === 'Triple 1 of 6'")
        for scheme in ("light", "dark"):
            media = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.call("Emulation.setEmulatedMedia", features=media)
            assert browser.eval(CONTRAST) == []
        browser.call("Emulation.setEmulatedMedia", features=[])
        for width, font in ((320, 16), (1000, 32)):  # a small window, and letters twice as large
            browser.size(width, 800)
            browser.eval(f"document.documentElement.style.fontSize = '{font}px'")
            assert browser.eval("document.documentElement.scrollWidth") <= width
        browser.size(1000, 900)


def test_nothing_of_a_sheet_is_taken_for_a_page(browser: Browser, tmp_path: Path):
    sheet = write_rows(tmp_path / "s.tsv", 1)
    evil = "<img src=x onerror=document.title=1>"
    sheet.write_text(sheet.read_text().replace("Is e0", evil).replace("\te0", f"\t{evil}"))
    with Serving(sheet) as server:
        open_page(browser, server)
        assert evil in browser.eval(QUESTION)
        assert browser.eval("document.getElementById('head').textContent") == evil
        assert browser.eval("document.images.length") == 0


def test_links_and_facts_are_on_the_page(browser: Browser, tmp_path: Path) -> None:
    sheet = tmp_path / "s.tsv"
    header = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"
    sheet.write_text(f"{header}Is it so?\ta\tr\tb\t\t\t\n")
    more = ("--link", "https://x.org/{label}", "--graph", str(write_graph(tmp_path)))
    with Running(sheet, *more) as server:
        open_page(browser, server)
        browser.wait("document.querySelectorAll('.triple a').length === 2")
        link = browser.eval(
            "(a => [a.href, a.target, a.rel, a.ariaLabel])(document.querySelector('.triple a'))"
        )
        assert link == ["https://x.org/a", "_blank", "noopener noreferrer",
                        "Look up a in a new tab"]  # fmt: skip
        lines = browser.eval(
            "[...document.querySelectorAll('#about li')].map(li => li.textContent)"
        )
        assert "a r c " in lines
        assert "a r b " not in lines
        for width in (320, 1000):
            browser.size(width, 320)
            assert browser.eval("document.documentElement.scrollWidth") <= width
            beyond = (
                "[...document.querySelectorAll('.answers button')].filter(button => { const box = "
                "button.getBoundingClientRect(); return box.top < 0 || box.bottom > innerHeight; })"
                ".length"
            )
            for place in (0, 60, 120):
                browser.eval(f"scrollTo(0, {place})")
                assert browser.eval(beyond) == 0
        browser.size(1000, 900)
