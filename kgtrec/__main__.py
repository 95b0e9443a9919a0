"""``python -m kgtrec``: the command line, where its script is not on the path."""

from kgtrec.cli import run

run()
