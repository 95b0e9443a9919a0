"""A headless Chromium for tests, controlled by its debugging pipe, with the standard library only.

`launched` looks for a program by its usual names, or in KGTREC_TEST_BROWSER.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)

# Key -> DOM code and Windows key code, as a keyboard driver would send them.
_CODES = {
    "ArrowLeft": ("ArrowLeft", 37),
    "ArrowRight": ("ArrowRight", 39),
    "Enter": ("Enter", 13),
    "Tab": ("Tab", 9),
    "Escape": ("Escape", 27),
    " ": ("Space", 32),
    "?": ("Slash", 191),
}


class Browser:
    """One page of a browser."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def place_pipes() -> None:  # the browser reads commands on 3 and answers on 4
            high = [os.dup(to_browser), os.dup(from_browser)]
            while min(high) < 5:
                high = [os.dup(number) for number in high]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-extensions",
                "about:blank",
            ],
            preexec_fn=place_pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A suite with sanitizers preloads them, which would crash a browser.
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._read, self._session = 0, b"", ""
        self.log: list[dict[str, Any]] = []  # warnings and errors of pages
        self.requests: list[str] = []  # addresses that pages asked for
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for area in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{area}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill the browser, as in a crash."""
        self.process.kill()
        self.process.wait()
        for number in (self._in, self._out):
            with suppress(OSError):
                os.close(number)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._next(time.monotonic() + 30)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has gone"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.log.append(event["params"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def eval(self, code: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, code: str, seconds: float = 10) -> Any:
        """Wait until an expression is true; return its value."""
        end = time.monotonic() + seconds
        while not (value := self.eval(code)):
            assert time.monotonic() < end, f"{code} stays {value!r}"
            time.sleep(0.02)
        return value

    def press(self, key: str, modifiers: int = 0, repeat: bool = False) -> None:
        code, number = _CODES.get(key, (f"Key{key.upper()}", ord(key.upper()[0])))
        text = {"Enter": "\r", "Tab": ""}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            text=text,
            autoRepeat=repeat,
            **common,
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )


def launched(profile: Path) -> Browser:
    """A browser of this machine; skips the test without one."""
    programs = (path for name in NAMES if (path := shutil.which(name)))
    program = os.environ.get("KGTREC_TEST_BROWSER") or next(programs, None)
    if program is None:
        pytest.skip("no Chromium found: put one on PATH, or name it in KGTREC_TEST_BROWSER")
    return Browser(program, profile)
