"""Notice qrels whose second column has subtopics, as in TREC's diversity tasks.

There a document has a line per subtopic. kgtrec computes ad-hoc measures, which need one relevance
per document. In ordinary qrels the second column is 0, Q0 or the number of an iteration.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kgtrec.errors import QrelsWarning
from kgtrec.trec.files.text import Text

_ORDINARY = {b"0", b"Q0", b"q0"}


def other_subtopic(text: Text, line: int, fields: list[bytes]) -> bytes | None:
    """Find the second column of an earlier line with the query and document of this line.

    None if it is the same as in this line.
    """
    query, subtopic, document = fields[:3]
    for number, other in _judgements(text):
        if number >= line:
            break
        if (other[0], other[2]) == (query, document):
            return other[1] if other[1] != subtopic else None
    return None


def advice_for_subtopics(text: Text) -> str:
    """Say what to do with qrels that have subtopics."""
    name = shlex.quote(str(text.path))
    return (
        "these look like subtopics, as in TREC's diversity tasks. kgtrec computes no diversity "
        "measures. For ad-hoc qrels keep the highest relevance of each document: "
        f"sort -k4,4nr {name} | awk '!seen[$1, $3]++ {{print $1, 0, $3, $4}}' > adhoc.txt. If they "
        "are not subtopics, keep one of the two lines"
    )


def warn_of_subtopics(text: Text) -> None:
    """Warn if the second column of qrels looks like subtopics: see `_look_like_subtopics`."""
    first = next(_judgements(text), None)
    if first is None or first[1][1] in _ORDINARY or not _look_like_subtopics(text):
        return
    text.warn(
        QrelsWarning(
            f"{text.path}: the second column looks like subtopics, as in TREC's diversity tasks. "
            "kgtrec ignores it: measures are those of ad-hoc qrels, not of diversity"
        )
    )


def _look_like_subtopics(text: Text) -> bool:
    """Return whether the second column has subtopics.

    Either each value begins with the name of its query, as 12.3 does for query 12. Or the values
    of each query are 1, ..., k, and k differs between queries. Iterations are the same for all
    queries, or include 0.
    """
    are_named = are_counted = True
    subtopics: dict[bytes, set[bytes]] = {}
    for _, (query, subtopic, *_) in _judgements(text):
        suffix = subtopic.removeprefix(query)
        are_named = are_named and len(suffix) < len(subtopic) and suffix[:1] in (b".", b"-", b"_")
        are_counted = are_counted and subtopic.isdigit() and subtopic[:1] != b"0"
        if not (are_named or are_counted):
            return False
        subtopics.setdefault(query, set()).add(subtopic)
    sizes = {len(values) for values in subtopics.values()}
    if are_named:
        return max(sizes) > 1
    return len(sizes) > 1 and all(
        {*map(int, values)} == {*range(1, len(values) + 1)} for values in subtopics.values()
    )


def _judgements(text: Text) -> Iterator[tuple[int, list[bytes]]]:
    """Yield line number and columns of every line of qrels that is not a comment."""
    at, number = text.start, text.first_line
    while at < len(text.data):
        end = text.data.find(b"\n", at) + 1
        fields = bytes(text.data[at:end]).split(None, 4)
        if len(fields) >= 4 and not fields[0].startswith(b"#"):
            yield number, fields
        at, number = end, number + 1
