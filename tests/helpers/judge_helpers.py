"""Judging servers, in a thread and in a process, and a client that speaks plain HTTP to them."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from kgtrec.study.judging.journal import Journal, path_of_judged_sheet
from kgtrec.study.judging.questions import Context
from kgtrec.study.judging.server import JudgeServer

PATIENCE = 60  # seconds; a correct process ends in this time on any machine


def write_rows(path: Path, rows: int = 6) -> Path:
    """A sheet of `rows` triples without labels."""
    header = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"
    lines = [f"Is e{i} a friend of f{i}?\te{i}\tfriend\tf{i}\t\t\t\n" for i in range(rows)]
    path.write_text(header + "".join(lines), encoding="utf-8")
    return path


TRAIN = [("a", "r", "b"), ("a", "r", "c"), ("c", "s", "a"), ("a", "s", "b"), ("b", "r", "c")]


def write_graph(folder: Path) -> Path:
    """A small graph with facts about a, b and c."""
    (folder / "graph").mkdir()
    lines = "".join(f"{h}\t{r}\t{t}\n" for h, r, t in TRAIN)
    (folder / "graph/train.txt").write_text(lines)
    (folder / "graph/test.txt").write_text("b\ts\tc\n")
    return folder / "graph"


T = TypeVar("T", bound="Client")


class Client:
    """Requests to a server, by its port and token."""

    port: int
    token: str
    url: str

    def __enter__(self: T) -> T:
        return self

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request; return status and answer, with JSON decoded."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            reply = connection.getresponse()
            raw = reply.read()
            self.headers = reply.headers
        finally:
            connection.close()
        is_json = reply.headers.get_content_type() == "application/json"
        return reply.status, json.loads(raw) if is_json else raw

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self.ask("GET", path, None, {"X-Judge-Token": self.token, **headers})

    def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        required = {"Content-Type": "application/json", "X-Judge-Token": self.token}
        return self.ask("POST", path, body, {**required, **headers})

    def answer(self, row: int, label: str, evidence: str = "", note: str = "") -> tuple[int, Any]:
        body = {"row": row, "label": label, "evidence": evidence, "note": note}
        return self.post("/api/answer", body)


class Serving(Client):
    """A server of a sheet in a thread of this process."""

    def __init__(self, sheet: Path, context: Context | None = None) -> None:
        self.journal = Journal(sheet)
        with patch.dict(os.environ, XDG_STATE_HOME=str(sheet.parent / "state")):
            self.server = JudgeServer(self.journal, str(path_of_judged_sheet(sheet)), 0, context)
        self.port, self.token = self.server.server_port, self.server.token
        self.url = self.server.url
        serve = self.server.serve_forever
        self.thread = threading.Thread(target=serve, args=(0.01,), daemon=True)
        self.thread.start()

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.thread.join(PATIENCE)
        self.server.server_close()
        self.journal.close()


class Running(Client):
    """``kgtrec judge serve`` on a sheet; in the background, it inherits an ignored SIGINT."""

    def __init__(self, sheet: Path, *more: str, port: int = 0, background: bool = False) -> None:
        trap = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if background else []
        command = [sys.executable, "-m", "kgtrec", "judge", "serve", str(sheet), "--no-browser"]
        self.process = subprocess.Popen(
            [*trap, *command, "--port", str(port), *more],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(sheet.parent / "state")},
        )
        assert self.process.stderr is not None
        said, match = "", None
        while not match and (line := self.process.stderr.readline()):  # warnings may come first
            said += line
            match = re.search(r"http://127\.0\.0\.1:(\d+)/#([\w=-]{24})(?!\S)", line)
        if not match:
            self.__exit__()
            raise AssertionError(said)
        self.url, self.port, self.token = match[0], int(match[1]), match[2]

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def kill(self) -> None:
        """Send SIGKILL, so that the server cannot clean up."""
        self.process.kill()
        self.process.wait()

    def interrupt(self) -> tuple[int, str]:
        """Send Ctrl-C; return the exit code and the last message."""
        self.process.send_signal(signal.SIGINT)
        try:
            _, said = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server still runs {PATIENCE} s after Ctrl-C") from None
        return self.process.returncode, said
