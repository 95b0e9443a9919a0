"""The token of a sheet's page: the same whenever the sheet is served, and this user's alone."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from pathlib import Path

from kgtrec.study.judging.sheets import Sheet

__all__ = ["sheet_token"]

_BYTES = 32


def sheet_token(sheet: Sheet) -> str:
    """What a request for a sheet has to carry, 24 characters.

    A page stays open when its server is killed, and has to be known to the next one: the token
    follows from the sheet and a key of this user. It is new each time where no key can be kept.
    """
    place = f"{os.path.realpath(sheet.path)}\0{sheet.fingerprint}"
    digest = hashlib.blake2b(place.encode("utf-8", "surrogateescape"), key=_key(), digest_size=18)
    return base64.urlsafe_b64encode(digest.digest()).decode()


def _key() -> bytes:
    """This user's key, made if need be, in a file that nobody else can read."""
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
            return _private(path) or fresh
    except (OSError, RuntimeError):  # no home, or none that can be written to
        return fresh


def _private(path: Path) -> bytes | None:
    """The key in a file; None if another user could have written or read it."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        key = file.read(_BYTES + 1)
    own = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if own and len(key) == _BYTES else None
