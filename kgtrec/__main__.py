"""``kgtrec`` and ``python -m kgtrec``: the command line."""

import sys
from contextlib import suppress
from typing import NoReturn


def run() -> None:
    """Answer ``--version`` at once; for all else load the commands, which takes longer."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from kgtrec._version import __version__

        with suppress(OSError):  # which the command line says in its own way
            print(f"kgtrec, version {__version__}", flush=True)
            return
    try:
        from kgtrec.cli import run as run_commands
    except KeyboardInterrupt:
        _leave_interrupted()
    run_commands()


def _leave_interrupted() -> NoReturn:
    """End as the command line does after Ctrl-C, before it is loaded."""
    import os

    with suppress(OSError):
        os.write(2, b"kgtrec: interrupted; nothing half-written is left behind\n")
    os._exit(130)


if __name__ == "__main__":
    run()
