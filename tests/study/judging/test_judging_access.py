"""Who may judge, what malformed requests are told, and what a spreadsheet makes of a sheet."""

from __future__ import annotations

import csv
import json
import socket
from pathlib import Path

import pytest
from judge_helpers import Running, write_rows

import kgtrec
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.study.judging.questions import Templates, read_templates, write_templates
from kgtrec.study.judging.server import sheet_token
from kgtrec.study.judging.sheets import Item, read_sheet, write_sheet
from kgtrec.study.pooling.triple_files import read_judgements

# -- The token ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with Running(write_rows(tmp_path_factory.mktemp("access") / "s.tsv")) as running:
        yield running


def test_nothing_is_told_without_the_token_of_the_printed_address(server: Running) -> None:
    body = {"row": 0, "label": "Y", "evidence": "", "note": ""}
    for token in ("", "x" * 24, server.token[:-1], server.token + "a"):
        for method, path in (("GET", "/api/state"), ("POST", "/api/answer"), ("POST", "/api/undo")):
            headers = {"X-Judge-Token": token, "Content-Type": "application/json"}
            status, said = server.ask(method, path, body if method == "POST" else None, headers)
            assert status == 403
            assert "open the address that `kgtrec judge serve` prints" in said["error"]
    assert server.ask("GET", "/api/state")[0] == 403
    assert server.get("/api/state")[1]["open"] == 6


def test_no_answer_holds_the_token(server: Running) -> None:
    """Whatever another user can ask for, that is, and what the page is told."""
    for path in ("/", "/judge.js", "/judge.css", "/api/state", "/api/nothing"):
        status, said = server.ask("GET", path)
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        assert server.token.encode() not in text
        assert server.token not in str(server.headers), status
    assert server.token not in json.dumps(server.get("/api/state")[1])


def test_a_page_is_known_to_the_server_that_is_started_again(tmp_path: Path) -> None:
    first, other = write_rows(tmp_path / "a.tsv"), write_rows(tmp_path / "b.tsv", 4)
    with Running(first) as one:
        token = one.token
        one.kill()
    with Running(first) as again:
        assert again.token == token
    with Running(other) as another:
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

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with judge._browser("http://127.0.0.1:8765/#SECRET"):
        while not opened:
            pass
        assert "SECRET" not in opened[0]
        page = Path(opened[0].removeprefix("file://"))
        assert "url=http://127.0.0.1:8765/#SECRET" in page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600
    assert not page.exists()


# -- Malformed requests ------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"\r\n",
        b"GET\r\n\r\n",
        b"GET //[ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET http://[::1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET / NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # begins like TLS
        b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"DELETE / HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    ],
    ids=range(12),
)
def test_malformed_requests_get_an_answer(server: Running, raw: bytes) -> None:
    answer = _sent(server, raw)
    status = int(answer.split(b" ", 2)[1])
    assert 400 <= status < 600
    assert b"Traceback" not in answer
    assert server.get("/api/state")[0] == 200


@pytest.mark.parametrize(
    ("length", "body", "status"),
    [
        (b"9" * 5000, b"", 413),
        (b"-1", b"{}", 411),
        (b"1e3", b"{}", 411),
        (b"", b"{}", 411),
        (b"40", b"{}", 400),  # and the connection ends
        (b"6", b'{"row"', 400),
        (b"2", b"\xff\xfe", 400),
    ],
    ids=range(7),
)
def test_malformed_answers_get_an_answer(
    server: Running, length: bytes, body: bytes, status: int
) -> None:
    head = b"POST /api/answer HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    head += b"X-Judge-Token: " + server.token.encode() + b"\r\n"
    answer = _sent(server, head + b"Content-Length: " + length + b"\r\n\r\n" + body)
    assert int(answer.split(b" ", 2)[1]) == status
    assert server.get("/api/state")[1]["open"] == 6


def test_values_that_no_judgement_has(server: Running) -> None:
    deep = "[" * 400 + "]" * 400
    for row in ("1e999", "NaN", "1" * 4000, '"\\ud800"', deep, "{}", "true", "null"):
        body = f'{{"row": {row}, "label": "Y", "evidence": "", "note": ""}}'.encode()
        assert server.post("/api/answer", body)[0] == 400, row
    for text in ('"\\ud800"', '"\\u0000"', "7", deep):
        body = f'{{"row": 0, "label": "Y", "evidence": {text}, "note": ""}}'.encode()
        assert server.post("/api/answer", body)[0] == 400, text
    assert server.get("/api/state")[1]["open"] == 6


def _sent(server: Running, raw: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := connection.recv(1 << 16):
                answer += piece
        except ConnectionResetError:  # what was sent too much is thrown away
            pass
    return answer


# -- Spreadsheets ------------------------------------------------------------------------------

TEXTS = [
    '=HYPERLINK("http://evil")', "+1", "-1", "@x", "'=x", "''-x", "'", "''", "'x", "x=1", " =1",
    "", "=", "'+", "Ünï",
]  # fmt: skip


def test_cells_are_no_formulas_and_read_back() -> None:
    for text in TEXTS:
        cell = cell_of(text)
        assert not cell.startswith(("=", "+", "-", "@"))
        assert text_of_cell(cell) == text
    assert len({cell_of(text) for text in TEXTS}) == len(TEXTS)
    assert text_of_cell("=x") == "=x"  # of a program that drops the apostrophe when it saves


def test_a_sheet_reaches_a_spreadsheet_as_text(tmp_path: Path) -> None:
    names = [text for text in TEXTS if text]
    items = [Item(name, name, name, name, "Y", name, name) for name in names]
    write_sheet(tmp_path / "s.tsv", items)
    with open(tmp_path / "s.tsv", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    assert not [cell for row in rows for cell in row if cell[:1] in "=+-@" and cell]
    assert list(read_sheet(tmp_path / "s.tsv").items) == items
    # Without a header a file is somebody else's, and taken as it is.
    (tmp_path / "plain.tsv").write_text("'=x\tr\ty\tY\n")
    assert read_sheet(tmp_path / "plain.tsv").items[0].head == "'=x"


def test_judgements_and_templates_read_back(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        train=[[0, 0, 1]], test=[[1, 0, 0]], entities=["'=x", "=x"], relations=["-r"]
    )
    write_sheet(tmp_path / "j.tsv", [Item("'=x", "-r", "=x", label="Y"),
                                     Item("=x", "-r", "'=x", label="N")])  # fmt: skip
    judgements = read_judgements(tmp_path / "j.tsv", graph)
    names = graph.entities
    assert {(names[h], names[t]): label for (h, _, t), label in judgements.labels.items()} == {
        ("'=x", "=x"): 1, ("=x", "'=x"): 0,
    }  # fmt: skip
    made = Templates({"-r": "=is {head} of {tail}?", "'-r": "Is {head} of {tail}?"})
    write_templates(tmp_path / "t.tsv", made)
    assert "\n-" not in (tmp_path / "t.tsv").read_text()
    assert read_templates(tmp_path / "t.tsv") == made
