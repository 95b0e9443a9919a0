"""The journal of a sheet: every answer is on disk before it is acknowledged.

The sheet itself never changes. The first line of its journal ``SHEET.journal`` identifies the
triples of the sheet. One JSON object per answer or undo follows, each flushed to the disk. So every
acknowledged answer survives the death of the browser, the server or the machine. A last line
without its end was not acknowledged, and is dropped. An open journal and its sheet are locked:
there is one server per sheet, and the locks end with its process. A server whose journal was moved,
removed or changed by others saves nothing more.
"""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import sync_folder
from kgtrec._internal.locations import exists, is_location, read_bytes
from kgtrec._internal.locks import hold_lock
from kgtrec._internal.structured import parse_json
from kgtrec._internal.system import BINARY, lock, reason_of, write_at
from kgtrec.errors import FileError, KgtrecError, PathName, UsageError, refuse_url
from kgtrec.study.judging.sheets import Item, Sheet, read_sheet, scan_sheet, sheet_counts
from kgtrec.study.pooling.edited_files import LABELS

FORMAT = 1
LONGEST = 2000
"""Characters that a link or a note may have."""

# One line, in characters that a file can hold.
_CELL = re.compile(rf"[^\x00-\x1f\x7f\ud800-\udc7f\udd00-\udfff]{{0,{LONGEST}}}")

_HINT = "if the sheet is new, move the journal away; otherwise put the old sheet back"


class JudgingError(KgtrecError):
    """A request of the page that is refused, or an answer that could not be saved."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.INSUFFICIENT_STORAGE) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class _Answers:
    """The current items of a sheet and their history.

    - items: Items with their current labels.
    - past: Row and earlier label of every change, for undoing.
    - labels_seen: Every row and label that the sheet or the page has given.
    """

    items: list[Item]
    past: list[tuple[int, str]] = field(default_factory=list)
    labels_seen: set[tuple[int, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.labels_seen |= {(row, item.label) for row, item in enumerate(self.items)}

    def apply(self, entry: dict[str, Any]) -> int:
        """Apply a checked entry; return its row."""
        if "undo" in entry:
            row, label = self.past.pop()
            self.items[row] = replace(self.items[row], label=label)
            return row
        row = int(entry["row"])
        before = self.items[row]
        if before.label != entry["label"]:
            self.past.append((row, before.label))
        values = {name: entry[name] for name in ("label", "evidence", "note")}
        self.items[row] = replace(before, **values)
        self.labels_seen.add((row, entry["label"]))
        return row

    def fault(self, entry: Any) -> str | None:
        """Return a description of the first fault of an entry, or None if it is valid."""
        if not isinstance(entry, dict):
            return "not a JSON object"
        if "undo" in entry:
            return None if self.past else "nothing to undo"
        row = entry.get("row")
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self.items):
            return f"row {row!r} does not exist (the sheet has {len(self.items)})"
        if entry.get("label") not in (*LABELS, ""):
            return f"label {entry.get('label')!r} is not Y, N or ?"
        for name in ("evidence", "note"):
            if not isinstance(entry.get(name), str) or not _CELL.fullmatch(entry[name]):
                return f"{name} is not one line of at most {LONGEST:,} characters"
        return None


def journal_path(sheet: PathName) -> Path:
    """Return the path of a sheet's journal; resolve links, so that a sheet has one journal."""
    real = Path(sheet if is_location(sheet) else os.path.realpath(sheet))
    if not real.name:
        raise FileError(sheet, found="this is a folder", hint="give a judgement sheet")
    return real.with_name(f"{real.name}.journal")


def path_of_judged_sheet(sheet: PathName) -> Path:
    """Return the default path of a sheet's copy with labels: ``NAME.judged.tsv``."""
    path = Path(sheet)
    if not path.name:
        raise FileError(sheet, found="this is a folder", hint="give a judgement sheet")
    return path.with_name(f"{path.name.removesuffix('.tsv')}.judged.tsv")


def read_judged_sheet(path: PathName, blank: str = "") -> Sheet:
    """Read a sheet and the answers of its journal, if any; `blank` replaces blank labels.

    A server may have the sheet open meanwhile.
    """
    sheet, answers = _answers_of(path)
    items = tuple(replace(item, label=item.label or blank) for item in answers.items)
    return replace(sheet, items=items)


def check_earlier_state(output: PathName, sheet: PathName) -> None:
    """Raise UsageError if `output` exists and is not an earlier copy of `sheet` with labels."""
    if not exists(output):
        return
    served, answers = _answers_of(sheet)
    try:
        other = scan_sheet(output)[0].items
    except FileError:
        other = ()
    if [item.triple for item in other] != [item.triple for item in served.items]:
        raise UsageError(
            f"{output} is not a copy of {served.path} with labels; move it away, or write to "
            f"another file: {argument('output')}"
        )
    foreign = sum(
        (row, item.label) not in answers.labels_seen for row, item in enumerate(other) if item.label
    )
    if foreign:
        raise UsageError(
            f"{output} has {foreign:,} labels that were not given on the page and would be lost; "
            f"continue with it (kgtrec judge serve {output}), or write to another file: "
            f"{argument('output')}"
        )


def _answers_of(path: PathName) -> tuple[Sheet, _Answers]:
    """Read a sheet and apply the answers of its journal, if any."""
    sheet = read_sheet(path)
    journal = journal_path(path)
    try:
        data = read_bytes(journal) if exists(journal) else b""
    except OSError as error:
        raise _journal_error(journal, error) from None
    return sheet, _replay(journal, data, sheet)[0]


def _replay(journal: Path, data: bytes, sheet: Sheet) -> tuple[_Answers, int]:
    """Apply all complete lines of a journal; return the answers and these lines' size in bytes."""
    answers = _Answers(list(sheet.items))
    whole = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], start=1):
        try:
            entry = parse_json(line)
        except ValueError:
            entry = None
        if number == 1:
            problem, hint = _check_head(entry, sheet), _HINT
        elif problem := answers.fault(entry) or "":
            problem = f"{problem} in {line[:80].decode('utf-8', 'replace')!r}"
            hint = "the journal is damaged: correct the line, or delete it"
        else:
            answers.apply(entry)
        if problem:
            raise FileError(journal, number, found=problem, hint=hint)
    return answers, whole


def _check_head(head: Any, sheet: Sheet) -> str:
    """Return why the first entry does not fit the sheet; "" if it fits."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return "this is not a journal of judgements"
    is_other = head.get("sheet") != sheet.fingerprint
    return f"the journal is about other triples than {sheet.path}" if is_other else ""


def _journal_error(path: Path, error: OSError) -> FileError:
    """Return the error for a journal that cannot be opened, read or written."""
    hint = "copy the sheet to a folder that you can write to"
    return FileError(path, found=f"the journal cannot be opened ({reason_of(error)})", hint=hint)


class Journal:
    """A sheet that is being judged, with its journal open and locked; safe in several threads.

    FileError: the sheet is missing, faulty or empty, or the journal cannot be written, is damaged
    or belongs to another sheet. UsageError: the sheet is open already.
    """

    def __init__(self, sheet: PathName) -> None:
        refuse_url(
            sheet,
            "this is a URL, but a sheet needs a local folder for its journal",
            "copy the sheet to this machine, and give the copy",
        )
        self.sheet = read_sheet(sheet)
        self.path = journal_path(sheet)
        self._lock = threading.RLock()
        self._broken = False
        self._file = -1
        # The sheet is locked too: somebody may move its journal away while it is served.
        self._sheet_file = os.open(sheet, os.O_RDONLY | BINARY)
        try:
            self._lock_file(self._sheet_file, needed=False)
            self._open_and_replay()
        except BaseException:
            self.close()
            raise

    def _lock_file(self, number: int, needed: bool = True) -> None:
        """Lock an open file until it is closed; UsageError if another server has locked it."""
        try:
            lock(number)
        except BlockingIOError:
            raise UsageError(
                f"{self.sheet.path} is open in another `kgtrec judge serve`; use its page, or "
                "stop it first"
            ) from None
        except OSError as error:
            if needed:  # some network file systems lock only files that are open for writing
                raise _journal_error(self.path, error) from None

    def _open_and_replay(self) -> None:
        """Open and lock the journal, apply its answers, and drop an incomplete last line."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o644)
        except OSError as error:
            raise _journal_error(self.path, error) from None
        self._lock_file(self._file)
        data = self.path.read_bytes()
        self.answers, self._size = _replay(self.path, data, self.sheet)
        try:
            os.ftruncate(self._file, self._size)  # an incomplete line was never acknowledged
            if not self._size:
                self._append({"format": FORMAT, "sheet": self.sheet.fingerprint})
            sync_folder(self.path.parent)  # so that the name of a new file survives
        except OSError as error:
            raise _journal_error(self.path, error) from None

    @hold_lock
    def close(self) -> None:
        """Release the sheet."""
        for number in (self._file, self._sheet_file):
            if number >= 0:
                os.close(number)
        self._file = self._sheet_file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.answers.items)

    @property
    @hold_lock
    def items(self) -> list[Item]:
        """All items with their current labels."""
        return list(self.answers.items)

    @property
    def can_undo(self) -> bool:
        """True if there is a label to undo."""
        return bool(self.answers.past)

    def counts(self) -> dict[str, int]:
        """Count the items by label: Y, N, ? and ""."""
        return sheet_counts(self.items)

    @hold_lock
    def answer(self, row: Any, label: Any, evidence: Any = "", note: Any = "") -> None:
        """Set label, link and note of a row; they are on the disk when this returns.

        The same answer again changes nothing. UsageError: the row or label does not exist, or a
        cell cannot hold the text. JudgingError: the answer could not be written and does not count.
        """
        entry = {"row": row, "label": label, "evidence": evidence, "note": note}
        fault = self.answers.fault(entry)
        if fault is not None:
            raise UsageError(f"{fault}; nothing was changed")
        now = self.answers.items[row]
        if (now.label, now.evidence, now.note) != (label, evidence, note):
            self._save(entry)

    @hold_lock
    def undo(self) -> int | None:
        """Undo the last label; return its row, or None if there is none."""
        return self._save({"undo": True}) if self.answers.past else None

    def open_row(self, after: int = -1) -> int | None:
        """Return the next row without a label: after `after`, else from the start; None if none."""
        items = self.items
        rows = [*range(after + 1, len(items)), *range(min(after + 1, len(items)))]
        return next((row for row in rows if not items[row].label), None)

    def _save(self, entry: dict[str, Any]) -> int:
        """Write an entry with the time, then apply it; return its row."""
        stamp = datetime.now(timezone.utc).isoformat(timespec="seconds")
        try:
            self._append({**entry, "time": stamp})
        except OSError as error:
            problem = f"{self.path}: {reason_of(error)}"
            raise JudgingError(f"{problem}; nothing was saved") from None
        return self.answers.apply(entry)

    def _append(self, entry: dict[str, Any]) -> None:
        """Write a line and wait for the disk; if that fails, restore the file.

        The file must have its name and the expected size before and after. Otherwise the next
        server would not read this answer, so it must not count.
        """
        if self._broken or self._file < 0:
            raise OSError(
                "the journal is closed, or the disk has failed; start `kgtrec judge serve` again"
            )
        self._check_unchanged(self._size)
        line = memoryview(json.dumps(entry).encode() + b"\n")
        try:
            done = 0
            while done < len(line):
                done += write_at(self._file, line[done:], self._size + done)
            os.fsync(self._file)
        except OSError:
            self._broken = True
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
                self._broken = False
            raise
        self._check_unchanged(self._size + len(line))
        self._size += len(line)

    def _check_unchanged(self, size: int) -> None:
        """Raise OSError, now and for all later answers, if the journal was replaced or changed.

        Its path must lead to the open file, which must have `size` bytes.
        """
        problem = "was moved or removed"
        with suppress(FileNotFoundError):
            there, ours = os.stat(self.path), os.fstat(self._file)
            if os.path.samestat(there, ours):
                problem = "was written to or cut by another program" * (there.st_size != size)
            else:
                problem = "was replaced"
        if problem:
            self._broken = True
            raise OSError(
                f"the journal {problem} while the sheet was served: put it back as it was, and "
                "start `kgtrec judge serve` again"
            )
