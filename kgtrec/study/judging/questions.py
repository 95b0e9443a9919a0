"""The questions for judges, and aids for answering them.

A question is made from the label of a relation. The label is a Freebase path, perhaps through a
mediator (``/film/actor/film./film/performance/film``), one of WordNet's pointers (``_hypernym``),
or words (``bornIn``). Questions are understandable but clumsy, so people may edit them in a file
of templates: TSV with the header ``relation template``; every template contains ``{head}`` and
``{tail}``. A file of names has lines ``id<TAB>name``. Beside a question the page may show, per
entity, a link and facts of the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import is_stream
from kgtrec._internal.locations import exists, is_location, read_bytes
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.study.pooling.edited_files import EditedFile, write_lines

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

HEAD, TAIL = "{head}", "{tail}"

# WordNet 3.0's pointers as WN18 names them, from a head synset to a tail synset. A member of a
# domain is the tail: the head is the region, usage or topic.
_WORDNET = {
    "_hypernym": "Is {head} a kind of {tail}?",
    "_hyponym": "Is {tail} a kind of {head}?",
    "_instance_hypernym": "Is {head} an instance of {tail}?",
    "_instance_hyponym": "Is {tail} an instance of {head}?",
    "_member_meronym": "Is {tail} a member of {head}?",
    "_member_holonym": "Is {head} a member of {tail}?",
    "_has_part": "Is {tail} a part of {head}?",
    "_part_of": "Is {head} a part of {tail}?",
    "_member_of_domain_topic": "Is {tail} a term of the topic {head}?",
    "_synset_domain_topic_of": "Is {head} a term of the topic {tail}?",
    "_member_of_domain_region": "Is {tail} a term that belongs to the region {head}?",
    "_synset_domain_region_of": "Is {head} a term that belongs to the region {tail}?",
    "_member_of_domain_usage": "Is {tail} a term of the kind {head} (a way of using words)?",
    "_synset_domain_usage_of": "Is {head} a term of the kind {tail} (a way of using words)?",
    "_derivationally_related_form": "Are {head} and {tail} words of one origin, alike in meaning?",
    "_also_see": "Should who looks up {head} also see {tail}?",
    "_verb_group": "Do {head} and {tail} belong to one group of verbs, alike in meaning?",
    "_similar_to": "Is {head} similar in meaning to {tail}?",
}


def _word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_PREPOSITIONS = _word_set("at by for from in into of on to under with")
_IRREGULAR = _word_set(
    "born brought built found held known led made run set sold split spoken taken won written"
)
# "Is X acted in Y" would be wrong.
_INTRANSITIVE = _word_set("""
    acted appeared died graduated lived occurred participated played resided served studied worked
""")
_IS = ("is", "was", "are", "were")
# Third person singular, which looks like a plural.
_VERBS = _word_set("""
    adjoins affects appears belongs borders causes comes competes contains controls creates employs
    follows includes influences interacts knows leads lives manages owns plays precedes produces
    publishes regulates represents speaks studies supports teaches treats works
""")
_PLURALS = {
    "alumni": "alumnus",
    "children": "child",
    "criteria": "criterion",
    "media": "medium",
    "men": "man",
    "people": "person",
    "women": "woman",
}
_NO_PLURALS = _word_set("always gas has news physics politics series species this was")


def template_of(relation: str) -> str:
    """Return a question for a relation, which contains ``{head}`` and ``{tail}`` once each.

    It asks whether the triple is true.
    """
    known = _WORDNET.get(relation)
    if known is not None:
        return known
    # A label must not add placeholders or columns.
    clean = " ".join(re.sub(r"[{}]", " ", relation).split())
    if clean.startswith("/") and clean.count("/") >= 2:
        return _ask_path(clean)
    return _ask_words(clean)


# --- Freebase -------------------------------------------------------------------------------------


def _ask_path(relation: str) -> str:
    """Return the question for ``/domain/type/property``, or for two such paths joined by a dot."""
    parts = [path.strip("/").split("/") for path in re.split(r"\.(?=/)", relation)]
    first, last = parts[0], parts[-1]
    if min(len(first), len(last)) < 2:
        return _ask_words(relation)
    subject = f"the {_split_words(first[-2])} {HEAD}"
    value = _split_words(last[-1])
    if len(parts) == 1:
        return _ask(subject, value)
    mediator = _describe_mediator(_split_words(first[-1]), _split_words(last[-2]), value)
    return f"Does {subject} have{mediator}?"


def _describe_mediator(name: str, kind: str, value: str) -> str:
    """Return a phrase like ``a marriage whose type of union is {tail}``.

    - name: The property that leads from the head to the mediator.
    - kind: The type of the mediator.
    - value: The property that leads from the mediator to the tail.
    """
    other_words = {_singular(word) for word in f"{kind} {value}".split()}
    words = name.split()
    if " " not in kind and _is_participle(kind):
        kind = f"entry “{kind}”"
    if {_singular(word) for word in words} <= other_words:
        noun_phrase = f" {_add_article(kind)}"
    elif words[-1] in _PREPOSITIONS or words[0] in _VERBS:
        noun_phrase = f" {_add_article(kind)} ({name})"
    elif _is_plural(name):
        noun_phrase = f", among its {name}, {_add_article(kind)}"
    else:
        noun_phrase = f" {_add_article(name)} ({kind})"
    return f"{noun_phrase} {_describe_value(value)}"


def _describe_value(value: str) -> str:
    """Return a relative clause that says that the tail is a value of the property `value`."""
    words = value.split()
    if words[-1] in _VERBS:
        return f"that {value} {TAIL}"
    if _is_plural(value):
        return f"that has {TAIL} among its {value}"
    if words[-1] in _PREPOSITIONS and len(words) > 1:
        verb = "is" if _is_participle(words[-2]) else "has"
        return f"that {verb} {value} {TAIL}"
    return f"whose {value} is {TAIL}"


# --- Words ----------------------------------------------------------------------------------------


def _ask_words(relation: str) -> str:
    """Return the question for a label of words, such as ``bornIn``, a CURIE or an IRI."""
    name = re.split(r"[/#]", relation.rstrip("/#"))[-1] or relation
    name = name.rpartition(":")[2] or name
    words = _split_words(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    if not re.search(r"[^\W\d_]{3}", words):  # an id such as P31 means nothing to people
        return f"Does “{relation}” lead from {HEAD} to {TAIL}?"
    return _ask(HEAD, words.lower())


def _ask(subject: str, phrase: str) -> str:
    """Return the question whose subject is `subject`, from the words of the relation's label."""
    first, *later_words = words = phrase.split()
    last, after_first = words[-1], " ".join(later_words)
    if first in _IS and later_words:
        return f"{first.capitalize()} {subject} {after_first} {TAIL}?"
    if first in ("has", "have") and later_words:
        return _ask(subject, after_first)
    verb = next((word for word in words if word in _VERBS), None)
    if verb is not None and (verb in (first, last)):
        infinitive = " ".join(_without_s(word) if word in _VERBS else word for word in words)
        return f"Does {subject} {infinitive} {TAIL}?"
    if _is_plural(phrase):
        return f"Does {subject} have {TAIL} among its {phrase}?"
    if last in _PREPOSITIONS and later_words:
        return _ask_preposition(subject, words)
    if not later_words and _is_participle(phrase):
        return f"Is it true that {subject} {phrase} {TAIL}?"
    return f"Does {subject} have the {phrase} {TAIL}?"


def _ask_preposition(subject: str, words: list[str]) -> str:
    """Return the question for words that end with a preposition, such as ``born in``."""
    phrase = " ".join(words)
    if words[-2] in _INTRANSITIVE:
        return f"Is it true that {subject} {phrase} {TAIL}?"
    if _is_participle(words[-2]):
        return f"Is {subject} {phrase} {TAIL}?"
    if words[-1] == "of":
        return f"Is {subject} {_add_article(phrase)} {TAIL}?"
    return f"Does {subject} have {phrase} {TAIL}?"


def _split_words(label: str) -> str:
    """Return the words of ``place_of_birth`` or ``spouse_s``, separated by spaces."""
    return " ".join(re.sub(r"_s$", "", label).replace("_", " ").split()) or label


def _is_participle(word: str) -> bool:
    """Return True if a word looks like a participle, such as `born` or `located`."""
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 4)


def _is_plural(phrase: str) -> bool:
    """Return True if a phrase is in the plural."""
    words = phrase.split()
    end = next((i for i, word in enumerate(words) if word in _PREPOSITIONS or word == "per"), None)
    return any(_singular(word) != word for word in words[:end])


def _singular(word: str) -> str:
    """Return the singular of a word, or the word if it is not a plural."""
    if word in _PLURALS:
        return _PLURALS[word]
    if len(word) < 4 or word in _NO_PLURALS or word in _VERBS:
        return word
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-2] if word.endswith("uses") else _without_s(word)


def _without_s(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]


def _add_article(phrase: str) -> str:
    vowel = phrase[:1] in "aeio" or (phrase.startswith("u") and not phrase.startswith(("un", "us")))
    return f"{'an' if vowel else 'a'} {phrase}"


HEADER = ("relation", "template")
_HINT = f"write both {HEAD} and {TAIL} into it, without other braces"


@dataclass(frozen=True)
class Templates:
    """A question for every relation, each with ``{head}`` and ``{tail}``."""

    by_relation: Mapping[str, str]

    def question(self, head: str, relation: str, tail: str, names: Mapping[str, str]) -> str:
        """Return the question about a triple, with the names of its entities.

        Braces in names have no meaning.
        """
        value = {HEAD: names.get(head, head), TAIL: names.get(tail, tail)}
        template = self.by_relation[relation]
        return re.sub(r"\{head\}|\{tail\}", lambda match: value[match[0]], template)

    def require(self, relations: Iterable[str]) -> None:
        """Raise InputError if relations have no template; the message names them."""
        lacking = [name for name in dict.fromkeys(relations) if name not in self.by_relation]
        if lacking:
            shown = ", ".join(map(repr, lacking[:5])) + ", ..." * (len(lacking) > 5)
            raise InputError(
                f"{len(lacking):,} relations have no template: {shown}; add a line for each "
                "(kgtrec judge templates writes them)"
            )


def generate_templates(relations: Iterable[str]) -> Templates:
    """Return templates made from the labels of relations, in the order of `relations`."""
    return Templates({name: template_of(name) for name in dict.fromkeys(relations)})


def write_templates(path: PathName, templates: Templates) -> None:
    """Write a file of templates, whole or not at all.

    UsageError if the file exists and contains anything but questions made from labels.
    """
    _refuse_edited(path)
    rows = [HEADER, *templates.by_relation.items()]
    write_lines(path, ([cell_of(cell) for cell in row] for row in rows))


def _refuse_edited(path: PathName) -> None:
    """Raise UsageError if writing a file would lose questions that somebody has edited."""
    if (not is_location(path) and is_stream(path)) or not exists(path) or not read_bytes(path):
        return
    try:
        earlier = read_templates(path).by_relation
        edited = sum(template != template_of(relation) for relation, template in earlier.items())
        lost = f"{edited:,} of its {len(earlier):,} questions were edited" if edited else ""
    except FileError as error:
        lost = f"it is not a file of templates ({error.found})"
    if lost:
        raise UsageError(
            f"{path} exists and would be lost: {lost}; move it away, or write to another file: "
            f"{argument('path', option='output')}"
        )


def read_templates(path: PathName) -> Templates:
    """Read templates; refuse the file with all its faults."""
    file = EditedFile(path)
    templates: dict[str, str] = {}
    for number, cells in file.below(HEADER):
        relation, template = map(text_of_cell, cells.values())
        _check_template(file, number, relation, template)
        file.is_new(number, relation, f"relation {relation!r}", "keep one template per relation")
        templates[relation] = template
    file.refuse_faults()
    return Templates(templates)


def _check_template(file: EditedFile, number: int, relation: str, template: str) -> None:
    """Note the faults of a line with a template."""
    if not relation:
        file.fault(number, "an empty relation", "give every template a relation")
    lacking = [mark for mark in (HEAD, TAIL) if mark not in template]
    if lacking:
        file.fault(number, f"template {template!r} lacks {' and '.join(lacking)}", _HINT)
    if set(template.replace(HEAD, "").replace(TAIL, "")) & set("{}"):
        file.fault(number, f"template {template!r} has other braces", _HINT)


def read_names(path: PathName) -> dict[str, str]:
    """Read names of entities; the first line may be a header ``id<TAB>name``."""
    file = EditedFile(path)
    headed = [cell.lower() for cell in file.first] == ["id", "name"]
    names: dict[str, str] = {}
    for number, cells in file.rows(("id", "name"), int(headed)):
        entity, text = cells.values()
        name = text.strip()
        if not entity or not name:
            file.fault(number, f"an empty id or name in {entity!r}, {text!r}")
        elif names.setdefault(entity, name) != name:
            problem = f"{entity!r} is called {name!r}, but {names[entity]!r} in an earlier line"
            file.fault(number, problem, "keep one name")
    file.refuse_faults()
    return names


LABEL = "{label}"
# The label must come after the host name, so that it cannot lead to another host.
_TEMPLATE = re.compile(r"https?://[^\s/{}?#@]+[/?#][^\s{}]*\{label\}[^\s{}]*")


def check_link(template: str) -> str:
    """Return a template of a link; UsageError if it is not an address with ``{label}``."""
    if not _TEMPLATE.fullmatch(template):
        raise UsageError(
            f"{argument('link', template)} is not a template; write an address with {LABEL} once, "
            "after "
            "the host name, such as https://www.wikidata.org/wiki/{label}"
        )
    return template


@dataclass(frozen=True, eq=False)
class Context:
    """Links and facts that the page shows beside a triple, per entity.

    - link: Template of an address, see `check_link`.
    - graph: Graph whose train split has the facts.
    - names: Names of entities in facts.
    - limit: Largest number of facts per entity. Facts of different relations come first.
    """

    link: str | None = None
    graph: Graph | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    limit: int = 5

    def build(self, head: str, relation: str, tail: str) -> dict[str, object]:
        """Return links and facts of both entities, under "head" and "tail", if there are any."""
        shown: dict[str, object] = {}
        for side, entity in (("head", head), ("tail", tail)):
            details: dict[str, object] = {}
            if self.link is not None:
                details["link"] = _address(self.link, entity)
            if self.graph is not None:
                details["facts"] = self.facts(self.graph, entity, (head, relation, tail))
            if details:
                shown[side] = details
        return shown

    def facts(self, graph: Graph, entity: str, question: tuple[str, str, str]) -> list[list[str]]:
        """Return facts about an entity as names of head, relation and tail.

        `question` is the triple to judge, which is left out.
        """
        ids = graph.entities
        try:
            number = ids.index(entity)
        except ValueError:
            return []
        train = graph.splits.get("train", np.empty((0, 3), np.int32))
        rows = train[(train[:, 0] == number) | (train[:, 2] == number)]
        kinds = [(int(r), bool(h == number)) for h, r, _ in rows]
        first_rows = {kind: index for index, kind in reversed(list(enumerate(kinds)))}
        order = sorted(range(len(rows)), key=lambda i: (first_rows[kinds[i]] != i, i))
        triples = [
            (str(ids[h]), str(graph.relations[r]), str(ids[t])) for h, r, t in rows[order].tolist()
        ]
        facts = [(h, r, t) for h, r, t in triples if (h, r, t) != question]
        return [[self.names.get(h, h), r, self.names.get(t, t)] for h, r, t in facts[: self.limit]]


def _address(link: str, entity: str) -> str:
    """Put the quoted label of an entity into the template of a link; slashes stay as they are."""
    before, _, behind = link.partition(LABEL)
    label = quote(entity.encode("utf-8", "surrogateescape"), safe="/")
    return before + (label.removeprefix("/") if before.endswith("/") else label) + behind
