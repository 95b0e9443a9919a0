"""First lines that name the columns of a file of facts, as ``subject<TAB>predicate<TAB>object``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kgtrec.errors import refuse
from kgtrec.graph.id_files import text_of
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv import iterate_lines

_WORDS = {
    "h": "h head headentity headid headlabel headname s subj subject subjectid subjectlabel source "
    "sourceid src from",
    "r": "r rel relation relationid relationlabel relationname relationship relationtype p pred "
    "predicate predicateid predicatelabel property edge edgetype",
    "t": "t tail tailentity tailid taillabel tailname o obj object objectid objectlabel target "
    "targetid tgt dst dest destination to",
    "x": "label labels score scores weight confidence probability value time times timestamp date "
    "year month day since until start end begin starttime endtime startdate enddate "
    "validfrom validto occurssince occursuntil index id idx unnamed0 split",
}
_LETTER = {word: letter for letter, words in _WORDS.items() for word in words.split()}
FURTHER = "x"
"""The letter of a column that is neither head nor relation nor tail."""


def parse_column_names(fields: Iterable[str], others: bool = False) -> str:
    """Return a letter per column of a line of names: "hrt" or "hrtx"; "" for another line.

    With ``others`` there may be names of unknown meaning.
    """
    words = ["".join(filter(str.isalnum, field.lower())) for field in fields]
    if others and all(words.count(name) == 1 for name in COLUMNS):  # whatever the others mean
        words = [word if word in COLUMNS else "" for word in words]
    unknown = FURTHER if others else "?"
    letters = "".join(_LETTER.get(word, unknown) if word else FURTHER for word in words)
    is_heading = "?" not in letters and all(letters.count(letter) == 1 for letter in "hrt")
    return letters if is_heading else ""


def awk(columns: Iterable[int], condition: str = "") -> str:
    """Return a command that writes these columns (from 1) of lines that fulfil the condition."""
    fields = ", ".join(f"${column}" for column in columns)
    return f"awk -F'\\t' -v OFS='\\t' '{condition}{{print {fields}}}'"


@dataclass(frozen=True)
class Heading:
    """The first line of a file, which looks like names of its columns."""

    path: Path
    line: bytes
    columns: str

    @property
    def labels(self) -> list[bytes]:
        """The names of head, relation and tail."""
        fields = self.line.split(b"\t")
        return [fields[self.columns.index(letter)] for letter in "hrt"]

    @property
    def names(self) -> str:
        """The names of all columns, for messages."""
        return ", ".join(map(text_of, self.line.split(b"\t")))

    @property
    def has_words(self) -> bool:
        """Return True if a name is longer than a letter."""
        return any(len(label.strip()) > 1 for label in self.labels)


def read_headings(files: Mapping[str, Path], declared: str | None) -> dict[str, Heading]:
    """Read the headings of files by split: of all files, or only of some if they have words.

    Raises
    ------
    FileError
        Headings contradict each other or the declared order, or begin with a further column.
    """
    lines = {split: next(iterate_lines(path), (1, b""))[1] for split, path in files.items()}
    headings = {
        name: heading for name, line in lines.items() if (heading := heading_of(files[name], line))
    }
    if not 1 < len(files) == len(headings):
        headings = {split: heading for split, heading in headings.items() if heading.has_words}
    orders = {heading.columns: heading for heading in headings.values()}
    for columns, heading in orders.items():
        order = columns[:3]
        if FURTHER in order:
            at = [columns.index(c) + 1 for c in "hrt"]
            at += [i + 1 for i, letter in enumerate(columns) if letter == FURTHER]
            hint = "write head, relation and tail first, as in " + awk(at)
            refuse(heading.path, 1, f"the columns are {heading.names}", hint)
        if declared not in (None, order):
            problem = f"the columns are {heading.names}, but declared as {declared}"
            refuse(heading.path, 1, problem, "leave the declaration out")
    if len(orders) > 1:
        first, other = [*orders.values()][:2]
        problem = f"the columns are {other.names}, but those of {first.path.name} {first.names}"
        refuse(other.path, 1, problem, "write the columns of all files in one order")
    return headings


def heading_of(path: Path, line: bytes) -> Heading | None:
    """Return the first line as a heading if it looks like names of columns, else None."""
    columns = parse_column_names(line.decode("utf-8", "replace").split("\t"))
    return Heading(path, line, columns) if columns else None


def decide_order(declared: str | None, headings: Mapping[str, Heading]) -> str:
    """Return the order of columns: as declared, else as in first lines, else head-relation-tail.

    `headings` are from `read_headings`, which refuses those that contradict the declaration.
    """
    named = next((heading.columns[:3] for heading in headings.values()), None)
    return declared or named or "hrt"
