"""The web server of the page on which an annotator answers, for this machine only.

It listens on 127.0.0.1 and accepts only names of this machine. It refuses a foreign name that leads
here, so that no site can pose as the page. The page itself contains no judgements. Reading or
changing one needs a token, which follows a ``#`` in the printed address. Browsers send that part to
nobody, and other users of the machine do not know it. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import check_writable
from kgtrec._internal.locks import hold_lock
from kgtrec._internal.structured import parse_json
from kgtrec._internal.system import IS_WINDOWS, is_private
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.study.judging.journal import Journal, JudgingError, check_earlier_state
from kgtrec.study.judging.questions import Context
from kgtrec.study.judging.sheets import Sheet, write_sheet

_BYTES = 32
_MOST = 64  # connections at a time; a browser opens six
_SECONDS = 60.0  # for a request from its first byte to its answer, and between two of them
_PAUSE = 0.1


def sheet_token(sheet: Sheet) -> str:
    """Compute the token of requests for a sheet, 24 characters.

    A page stays open when its server is killed, and the next server has to accept it. So the token
    depends only on the sheet and a key of this user. If the key cannot be saved, each token is new.
    """
    identity = f"{os.path.realpath(sheet.path)}\0{sheet.fingerprint}"
    digest = hashlib.blake2b(
        identity.encode("utf-8", "surrogateescape"), key=_user_key(), digest_size=18
    )
    return base64.urlsafe_b64encode(digest.digest()).decode()


def _user_key() -> bytes:
    """Return this user's key from a file that nobody else can read; create it if necessary."""
    fresh = secrets.token_bytes(_BYTES)
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        path = Path(state) / "kgtrec" / "judge.key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(fresh)
            return fresh
        except FileExistsError:
            return _read_private_key(path) or fresh
    except (OSError, RuntimeError):  # no home, or it cannot be written
        return fresh


def _read_private_key(path: Path) -> bytes | None:
    """Read the key in a file; return None if another user could have read or written it."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        key = file.read(_BYTES + 1)
    return key if is_private(status) and len(key) == _BYTES else None


ADDRESS = "127.0.0.1"
PORT = 8765
"""The default port; the server uses any free port if this one is in use."""

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_LARGEST = 1 << 16
_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/judge.css": ("judge.css", "text/css; charset=utf-8"),
    "/judge.js": ("judge.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class JudgeServer(ThreadingHTTPServer):
    """The server of a journal's page.

    - output: File for the sheet with its labels, written whenever every triple has a label.
    - port: 0 for any free port. By default 8765, or any free port if 8765 is in use.
    - context: Links and facts to show beside a triple.
    """

    daemon_threads = True
    request_queue_size = 64
    # No other process may take over the port while this one has it.
    allow_reuse_port = False
    allow_reuse_address = not IS_WINDOWS  # there, it would let another process take the port

    def __init__(
        self,
        journal: Journal,
        output: str,
        port: int | None = None,
        context: Context | None = None,
    ) -> None:
        self.journal = journal
        self._connections: dict[socket.socket, float] = {}  # deadline of each, oldest first
        self._lock = threading.RLock()
        self.context = context or Context()
        self.output = output
        check_writable(output)
        if os.path.exists(output) and os.path.samefile(output, journal.sheet.path):
            sheet = journal.sheet.path
            raise UsageError(
                f"{output} is {sheet} itself; write to another file: {argument('output')}"
            )
        check_earlier_state(output, journal.sheet.path)
        self.token = sheet_token(journal.sheet)
        folder = files("kgtrec.study.judging") / "page"
        self.page = {path: (folder / name).read_bytes() for path, (name, _) in _PAGE.items()}
        try:
            super().__init__((ADDRESS, PORT if port is None else port), _Handler)
        except (OSError, OverflowError) as error:
            if port is not None:
                raise UsageError(f"port {port} cannot be used ({error}); choose another") from None
            super().__init__((ADDRESS, 0), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the machine, unlike HTTPServer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Address of the page, with its token."""
        return f"http://{ADDRESS}:{self.server_port}/#{self.token}"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; if no file descriptor is free, close the oldest connection."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._hang_up(1)
                time.sleep(_PAUSE)  # its thread closes it; meanwhile the loop must not spin
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread; close the oldest connection if there are too many."""
        self._hang_up(len(self._connections) + 1 - _MOST)
        self.extend(request)
        super().process_request(request, client_address)

    @hold_lock
    def extend(self, connection: socket.socket) -> None:
        """Give a connection time for one more request, from its first byte to its answer."""
        self._connections[connection] = time.monotonic() + _SECONDS

    def close_request(self, request: Any) -> None:
        """Forget a connection, and close it."""
        self._forget(request)
        super().close_request(request)

    @hold_lock
    def _forget(self, connection: socket.socket) -> None:
        """Remove a connection from those that are open."""
        self._connections.pop(connection, None)

    def service_actions(self) -> None:
        """Close connections whose request takes too long, however slowly bytes still come."""
        self._hang_up(self._count_late())

    @hold_lock
    def _count_late(self) -> int:
        """Count the connections whose deadline has passed."""
        now = time.monotonic()
        return sum(end < now for end in self._connections.values())

    @hold_lock
    def _hang_up(self, count: int) -> None:
        """Shut down the `count` connections with the earliest deadlines; their threads then end."""
        order = sorted(self._connections, key=self._connections.__getitem__)
        for connection in order[: max(0, count)]:
            del self._connections[connection]
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback when a browser goes away."""

    def serve(self) -> None:
        """Answer until a KeyboardInterrupt; then write the sheet, if anything was judged."""
        try:
            self.serve_forever()
        except KeyboardInterrupt as end:
            if type(end) is not KeyboardInterrupt:
                raise
        finally:
            self.server_close()
            if self.journal.counts()[""] < len(self.journal):
                self.export()

    def export(self) -> None:
        """Write the sheet with its current labels."""
        write_sheet(self.output, self.journal.items)

    # --- Requests of the page ---

    def state(self, row: int | None, after: int | None = None) -> dict[str, Any]:
        """Return the item of a row and the progress of the sheet, for the page.

        Without a row, the item is the next without a label after the row `after`.
        """
        journal = self.journal
        if row is None:
            row = journal.open_row(-1 if after is None else after)
        items = journal.items
        shown = max(0, after or 0) if row is None else row
        if shown >= len(items):
            raise JudgingError(f"row {shown} does not exist", HTTPStatus.NOT_FOUND)
        counts = journal.counts()
        item = asdict(items[shown])
        del item["line"]
        about = self.context.build(item["head"], item["relation"], item["tail"])
        return {
            "row": shown,
            "total": len(items),
            "open": counts.pop(""),
            "counts": counts,
            "can_undo": journal.can_undo,
            "item": item,
            "about": about,
            "sheet": journal.sheet.path,
        }

    def save_answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Save an answer; return the state of the next open item.

        If the request has a true `stay`, return the state of the same item.
        """
        row = request.get("row")
        self.journal.answer(row, *(request.get(name) for name in ("label", "evidence", "note")))
        return self._export_if_complete(
            self.state(row) if request.get("stay") else self.state(None, row)
        )

    def undo_answer(self, _body: dict[str, Any]) -> dict[str, Any]:
        """Undo the last label; return the state of its item."""
        row = self.journal.undo()
        if row is None:
            raise JudgingError("there is nothing to undo", HTTPStatus.CONFLICT)
        return self._export_if_complete(self.state(row))

    def _export_if_complete(self, state: dict[str, Any]) -> dict[str, Any]:
        """Write the sheet if all items have labels; return the state with the outcome."""
        if state["open"] == 0:
            try:
                self.export()
                state["written"] = self.output
            except FileError as error:  # the answer itself is safe in the journal
                state["unwritten"] = str(error)
        return state


class _Handler(BaseHTTPRequestHandler):
    """The handler of a connection's requests."""

    server: JudgeServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # so that a malformed request gets a status, too
    server_version = "kgtrec"
    sys_version = ""
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def handle_one_request(self) -> None:
        """Read and answer one request within the time that the server allows."""
        self.server.extend(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal is for people."""

    def _serve(self, act: Callable[[], tuple[bytes, str]]) -> None:
        """Send the body and the content type that `act` returns, or an error as JSON."""
        try:
            self._check_origin()
            body, kind = act()
            status = HTTPStatus.OK
        except (KgtrecError, ValueError, RecursionError) as error:
            # The rest of the request is not read, so nothing can follow on this connection.
            self.close_connection = True
            status = getattr(error, "status", HTTPStatus.BAD_REQUEST)
            malformed = f"a malformed request ({type(error).__name__})"
            problem = str(error) if isinstance(error, KgtrecError) else malformed
            body, kind = _json({"error": problem})
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _check_origin(self) -> None:
        """Raise JudgingError if the request is for another host or from another site."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            raise JudgingError(
                "this page works only on this machine; open it there", HTTPStatus.FORBIDDEN
            )
        origin = self.headers.get("Origin", f"http://{hosts[0]}")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        foreign = origin.lower() != f"http://{hosts[0]}".lower()
        # Only following a link from elsewhere to the page is harmless.
        visit = self.command == "GET" and urlsplit(self.path).path == "/"
        if foreign or (site not in ("same-origin", "none") and not visit):
            raise JudgingError("requests from other sites are refused", HTTPStatus.FORBIDDEN)

    def _check_token(self) -> None:
        """Raise JudgingError unless the request has the token of this server."""
        token = self.headers.get("X-Judge-Token", "").encode("utf-8", "replace")
        if not secrets.compare_digest(token, self.server.token.encode()):
            problem = "the token belongs to another server"
            hint = "open the address that `kgtrec judge serve` prints"
            raise JudgingError(f"{problem}: {hint}", HTTPStatus.FORBIDDEN)

    def _get(self) -> tuple[bytes, str]:
        """Return a file of the page, or the state as JSON, and the content type."""
        target = urlsplit(self.path)
        if target.path in _PAGE:
            return self.server.page[target.path], _PAGE[target.path][1]
        if target.path != "/api/state":
            raise JudgingError("this page does not exist", HTTPStatus.NOT_FOUND)
        self._check_token()
        numbers = {name: _number(name, values) for name, values in parse_qs(target.query).items()}
        return _json(self.server.state(numbers.get("row"), numbers.get("after")))

    def _post(self) -> tuple[bytes, str]:
        """Do what the path of the request names; return the answer and its content type."""
        acts = {"/api/answer": self.server.save_answer, "/api/undo": self.server.undo_answer}
        act = acts.get(self.path)
        if act is None:
            raise JudgingError("this page does not exist", HTTPStatus.NOT_FOUND)
        self._check_token()
        return _json(act(self._body()))

    def _body(self) -> dict[str, Any]:
        """Read the JSON object of a request."""
        if self.headers.get_content_type() != "application/json":
            raise JudgingError("answers must be JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise JudgingError("the Content-Length is missing", HTTPStatus.LENGTH_REQUIRED)
        if int(length[:9]) > _LARGEST:  # of a number with 5,000 digits, too
            raise JudgingError(
                "the text is too long; shorten it", HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            )
        try:
            body = parse_json(self.rfile.read(int(length)))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise JudgingError("this is not a JSON object", HTTPStatus.BAD_REQUEST)
        return body


def _number(name: str, values: list[str]) -> int:
    """Return the row that a parameter names; JudgingError if it is not a number."""
    text = values[-1]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise JudgingError(f"{name} {text[:40]!r} is not a row", HTTPStatus.BAD_REQUEST)
    return int(text)


def _json(value: object) -> tuple[bytes, str]:
    return json.dumps(value).encode(), "application/json"
