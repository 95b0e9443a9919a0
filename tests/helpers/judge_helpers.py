"""A judging server in a process of its own, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds in which a process that does nothing wrong ends on any machine


def write_rows(path: Path, rows: int = 6) -> Path:
    """A sheet of `rows` triples without labels."""
    header = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"
    lines = [f"Is e{i} a friend of f{i}?\te{i}\tfriend\tf{i}\t\t\t\n" for i in range(rows)]
    path.write_text(header + "".join(lines), encoding="utf-8")
    return path


class Running:
    """``kgtrec judge serve`` on a sheet."""

    def __init__(self, sheet: Path, *more: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "kgtrec", "judge", "serve", str(sheet), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), *more],
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "XDG_STATE_HOME": str(sheet.parent / "state")},
        )  # fmt: skip
        assert self.process.stderr is not None
        said, match = "", None
        while not match and (line := self.process.stderr.readline()):  # warnings may come first
            said += line
            match = re.search(r"http://127\.0\.0\.1:(\d+)/#([\w=-]{24})(?!\S)", line)
        if not match:
            self.__exit__()
            raise AssertionError(said)
        self.url, self.port = match[0], int(match[1])
        self.token = match[2]

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def kill(self) -> None:
        """SIGKILL: nothing can be tidied up."""
        self.process.kill()
        self.process.wait()

    def interrupt(self) -> tuple[int, str]:
        """Ctrl-C; exit code, and what it said last."""
        self.process.send_signal(signal.SIGINT)
        try:
            _, said = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server still runs {PATIENCE} s after Ctrl-C") from None
        return self.process.returncode, said

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and answer; JSON is read."""
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
        own = {"Content-Type": "application/json", "X-Judge-Token": self.token}
        return self.ask("POST", path, body, {**own, **headers})

    def answer(self, row: int, label: str, evidence: str = "", note: str = "") -> tuple[int, Any]:
        body = {"row": row, "label": label, "evidence": evidence, "note": note}
        return self.post("/api/answer", body)
