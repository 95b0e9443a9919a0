"""The judging server and its journal: it loses no acknowledged label, and lets nobody else in."""

from __future__ import annotations

import errno
import json
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest
from browser import Browser, launched
from click.testing import CliRunner
from judge_helpers import PATIENCE, Client, Running, Serving, write_graph, write_rows
from refusals import each_row

from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.study.judging.journal import Journal, JudgingError, journal_path, judged_sheet
from kgtrec.study.judging.server import JudgeServer, sheet_token
from kgtrec.study.judging.sheets import read_sheet

HOST = b"Host: localhost\r\n"


def labels(sheet: Path) -> list[str]:
    """Labels of a written sheet, or of one that is being judged."""
    read = read_sheet if sheet.name.endswith(".judged.tsv") else judged_sheet
    return [item.label for item in read(sheet).items]


def slow_replay(rows: int, text: str) -> list[tuple[str, str, str]]:
    """The meaning of complete lines of a journal, by definition: labels count unless an undo has
    removed them."""
    entries = [json.loads(line) for line in text.split("\n")[1:-1]]
    state = [("", "", "")] * rows
    changes: list[tuple[int, str]] = []
    for entry in entries:
        if entry.get("undo"):
            row, _ = changes.pop()
            left = [label for other, label in changes if other == row]
            state[row] = (left[-1] if left else "", *state[row][1:])
        else:
            row = entry["row"]
            if state[row][0] != entry["label"]:
                changes.append((row, entry["label"]))
            state[row] = (entry["label"], entry["evidence"], entry["note"])
    return state


# -- The journal -------------------------------------------------------------------------------


def test_answers_survive_and_the_sheet_is_left_alone(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv")
    path.write_text(path.read_text().replace("\tf0\t\t", "\tf0\tN\t"))
    before = path.read_bytes()
    with Journal(path) as journal:
        assert not journal.can_undo
        journal.answer(1, "Y", "http://a", "note")
        journal.answer(3, "?")
        journal.answer(1, "N", "http://a", "note")
        assert [journal.open_row(after) for after in (-1, 2, 3, 5, 9)] == [2, 4, 4, 2, 2]
    with Journal(path) as journal:
        assert [item.label for item in journal.items] == ["N", "N", "", "?", "", ""]
        assert (journal.undo(), journal.items[1].label) == (1, "Y")
        assert (journal.undo(), journal.items[3].label) == (3, "")
        journal.answer(0, "Y")
        assert (journal.undo(), journal.items[0].label) == (0, "N")
        assert (journal.undo(), journal.items[1].label) == (1, "")
        assert journal.undo() is None
        assert journal.items[1].note == "note"  # undoing a label keeps the note
        for row in range(1, 6):
            journal.answer(row, "Y")
        assert journal.open_row(2) is None
    assert path.read_bytes() == before


def test_a_journal_cut_anywhere_gives_the_answers_before_the_cut(tmp_path: Path):
    path, generator = write_rows(tmp_path / "s.tsv"), random.Random(4)
    with Journal(path) as journal:
        for _ in range(12):
            if generator.random() < 0.25:
                journal.undo()
            else:
                text = generator.choice(["", "http://x", "näh"])
                journal.answer(generator.randrange(6), generator.choice("YN?"), text)
    whole = journal_path(path).read_bytes()
    ends = {place + step for place in range(len(whole)) if whole[place] == 10 for step in (0, 1)}
    for cut in sorted({*range(0, len(whole) + 1, 7), *ends}):
        journal_path(path).write_bytes(whole[:cut])
        lines = whole[: whole.rfind(b"\n", 0, cut) + 1].decode()
        items = judged_sheet(path).items
        answers = [(item.label, item.evidence, item.note) for item in items]
        assert answers == slow_replay(6, lines)
        if cut % 49 == 0:
            with Journal(path) as journal:
                journal.answer(0, "Y", "new")
                assert journal.items[0].evidence == "new"
            assert judged_sheet(path).items[0].evidence == "new"


def test_a_long_line_cut_short_is_gone_for_good(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv")
    with Journal(path) as journal:
        journal.answer(0, "Y")
    with open(journal_path(path), "ab") as file:
        file.write(b'{"row": 1, "label": "N", "note": "' + b"x" * 500)
    with Journal(path) as journal:
        journal.undo()
        journal.answer(2, "?")
    assert labels(path) == ["", "", "?", "", "", ""]


def test_an_answer_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch):
    path = write_rows(tmp_path / "s.tsv")
    synced = []

    def fsync(place: object) -> None:
        known = [] if isinstance(place, Path) else [one.label for one in journal.answers.items]
        synced.append((journal_path(path).read_bytes(), known))

    monkeypatch.setattr("kgtrec.study.judging.journal.sync_folder", fsync)
    with Journal(path) as journal:
        monkeypatch.setattr(os, "fsync", fsync)
        journal.answer(2, "Y")
    (begun, _), (written, known) = synced
    assert begun.endswith(b"\n")  # the name of a new journal, after its first line
    assert b'"row": 2, "label": "Y"' in written  # written out when the journal synced,
    assert known == [""] * 6  # and not yet taken as an answer


def test_a_full_disk_takes_nothing_and_spoils_nothing(tmp_path: Path, monkeypatch):
    path = write_rows(tmp_path / "s.tsv")
    write, full = os.pwrite, [True]

    def pwrite(number: int, data, offset: int) -> int:
        if full[0] and len(data) <= 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(number, data[: len(data) - 20] if full[0] else data, offset)

    with Journal(path) as journal:
        journal.answer(0, "N")
        size = journal_path(path).stat().st_size
        monkeypatch.setattr(os, "pwrite", pwrite)
        with pytest.raises(JudgingError, match="No space left on device; nothing was saved"):
            journal.answer(0, "Y")
        with pytest.raises(JudgingError):
            journal.undo()
        assert journal.items[0].label == "N"
        assert journal_path(path).stat().st_size == size
        full[0] = False
        journal.answer(0, "Y")
    assert labels(path)[0] == "Y"


def test_one_sheet_is_open_once_even_by_another_name(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv")
    (tmp_path / "link.tsv").symlink_to(path)
    with Journal(path):
        for name in ("s.tsv", "link.tsv"):
            with pytest.raises(UsageError, match="is open in another"):
                Journal(tmp_path / name)
    with Journal(tmp_path / "link.tsv") as journal:
        journal.answer(0, "Y")
    assert labels(path)[0] == "Y"
    with pytest.raises(JudgingError, match="closed"):
        journal.answer(1, "Y")


# -- The server --------------------------------------------------------------------------------


def test_a_sheet_is_judged_and_written(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv", 3)
    with Running(path) as server:
        _, state = server.get("/api/state")
        assert (state["row"], state["total"], state["open"]) == (0, 3, 3)
        assert state["item"]["question"] == "Is e0 a friend of f0?"
        _, state = server.answer(0, "Y", "http://a")
        assert (state["row"], state["open"], state["counts"]) == (1, 2, {"Y": 1, "N": 0, "?": 0})
        server.answer(2, "?")
        _, state = server.post("/api/undo", {})
        assert (state["row"], state["open"], state["can_undo"]) == (2, 2, True)
        server.answer(2, "N")
        assert not (tmp_path / "s.judged.tsv").exists()
        _, state = server.answer(1, "Y")
        assert (state["open"], state["written"]) == (0, str(tmp_path / "s.judged.tsv"))
        assert labels(tmp_path / "s.judged.tsv") == ["Y", "Y", "N"]
        server.answer(1, "N")
        code, said = server.interrupt()
    assert code == 0
    assert "3 of 3 judged" in said
    done = read_sheet(tmp_path / "s.judged.tsv")
    assert [item.label for item in done.items] == ["Y", "N", "N"]
    assert done.items[0].evidence == "http://a"
    assert [item.label for item in read_sheet(path).items] == ["", "", ""]


@pytest.mark.slow
def test_kill_9_in_the_middle_loses_nothing(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv", 1500)
    acknowledged: dict[int, str] = {}

    def judge(server: Running, start: int) -> None:
        for row in range(start, 1500, 3):
            try:
                status, _ = server.answer(row, "YN?"[row % 3], f"http://x/{row}")
            except (OSError, HTTPException, ValueError, AssertionError):
                return
            assert status == 200
            acknowledged[row] = "YN?"[row % 3]

    with Running(path) as server:
        threads = [threading.Thread(target=judge, args=(server, start)) for start in range(3)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 60 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        server.kill()
        for thread in threads:
            thread.join()
    assert 60 <= len(acknowledged) < 1500
    kept = {row: label for row, label in enumerate(labels(path)) if label}
    assert kept.items() >= acknowledged.items()
    assert len(kept) - len(acknowledged) <= 3  # on the disk, but their answers were lost
    with Running(path) as server:
        assert 1500 - server.get("/api/state")[1]["open"] == len(kept)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with Serving(write_rows(tmp_path_factory.mktemp("judge") / "s.tsv")) as serving:
        yield serving


def test_other_hosts_are_refused(server: Client):
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [r[1] for r in rows if r[3] == "0A" and r[1].endswith(f":{server.port:04X}")]
    assert listening == [f"0100007F:{server.port:04X}"]
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "",
                 "0.0.0.0", "127.0.0.1:80:80", "127.0.0.1 evil"):  # fmt: skip
        headers = {"Host": host, "X-Judge-Token": server.token}
        for method, path in (("GET", "/"), ("GET", "/api/state"), ("POST", "/api/answer")):
            status, said = server.ask(method, path, {}, headers)
            assert status == 403
            assert said["error"] == "this page works only on this machine; open it there"
    for host in ("localhost", f"localhost:{server.port}", "127.0.0.1:9000", "[::1]:1"):
        assert server.get("/api/state", Host=host)[0] == 200
    tunnel = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}
    assert server.post("/api/answer", entry(0, ""), **tunnel)[0] == 200


def test_other_sites_are_refused(server: Client):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{server.port}"},
        {"Origin": "http://127.0.0.1:1"},  # another server on this machine
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Judge-Token": "wröng".encode().decode("latin-1")},
    ):
        assert server.post("/api/answer", entry(0), **headers)[0] == 403, headers
    assert server.post("/api/answer", entry(0), **{"Content-Type": "text/plain"})[0] == 415
    assert server.get("/api/state", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert server.get("/", **{"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link to the page
    assert server.get("/api/state")[1]["open"] == 6


def entry(row: object = 1, label: object = "Y", evidence: object = "", note: object = "") -> dict:
    return {"row": row, "label": label, "evidence": evidence, "note": note}


DEEP = "[" * 400 + "]" * 400
VALUE = '{"row": %s, "label": "Y", "evidence": %s, "note": ""}'


@each_row("body, status, words", [
    (b"{", 400, "not a JSON object"), (b"[1]", 400, "not a JSON object"),
    (b"[" * 60000, 400, "not a JSON object"),
    ({}, 400, "row None"), (entry(6), 400, "row 6 does not exist"), (entry(-1), 400, "row -1"),
    (entry(True), 400, "row True"),
    *((VALUE % (row, '""'), 400, "row ") for row in ("1e999", '"\\ud800"', DEEP, "{}")),
    (VALUE % ("1" * 5000, '""'), 400, "JSON"),
    (entry(label="y"), 400, "label 'y' is not Y"),
    *((VALUE % (0, text), 400, "evidence is not one line")
      for text in ('"\\ud800"', '"\\u0000"', '"\\u007f"', "7", DEEP)),
    (entry(evidence="a\tb"), 400, "evidence is not one line"),
    (entry(note="x" * 2001), 400, "note is not one line of at most 2,000"),
    (entry(evidence="x" * 70000), 413, "too long"),
])  # fmt: skip
def test_bad_answers_are_refused_in_words(server: Client, body: object, status: int, words: str):
    got, said = server.post("/api/answer", body.encode() if isinstance(body, str) else body)
    assert got == status
    assert words in said["error"]
    assert server.get("/api/state")[1]["open"] == 6


def test_requests_that_are_none(server: Client):
    for path in ("/nothing", "/../judge.js", "/page/judge.js", "/api/answer"):
        assert server.get(path)[0] == 404
    for query in ("row=x", "row=-1", "row=99999999999", "row=²"):
        assert server.get(f"/api/state?{query.replace('²', '%C2%B2')}")[0] == 400
    assert server.get("/api/state?row=6")[0] == 404
    assert server.post("/api/undo", {})[0] == 409
    assert server.post("/api/nothing", {})[0] == 404
    assert server.ask("PUT", "/", b"")[0] == 501
    head = b"POST /api/answer HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    head += b"X-Judge-Token: " + server.token.encode() + b"\r\nContent-Length: "
    for raw, statuses in (
        (b"GET / HTTP/1.0\r\n\r\n", "403"),  # no Host at all
        (b"GET\r\n\r\n", "400"),
        (b"GET http://[::1 HTTP/1.1\r\n" + HOST + b"\r\n", "4"),
        (b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", "505"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"),  # begins like TLS
        (b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n", "414"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", "431"),
        (b"GET / HTTP/1.1\r\n" + HOST * 2 + b"\r\n", "4"),
        *((head + length + b"\r\n\r\n" + body, status) for length, body, status in (
            (b"9" * 5000, b"", "413"), (b"-1", b"{}", "411"), (b"1e3", b"{}", "411"),
            (b"", b"{}", "411"), (b"6", b'{"row"', "400"), (b"2", b"\xff\xfe", "400"),
            (b"40", b"{}", "400"),  # and the connection closes
        )),
    ):  # fmt: skip
        assert _sent(server, raw).split(b" ", 2)[1].decode().startswith(statuses), raw
    assert server.get("/api/state")[1]["open"] == 6


def test_the_page_may_load_nothing_from_elsewhere(server: Client):
    for path in ("/", "/judge.css", "/judge.js"):
        status, body = server.get(path)
        assert status == 200
        policy = server.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert server.headers["X-Content-Type-Options"] == "nosniff"
        assert server.headers["Cache-Control"] == "no-store"
        assert server.headers["Server"].strip() == "kgtrec"  # without Python's version
        outside = body.replace(b'placeholder="https://"', b"")
        assert not [scheme for scheme in (b"http://", b"https://", b"//cdn") if scheme in outside]


def test_servers_on_one_port_or_over_their_sheet_are_refused(tmp_path: Path):
    with Serving(write_rows(tmp_path / "s.tsv")) as server:
        words = ["judge", "serve", str(write_rows(tmp_path / "t.tsv")), "--no-browser", "--port"]
        with pytest.raises(UsageError, match=f"port {server.port} cannot be used"):
            CliRunner().invoke(cli, [*words, str(server.port)], catch_exceptions=False)
        with pytest.raises(UsageError, match=r"s\.tsv itself"):
            JudgeServer(server.journal, str(tmp_path / "s.tsv"), 0)


def test_sigterm_ends_it_in_the_background_and_writes_the_sheet_too(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv")
    with Running(path, background=True) as server:
        assert server.process.stderr is not None
        assert f"end it with kill {server.process.pid}" in server.process.stderr.readline()
        server.answer(4, "N")
        server.process.terminate()
        assert server.process.wait(PATIENCE) == 128 + 15
    assert labels(tmp_path / "s.judged.tsv") == ["", "", "", "", "N", ""]


# -- Who may judge, and malformed requests ---------------------------------------------------------


def test_nothing_is_told_without_the_token_of_the_printed_address(server: Client) -> None:
    for token in ("", "x" * 24, server.token[:-1], server.token + "a"):
        headers = {"X-Judge-Token": token, "Content-Type": "application/json"}
        for method, path, body in (
            ("GET", "/api/state", None), ("POST", "/api/answer", entry(0)),
            ("POST", "/api/undo", entry(0)),
        ):  # fmt: skip
            status, said = server.ask(method, path, body, headers)
            assert status == 403
            assert "open the address that `kgtrec judge serve` prints" in said["error"]
    assert server.ask("GET", "/api/state")[0] == 403
    # No answer contains it either.
    for path in ("/", "/judge.js", "/judge.css", "/api/state", "/api/nothing"):
        for ask in (server.get, lambda path: server.ask("GET", path)):
            assert server.token not in f"{ask(path)} {server.headers}"
    assert server.get("/api/state")[1]["open"] == 6


def test_a_page_is_known_to_the_server_that_is_started_again(tmp_path: Path) -> None:
    first, other = write_rows(tmp_path / "a.tsv"), write_rows(tmp_path / "b.tsv", 4)
    with Serving(first) as one:
        token = one.token
    with Serving(first) as again, Serving(other) as another:
        assert again.token == token
        assert another.token != token
    key = tmp_path / "state" / "kgtrec" / "judge.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o077 == 0


def test_a_key_that_others_could_read_is_not_used(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    sheet = read_sheet(write_rows(tmp_path / "s.tsv"))
    assert sheet_token(sheet) == sheet_token(sheet)
    key = tmp_path / "kgtrec" / "judge.key"
    for spoil in (lambda: key.chmod(0o640), lambda: key.write_bytes(b"short")):
        spoil()
        assert sheet_token(sheet) != sheet_token(sheet)
        key.chmod(0o600)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s.tsv"))  # no folder
    assert sheet_token(sheet) != sheet_token(sheet)


def test_the_browser_is_started_without_the_token(tmp_path: Path, monkeypatch) -> None:
    from kgtrec.cli import judge

    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    with judge._browser("http://127.0.0.1:8765/#SECRET"):
        address = opened.get(timeout=PATIENCE)
        assert "SECRET" not in address
        page = Path(address.removeprefix("file://"))
        assert "url=http://127.0.0.1:8765/#SECRET" in page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600
    assert not page.exists()


def _sent(server: Client, raw: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := connection.recv(1 << 16):
                answer += piece
        except ConnectionResetError:  # surplus bytes are discarded
            pass
    return answer


DONE = "document.getElementById('done').textContent"
QUESTION = "document.getElementById('question').textContent"
PLACE = "document.getElementById('place').textContent"
FOCUS = "document.activeElement.id"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launched(tmp_path_factory.mktemp("profile")) as one:
        yield one
        assert [e for e in one.log if "ERR_CONNECTION" not in str(e) and "403" not in str(e)] == []


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "s.tsv")


def open_page(browser: Browser, server: Client) -> None:
    # Chromium asks before it leaves a page with unsaved data; a crash does not.
    browser.eval("window.onbeforeunload = null")
    browser.open(server.url)
    browser.wait(f"{PLACE} !== ''")


def done(browser: Browser, number: int, total: int = 6) -> None:
    browser.wait(f"{DONE} === '{number} of {total} judged'")
    assert browser.eval("document.getElementById('bar').value") == number


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


def test_links_and_facts_are_on_the_page_and_names_are_no_markup(
    browser: Browser, tmp_path: Path
) -> None:
    evil = "<img src=x onerror=document.title=1>"
    sheet = tmp_path / "s.tsv"
    sheet.write_text(f"question\thead\trelation\ttail\tlabel\n{evil}?\ta\tr\t{evil}\t\n")
    more = ("--link", "https://x.org/{label}", "--graph", str(write_graph(tmp_path)))
    with Running(sheet, *more) as server:
        open_page(browser, server)
        browser.wait("document.querySelectorAll('.triple a').length === 2")
        link = browser.eval(
            "(a => [a.href, a.target, a.rel, a.ariaLabel])(document.querySelector('.triple a'))"
        )
        assert link == ["https://x.org/a", "_blank", "noopener noreferrer",
                        "Look up a in a new tab"]  # fmt: skip
        facts = "[...document.querySelectorAll('#about li')].map(li => li.textContent)"
        assert "a r c " in browser.eval(facts)
        assert browser.eval(QUESTION) == f"{evil}?"
        assert evil in browser.eval("document.querySelector('.triple').textContent")
        assert browser.eval("document.images.length") == 0
        beyond = (
            "[...document.querySelectorAll('.answers button')].filter(button => { const box = "
            "button.getBoundingClientRect(); return box.top < 0 || box.bottom > innerHeight; })"
            ".length"
        )
        for width in (320, 1000):
            browser.size(width, 320)
            assert browser.eval("document.documentElement.scrollWidth") <= width
            for place in (0, 60, 120):
                browser.eval(f"scrollTo(0, {place})")
                assert browser.eval(beyond) == 0
        browser.size(1000, 900)
