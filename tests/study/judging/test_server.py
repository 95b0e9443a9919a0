"""The judging server and its journal: it loses no acknowledged label, and lets nobody else in."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import queue
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socketserver import TCPServer

import pytest
from browser import Browser, launched
from click.testing import CliRunner
from judge_helpers import PATIENCE, Client, Running, Serving, write_graph, write_rows
from refusals import each_row

from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.study.judging.journal import Journal, JudgingError, journal_path, read_judged_sheet
from kgtrec.study.judging.server import JudgeServer, sheet_token
from kgtrec.study.judging.sheets import Item, read_sheet

HOST = b"Host: localhost\r\n"


def labels(sheet: Path) -> list[str]:
    """Labels of a written sheet, or of one that is being judged."""
    read = read_sheet if sheet.name.endswith(".judged.tsv") else read_judged_sheet
    return [item.label for item in read(sheet).items]


def slow_replay(text: str) -> tuple[list[tuple[str, str, str]], list[int]]:
    """What complete lines of a journal mean, and the rows whose labels an undo would remove.

    The first of six rows has a label in the sheet. Labels count unless an undo has removed them.
    """
    state = [("N", "", ""), *[("", "", "")] * 5]
    changes = [(row, label) for row, (label, *_) in enumerate(state)]
    for entry in map(json.loads, text.split("\n")[1:-1]):
        if entry.get("undo"):
            row, _ = changes.pop()
            state[row] = ([label for other, label in changes if other == row][-1], *state[row][1:])
            continue
        row = entry["row"]
        if state[row][0] != entry["label"]:
            changes.append((row, entry["label"]))
        state[row] = (entry["label"], entry["evidence"], entry["note"])
    return state, [row for row, _ in changes[6:]]


def answers(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    return [(item.label, item.evidence, item.note) for item in items]


def test_a_journal_means_what_its_complete_lines_say(tmp_path: Path):
    path, generator = write_rows(tmp_path / "s.tsv"), random.Random(4)
    path.write_text(path.read_text().replace("\tf0\t\t", "\tf0\tN\t"))
    sheet, place, undoable = path.read_bytes(), journal_path(path), []
    with Journal(path) as journal:
        for _ in range(30):
            assert journal.can_undo == bool(undoable)
            if generator.random() < 0.25:
                assert journal.undo() == (undoable[-1] if undoable else None)
            else:
                texts = generator.choices(["", "http://x", "näh"], k=2)
                journal.answer(generator.randrange(6), generator.choice("YN?"), *texts)
            state, undoable = slow_replay(place.read_text())
            assert answers(journal.items) == state
            unlabelled = [row for row, (label, *_) in enumerate(state) if not label]
            for after in (-1, 2, 3, 5, 9):
                due = [row for row in unlabelled if row > after] or unlabelled or [None]
                assert journal.open_row(after) == due[0]
    whole = place.read_bytes()
    ends = {end + step for end in range(len(whole)) if whole[end] == 10 for step in (0, 1)}
    for cut in sorted({*range(0, len(whole) + 1, 7), *ends}):
        place.write_bytes(whole[:cut])
        state, undoable = slow_replay(whole[: whole.rfind(b"\n", 0, cut) + 1].decode())
        assert answers(read_judged_sheet(path).items) == state
        if cut % 49 == 0:  # what follows is shorter than the line that was cut short
            place.write_bytes(whole[:cut] + b"x" * 500)
            with Journal(path) as journal:
                assert journal.undo() == (undoable[-1] if undoable else None)
                journal.answer(0, "Y", "new")
            assert read_judged_sheet(path).items[0].evidence == "new"
    assert path.read_bytes() == sheet


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


GONE = {
    "moved": lambda path: path.rename(path.with_name("away")),
    "removed": lambda path: path.unlink(),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 5),
    "emptied": lambda path: os.truncate(path, 0),
    "written to": lambda path: path.write_bytes(path.read_bytes() + b"{}"),
    "replaced": lambda path: (
        path.rename(path.with_name("away")),
        shutil.copy(path.with_name("away"), path),
    ),
}


@pytest.mark.parametrize("act", GONE)
def test_nothing_is_saved_in_a_journal_that_others_changed(tmp_path: Path, act: str):
    path = write_rows(tmp_path / "s.tsv")
    with Journal(path) as journal:
        journal.answer(0, "Y")
        GONE[act](journal.path)
        for _ in range(2):  # also after the first refusal
            with pytest.raises(JudgingError, match="nothing was saved"):
                journal.answer(1, "N")
        with pytest.raises(JudgingError, match="nothing was saved"):
            journal.undo()
        assert journal.items[1].label == ""


@pytest.mark.parametrize("act", GONE)
def test_a_journal_that_others_change_meanwhile_saves_nothing(tmp_path: Path, monkeypatch, act):
    path = write_rows(tmp_path / "s.tsv")
    fsync = os.fsync
    with Journal(path) as journal:
        monkeypatch.setattr(os, "fsync", lambda number: (fsync(number), GONE[act](journal.path)))
        with pytest.raises(JudgingError, match="nothing was saved"):
            journal.answer(1, "N")
        assert journal.items[1].label == ""


def test_a_sheet_has_one_server_even_without_its_journal(tmp_path: Path):
    path = write_rows(tmp_path / "s.tsv")
    os.link(path, tmp_path / "other.tsv")  # whose journal has another name
    with Journal(path) as journal:
        journal.path.rename(tmp_path / "away")
        for name in ("s.tsv", "other.tsv"):
            with pytest.raises(UsageError, match="is open in another"):
                Journal(tmp_path / name)
    (tmp_path / "away").rename(journal.path)
    with Journal(path):
        pass


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


def test_no_answer_of_several_threads_is_lost(tmp_path: Path, monkeypatch):
    path = write_rows(tmp_path / "s.tsv", 60)
    monkeypatch.setattr(os, "fsync", lambda _: time.sleep(0.001))  # other threads go on meanwhile
    with Serving(path) as server, ThreadPoolExecutor(3) as threads:
        done = threads.map(lambda row: server.answer(row, "YN?"[row % 3])[0], range(60))
        assert {*done} == {200}
    assert labels(path) == list("YN?" * 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with Serving(write_rows(tmp_path_factory.mktemp("judge") / "s.tsv")) as serving:
        yield serving


STATE, ANSWER, UNDO = ("GET", "/api/state"), ("POST", "/api/answer"), ("POST", "/api/undo")
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}


def entry(row: object = 1, label: object = "Y", evidence: object = "", note: object = "") -> dict:
    return {"row": row, "label": label, "evidence": evidence, "note": note}


DEEP = "[" * 400 + "]" * 400
VALUE = '{"row": %s, "label": "Y", "evidence": %s, "note": ""}'


@each_row(
    "to, body, headers, status, words",
    [
        *(
            (
                to,
                entry(),
                {"Host": host},
                403,
                "this page works only on this machine; open it there",
            )
            for host in (
                "evil.example",
                "127.0.0.1.evil.example",
                "localhost.evil.example:80",
                "",
                "0.0.0.0",
                "127.0.0.1:80:80",
                "127.0.0.1 evil",
            )
            for to in (("GET", "/"), STATE, ANSWER)
        ),
        *(
            (ANSWER, entry(), headers, 403, "from other sites")
            for headers in (
                {"Origin": "http://evil.example"},
                {"Origin": "null"},
                {"Origin": "https://127.0.0.1:{port}"},
                {"Origin": "http://127.0.0.1:1"},  # another server on this machine
                CROSS_SITE,
                {"Sec-Fetch-Site": "same-site"},
            )
        ),
        (STATE, None, CROSS_SITE, 403, "from other sites"),
        *(
            (
                to,
                entry(),
                {"X-Judge-Token": token},
                403,
                "open the address that `kgtrec judge serve`",
            )
            for token in (
                "",
                "x" * 24,
                "{token:.23}",
                "{token}a",
                "wröng".encode().decode("latin-1"),
            )
            for to in (STATE, ANSWER, UNDO)
        ),
        (ANSWER, entry(), {"Content-Type": "text/plain"}, 415, "must be JSON"),
        *(
            (ANSWER, body, {}, 400, "not a JSON object")
            for body in (
                b"{",
                b"[1]",
                b"[" * 60000,
                VALUE % ("1" * 5000, '""'),
                VALUE % (DEEP, '""'),
                VALUE % (0, DEEP),
            )
        ),
        *(
            (ANSWER, body, {}, 400, words)
            for body, words in (
                ({}, "row None"),
                (entry(6), "row 6 does not exist"),
                (entry(-1), "row -1"),
                (entry(True), "row True"),
                *((VALUE % (row, '""'), "row ") for row in ("1e999", '"\\ud800"', "[[1]]", "{}")),
                (entry(label="y"), "label 'y' is not Y"),
                *(
                    (VALUE % (0, text), "evidence is not one line")
                    for text in ('"\\ud800"', '"\\u0000"', '"\\u007f"', "7", "[[1]]")
                ),
                (entry(evidence="a\tb"), "evidence is not one line"),
                (entry(note="x" * 2001), "note is not one line of at most 2,000"),
            )
        ),
        (ANSWER, entry(evidence="x" * 70000), {}, 413, "too long"),
        *(
            (("GET", path), None, {}, 404, "does not exist")
            for path in (
                "/nothing",
                "/../judge.js",
                "/page/judge.js",
                ANSWER[1],
                "/api/state?row=6",
            )
        ),
        *(
            (("GET", f"/api/state?row={row}"), None, {}, 400, "is not a row")
            for row in ("x", "-1", "99999999999", "%C2%B2")
        ),
        (("POST", "/api/nothing"), {}, {}, 404, "does not exist"),
        (UNDO, {}, {}, 409, "nothing to undo"),
    ],
)
def test_refused_requests_change_nothing(server, to, body, headers, status, words):
    own = {"Content-Type": "application/json", "X-Judge-Token": "{token}"} | headers
    own = {key: text.format(port=server.port, token=server.token) for key, text in own.items()}
    got, said = server.ask(*to, body.encode() if isinstance(body, str) else body, own)
    assert got == status
    assert words in said["error"]
    assert server.get("/api/state")[1]["open"] == 6


def test_this_machine_and_those_who_know_the_address_are_let_in(server: Client):
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [r[1] for r in rows if r[3] == "0A" and r[1].endswith(f":{server.port:04X}")]
    assert listening == [f"0100007F:{server.port:04X}"]
    for host in ("localhost", f"localhost:{server.port}", "127.0.0.1:9000", "[::1]:1"):
        assert server.get("/api/state", Host=host)[0] == 200
    tunnel = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}
    assert server.post("/api/answer", entry(0, ""), **tunnel)[0] == 200
    assert server.get("/", **CROSS_SITE)[0] == 200  # a link to the page
    assert server.ask(*STATE)[0] == 403
    assert server.ask("PUT", "/", b"")[0] == 501


def test_requests_that_are_none(server: Client):
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
        *(
            (head + length + b"\r\n\r\n" + body, status)
            for length, body, status in (
                (b"9" * 5000, b"", "413"),
                (b"-1", b"{}", "411"),
                (b"1e3", b"{}", "411"),
                (b"", b"{}", "411"),
                (b"6", b'{"row"', "400"),
                (b"2", b"\xff\xfe", "400"),
                (b"40", b"{}", "400"),  # and the connection closes
            )
        ),
    ):
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            first = connection.recv(1 << 16)
        assert first.split(b" ", 2)[1].decode().startswith(statuses), raw
    assert server.get("/api/state")[1]["open"] == 6


def test_connections_are_few_and_end_in_time(tmp_path: Path, monkeypatch):
    """Bytes that drip, silent connections and very many of them keep nobody out."""
    monkeypatch.setattr("kgtrec.study.judging.server._SECONDS", 1.0)
    monkeypatch.setattr("kgtrec.study.judging.server._MOST", 5)
    threads = threading.active_count()
    with Serving(write_rows(tmp_path / "s.tsv")) as server:
        with (
            contextlib.suppress(OSError),  # when the server hangs up
            socket.create_connection(("127.0.0.1", server.port), 60) as dripping,
        ):
            while True:
                dripping.sendall(b"G")
                time.sleep(0.05)
        silent = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(30)]
        try:
            assert server.get("/api/state")[0] == 200  # at once: the oldest ones have to leave
            assert len(server.server._connections) <= 5
            assert silent[0].recv(1) == b""
            assert silent[-1].recv(1) == b""  # after a while
        finally:
            for connection in silent:
                connection.close()
    wait_until(lambda: threading.active_count() <= threads)


def test_without_descriptors_it_waits_and_goes_on(tmp_path: Path, monkeypatch):
    """The loop took a core, as the connection that it could not accept stayed there."""
    accepts: list[float] = []

    def get_request(self: TCPServer) -> object:
        accepts.append(time.monotonic())
        if accepts[-1] - accepts[0] < 1.0:
            raise OSError(errno.EMFILE, "Too many open files")
        return self.socket.accept()

    monkeypatch.setattr(TCPServer, "get_request", get_request)
    with Serving(write_rows(tmp_path / "s.tsv")) as server:
        assert server.get("/api/state")[0] == 200
    assert len(accepts) < 20


def wait_until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_page_loads_nothing_from_elsewhere_and_tells_no_token(server: Client):
    for path in ("/", "/judge.css", "/judge.js", "/api/state", "/api/nothing"):
        for ask in (server.get, lambda path: server.ask("GET", path)):
            assert server.token not in f"{ask(path)} {server.headers}"
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


def test_a_key_that_others_could_read_is_not_used(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path, other = write_rows(tmp_path / "s.tsv"), write_rows(tmp_path / "t.tsv", 4)
    sheet = read_sheet(path)
    with Serving(path) as server:  # a page is known to the server that is started again
        assert server.token == sheet_token(sheet) != sheet_token(read_sheet(other))
    key = tmp_path / "state" / "kgtrec" / "judge.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o077 == 0
    for spoil in (lambda: key.chmod(0o640), lambda: key.write_bytes(b"short")):
        spoil()
        assert sheet_token(sheet) != sheet_token(sheet)
        key.chmod(0o600)
    monkeypatch.setenv("XDG_STATE_HOME", str(path))  # no folder
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
        assert page.parent.stat().st_mode & 0o777 == 0o700  # so nobody else can read the page
    assert not page.exists()


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


def test_after_the_last_triple_keys_wait_for_the_decision_to_revise(browser: Browser, sheet: Path):
    hidden = "document.getElementById('{}').hidden".format
    with Serving(sheet) as server:
        open_page(browser, server)
        for number in range(1, 7):
            browser.press("n")
            done(browser, number)
        for reloaded in (False, True):
            if reloaded:
                browser.open("about:blank")
                open_page(browser, server)
            browser.wait(f"!{hidden('finished')}")
            assert browser.eval(hidden("card")) is True
            for key in ("y", "?", "u", "ArrowLeft", "j", "e"):
                browser.press(key)
            time.sleep(0.2)
            done(browser, 6)
            assert labels(sheet) == ["N"] * 6
        browser.eval("document.getElementById('revise').click()")
        assert browser.eval(hidden("card")) is False
        assert browser.eval(hidden("revise")) is True
        assert browser.eval(FOCUS) == "question"
        browser.press("ArrowRight")
        browser.wait(f"{PLACE} === 'Triple 2 of 6'")
        browser.press("y")  # the sheet stays complete, and the annotator goes on revising
        browser.wait("document.getElementById('saved').textContent === 'Saved: Yes for triple 2.'")
        assert labels(sheet) == ["N", "Y", "N", "N", "N", "N"]
        assert browser.eval(hidden("card")) is False
        browser.press("u")  # restores the label that was revised
        browser.wait("document.getElementById('saved').textContent.startsWith('Undone')")
        assert labels(sheet) == ["N"] * 6
        browser.press("u")
        done(browser, 5)
        assert browser.eval(hidden("finished")) is True
        browser.press("n")  # complete again, so that keys wait again
        done(browser, 6)
        assert browser.eval(hidden("card")) is True
        assert browser.eval(hidden("revise")) is False
        assert browser.eval(FOCUS) == "finished"


def test_links_and_notes_are_kept_as_they_are_typed(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        browser.press("e")
        assert browser.eval(FOCUS) == "evidence"
        browser.type("example.org/y")  # the letter y is text here
        browser.wait("document.getElementById('hint').textContent.includes('not look like')")
        browser.wait("document.getElementById('saved').textContent.startsWith('Saved: evid')")
        assert (labels(sheet)[0], read_judged_sheet(sheet).items[0].evidence) == (
            "",
            "example.org/y",
        )
        assert browser.eval(FOCUS) == "evidence"
        browser.press("Tab")
        assert browser.eval(FOCUS) == "note"
        browser.type("seen <b>twice</b>")
        browser.press("Enter")
        browser.press("y")  # at once, while the note may still be in transit
        done(browser, 1)
        first = read_judged_sheet(sheet).items[0]
        assert (first.label, first.evidence, first.note) == (
            "Y",
            "example.org/y",
            "seen <b>twice</b>",
        )
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


def test_keys_that_are_held_or_switched_off_do_nothing_and_tab_works(browser: Browser, sheet: Path):
    with Serving(sheet) as server:
        open_page(browser, server)
        browser.press("y", repeat=True)
        browser.press("n", modifiers=2)  # Ctrl
        browser.press("x")
        browser.eval("document.getElementById('keys').click()")
        browser.press("y")
        time.sleep(0.2)
        assert labels(sheet) == [""] * 6
        assert browser.eval("getComputedStyle(document.querySelector('kbd')).display") == "none"
        browser.eval("document.getElementById('question').focus()")
        for name in ("Y", "N", "?", "evidence", "note", "forth", "jump", "keys"):
            browser.press("Tab")
            assert browser.eval(f"document.activeElement.dataset.label || {FOCUS}") == name
        browser.eval("document.getElementById('question').focus()")
        browser.press("Tab")
        browser.press("Tab")
        browser.press("Enter")
        done(browser, 1)
        assert labels(sheet)[0] == "N"
        assert browser.eval(FOCUS) == "question"  # where screen readers read the next question
        said = browser.eval("document.getElementById('saved').textContent")
        assert said == "Saved: No for triple 1."


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


def test_links_and_facts_are_on_the_page_and_names_are_no_markup(browser, tmp_path):
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
        assert link == [
            "https://x.org/a",
            "_blank",
            "noopener noreferrer",
            "Look up a in a new tab",
        ]
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
