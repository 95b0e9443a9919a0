"""Text in other encodings than UTF-8: a sentence instead of strange lines."""

from __future__ import annotations

_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_SAMPLE = 1 << 10
_FEWEST = 8  # bytes of a text that is recognised without a mark


def wide_encoding(start: bytes) -> str:
    """Return the name of a text's encoding of 16 or 32 bits per character; "" for others."""
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            return name
    if b"\0" not in start or len(start) < _FEWEST:
        return ""
    for name, width in (("UTF-32LE", 4), ("UTF-32BE", 4), ("UTF-16LE", 2), ("UTF-16BE", 2)):
        size = min(len(start), _SAMPLE) // width * width
        try:
            text = start[:size].decode(name)
        except UnicodeDecodeError:
            continue
        words = text.split()
        is_likely = len(words) > 1 or 5 * start.count(0) >= 2 * len(start)  # half of ASCII is NUL
        if text and is_likely and "".join(words).isprintable():
            return name
    return ""


def explain_encoding(encoding: str) -> tuple[str, str]:
    """Return the problem of a file in such an encoding, and a remedy."""
    return f"{encoding} text", f"save it as UTF-8, as by iconv -f {encoding} -t UTF-8 OLD > NEW"
