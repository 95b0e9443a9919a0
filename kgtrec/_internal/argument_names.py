"""Names of arguments in messages: ``filter='test'`` in Python, ``--filter test`` in a command.

A message is written once, with `argument`, which marks the name and the value in the text. An error
or a warning keeps this text as its ``marked``, and shows it in Python's spelling. The command line
takes ``marked`` and spells the same arguments as the options of its command.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kgtrec._internal.text import shorten

# Unicode keeps these characters for use inside of programs: no text that people exchange has them.
_START, _BETWEEN, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKED = re.compile(
    f"{_START}([^{_BETWEEN}]*){_BETWEEN}([^{_BETWEEN}]*){_BETWEEN}([^{_END}]*){_END}"
)
_LONGEST = 200  # characters of a value
_MARKS = re.compile(f"[{_START}{_BETWEEN}{_END}]")


def argument(name: str, *value: object, option: str = "") -> str:
    """Return an argument as part of a message, alone or with a value.

    Parameters
    ----------
    name
        The argument's name in Python.
    value
        Its value, if the message shows one.
    option
        The option of the command line, with underscores, if it is not called like the argument.
    """
    shown = shorten(_MARKS.sub("", repr(value[0])), _LONGEST) if value else ""
    return f"{_START}{name}{_BETWEEN}{option or name}{_BETWEEN}{shown}{_END}"


def python_spelling(message: str) -> str:
    """Return a message with its arguments as Python writes them: ``name=value``, or ``name=``."""
    if _START not in message:
        return message
    return _MARKED.sub(lambda match: f"{match[1]}={match[3]}", message)


def respell(message: str, spell: Callable[[str, str], str]) -> str:
    """Return a message with its arguments as another language writes them.

    - spell: Returns the text for the name of an option and for the value as Python writes it, which
      is "" if the message shows none. If it returns "", the argument keeps Python's spelling.
    """

    def replace(match: re.Match[str]) -> str:
        return spell(match[2], match[3]) or python_spelling(match[0])

    return _MARKED.sub(replace, message)
