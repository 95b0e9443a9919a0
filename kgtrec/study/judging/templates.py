"""Templates of questions, one per relation, and names of entities to put into them.

A file of templates is TSV with the header ``relation template``; a template holds ``{head}`` and
``{tail}``, in the cells of a sheet (`kgtrec._internal.cells`). A file of names has lines
``id<TAB>name``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike

from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.cells import cell_of, text_of_cell
from kgtrec.errors import InputError
from kgtrec.study.judging.file_errors import Fault, Faults, lines_with_faults, text_lines
from kgtrec.study.judging.question_text import HEAD, TAIL, template_of

__all__ = [
    "Names",
    "Templates",
    "generated_templates",
    "read_names",
    "read_templates",
    "write_templates",
]

HEADER = ("relation", "template")
_HINT = f"write both {HEAD} and {TAIL} into it, and no other braces"


@dataclass(frozen=True)
class Names:
    """What people call an entity.

    Attributes
    ----------
    names : mapping of str to str
        Label of the entity to its name.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    def of(self, entity: str) -> str:
        """The name, or the label where there is none."""
        return self.names.get(entity, entity)

    def missing(self, entities: Iterable[str]) -> list[str]:
        """Entities without a name, each once, in order of appearance."""
        return [one for one in dict.fromkeys(entities) if one not in self.names]


@dataclass(frozen=True)
class Templates:
    """A question for every relation.

    Attributes
    ----------
    by_relation : mapping of str to str
        Each with ``{head}`` and ``{tail}``.
    """

    by_relation: Mapping[str, str]

    def question(self, head: str, relation: str, tail: str, names: Names) -> str:
        """The question about a triple, with names in it.

        Names are put in as they are: braces in them mean nothing.
        """
        value = {HEAD: names.of(head), TAIL: names.of(tail)}
        template = self.by_relation[relation]
        return re.sub(r"\{head\}|\{tail\}", lambda match: value[match[0]], template)

    def require(self, relations: Iterable[str]) -> None:
        """InputError naming relations that have no template."""
        lacking = [name for name in dict.fromkeys(relations) if name not in self.by_relation]
        if lacking:
            shown = ", ".join(map(repr, lacking[:5])) + ", ..." * (len(lacking) > 5)
            raise InputError(
                f"no template for {len(lacking):,} relations: {shown}; add a line for each "
                "(kgtrec judge templates writes them)"
            )


def generated_templates(relations: Iterable[str]) -> Templates:
    """A template for each relation, made from its label; in the order given."""
    return Templates({name: template_of(name) for name in dict.fromkeys(relations)})


def write_templates(path: str | PathLike[str], templates: Templates) -> None:
    """Write a file of templates, whole or not at all.

    Raises
    ------
    InputError
        A relation or template with a tab or line end in it.
    FileError
        The target cannot be written.
    """
    rows = [HEADER, *templates.by_relation.items()]
    bad = next((cell for row in rows for cell in row if set(cell) & set("\t\r\n")), None)
    if bad is not None:
        raise InputError(f"{bad!r} has a tab or line end in it; a TSV file cannot hold it")
    with atomic_write(path) as out:
        for row in rows:
            line = "\t".join(map(cell_of, row))
            out.write(line.encode("utf-8", "surrogateescape") + b"\n")


def read_templates(path: str | PathLike[str]) -> Templates:
    """Read templates and refuse the file if anything is wrong with it.

    Raises
    ------
    Faults
        A FileError that lists every template without ``{head}`` or ``{tail}``, with other
        placeholders, every relation that stands twice, and malformed lines.
    FileError
        Missing, empty, or no text.
    """
    lines = text_lines(path)
    faults: list[Fault] = []
    if tuple(lines[0].split("\t")) != HEADER:
        problem = f"the first line is {lines[0][:80]!r}"
        raise Faults(path, [Fault(1, problem, f"it must be {'<TAB>'.join(HEADER)}")])
    found_at: dict[str, int] = {}
    templates: dict[str, str] = {}
    hint = "each line must be relation<TAB>template"
    for number, cells in lines_with_faults(lines[1:], faults, 2, hint, 2):
        relation, template = map(text_of_cell, cells)
        faults += _template_faults(number, relation, template)
        other = found_at.setdefault(relation, number)
        if other != number:
            problem = f"relation {relation!r} stands in line {other} too"
            faults.append(Fault(number, problem, "keep one template per relation"))
        templates[relation] = template
    if faults:
        raise Faults(path, faults)
    return Templates(templates)


def _template_faults(number: int, relation: str, template: str) -> Iterable[Fault]:
    if not relation:
        yield Fault(number, "an empty relation", "every template needs one")
    lacking = [mark for mark in (HEAD, TAIL) if mark not in template]
    if lacking:
        yield Fault(number, f"template {template!r} lacks {' and '.join(lacking)}", _HINT)
    rest = template.replace(HEAD, "").replace(TAIL, "")
    if set(rest) & set("{}"):
        yield Fault(number, f"template {template!r} has braces of another kind", _HINT)


def read_names(path: str | PathLike[str]) -> Names:
    """Read names of entities; the first line may be a header ``id<TAB>name``.

    Raises
    ------
    Faults
        A FileError that lists malformed lines, empty cells, and entities with two names.
    FileError
        Missing, empty, or no text.
    """
    lines = text_lines(path)
    start = 2 if lines[0].lower() == "id\tname" else 1
    faults: list[Fault] = []
    names: dict[str, tuple[str, int]] = {}
    hint = "each line must be id<TAB>name"
    for number, (entity, name) in lines_with_faults(lines[start - 1 :], faults, 2, hint, start):
        if not entity or not name.strip():
            faults.append(Fault(number, f"an empty id or name in {entity!r}, {name!r}", hint))
            continue
        other, line = names.setdefault(entity, (name.strip(), number))
        if other != name.strip():
            problem = f"{entity!r} is called {name.strip()!r}, and {other!r} in line {line}"
            faults.append(Fault(number, problem, "keep one name"))
    if faults:
        raise Faults(path, faults)
    return Names({entity: name for entity, (name, _) in names.items()})
