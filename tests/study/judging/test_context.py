"""Links and facts beside a triple that is judged."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import Browser
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from judge_helpers import Running

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import KgtrecError, UsageError
from kgtrec.study.judging.questions import Context, EntityFacts, Names, check_link

TRAIN = [("a", "r", "b"), ("a", "r", "c"), ("c", "s", "a"), ("a", "s", "b"), ("b", "r", "c")]


@pytest.mark.parametrize("template", [
    "https://x.org/{label}", "http://x.org/a?q={label}&b=1", "https://x.org:80/#{label}",
])  # fmt: skip
def test_templates(template: str) -> None:
    assert check_link(template) == template


@pytest.mark.parametrize("template", [
    "javascript:alert({label})", "https://{label}/x", "https://x.org{label}", "ftp://x.org/{label}",
    "https://x.org/", "https://x.org/{label}/{label}", "https://x.org/{name}", "", "{label}",
    "https://a@b.org/{label}", "https://x.org/ {label}",
])  # fmt: skip
def test_what_is_not_a_template(template: str) -> None:
    with pytest.raises(UsageError, match="is not a template"):
        check_link(template)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_label_leads_elsewhere(label: str) -> None:
    link = Context("https://x.org/w/{label}?b=1").of(label, "r", "t")["head"]
    assert isinstance(link, dict)
    parts = urlsplit(link["link"])
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == (
        "https",
        "x.org",
        "b=1",
        "",
    )
    assert unquote(parts.path) == "/w/" + label.removeprefix("/")


def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph").mkdir()
    lines = "".join(f"{h}\t{r}\t{t}\n" for h, r, t in TRAIN)
    (tmp_path / "graph/train.txt").write_text(lines)
    (tmp_path / "graph/test.txt").write_text("b\ts\tc\n")
    return tmp_path / "graph"


def test_facts_are_of_different_relations_first_and_never_what_is_asked(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path), progress=False)
    for most in (1, 2, 3, 10):
        facts = EntityFacts(graph, Names({"b": "Bee"}), most)
        for entity in "abc":
            for triple in [*TRAIN, ("b", "s", "c")]:
                listed = facts.of(entity, triple)
                own = [t for t in TRAIN if entity in (t[0], t[2]) and t != triple]
                assert len(listed) == min(most, len(own))
                plain = [tuple("b" if x == "Bee" else x for x in fact) for fact in listed]
                assert set(plain) <= set(own)
                kinds = {(r, h == entity) for h, r, _ in own}
                shown = {(r, h == entity) for h, r, _ in plain}
                own_kind = int((triple[1], triple[0] == entity) not in kinds)
                assert len(shown) >= min(most, len(kinds) + own_kind - 1)
    assert EntityFacts(graph, Names()).of("nobody", ("a", "r", "b")) == []


@pytest.mark.parametrize(("options", "said"), [
    (("--link", "https://x.org/"), "is not a template"),
    (("--facts", "3"), "add --graph DIR"),
    (("--names", "n.tsv"), "add --graph DIR"),
    (("--graph", "nowhere"), "nowhere"),
])  # fmt: skip
def test_wrong_calls(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    sheet = tmp_path / "s.tsv"
    sheet.write_text("question\thead\trelation\ttail\tlabel\tevidence\tnote\nq\ta\tr\tb\t\t\t\n")
    with pytest.raises(KgtrecError) as caught:
        CliRunner().invoke(cli, ["judge", "serve", str(sheet), *options], catch_exceptions=False)
    assert said in str(caught.value)


def test_they_are_on_the_page(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    program = Browser.find()
    if program is None:
        pytest.skip("no Chromium found: put one on PATH, or name it in KGTREC_TEST_BROWSER")
    sheet = tmp_path / "s.tsv"
    text = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"
    sheet.write_text(text + "".join(f"Is it so ({i})?\ta\tr\tb\t\t\t\n"[:] for i in range(1)))
    more = ("--link", "https://x.org/{label}", "--graph", str(folder(tmp_path)))
    with (
        Browser(program, tmp_path_factory.mktemp("profile")) as browser,
        Running(sheet, *more) as server,
    ):
        browser.open(server.url)
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
        assert browser.log == []
