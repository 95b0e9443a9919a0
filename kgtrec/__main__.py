"""``kgtrec`` and ``python -m kgtrec``: the command line."""

import sys
from contextlib import suppress


def run() -> None:
    """Answer ``--version`` at once; for all else load the commands, which takes longer."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from kgtrec._version import __version__

        with suppress(OSError):  # which the command line says in its own way
            print(f"kgtrec, version {__version__}", flush=True)
            return
    from kgtrec.cli import run as run_commands

    run_commands()


if __name__ == "__main__":
    run()
