"""A question in English out of a relation's label.

Labels are taken for what they look like: Freebase paths (``/people/person/nationality``, also
through a mediator, ``/film/actor/film./film/performance/film``), WordNet's pointers
(``_hypernym``), or words (``bornIn``, ``http://example.org/place_of_birth``). What comes out can be
understood rather than admired; people may edit it, see `kgtrec.study.judging.templates`.
"""

from __future__ import annotations

import re

__all__ = ["HEAD", "TAIL", "template_of"]

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

_PREPOSITIONS = {
    "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "with",
}  # fmt: skip
_IRREGULAR = {
    "born", "brought", "built", "found", "held", "known", "led", "made", "run", "set", "sold",
    "split", "spoken", "taken", "won", "written",
}  # fmt: skip
# "Is X acted in Y" would be wrong.
_INTRANSITIVE = {
    "acted", "appeared", "died", "graduated", "lived", "occurred", "participated", "played",
    "resided", "served", "studied", "worked",
}  # fmt: skip
_IS = ("is", "was", "are", "were")
# Third person singular, which looks like a plural: label form -> infinitive.
_VERBS = {
    "adjoins": "adjoin", "affects": "affect", "appears": "appear", "belongs": "belong",
    "borders": "border",
    "causes": "cause", "comes": "come", "competes": "compete", "contains": "contain",
    "controls": "control", "creates": "create", "employs": "employ", "follows": "follow",
    "includes": "include", "influences": "influence", "interacts": "interact", "knows": "know",
    "leads": "lead", "lives": "live", "manages": "manage", "owns": "own",
    "plays": "play", "precedes": "precede", "produces": "produce", "publishes": "publish",
    "regulates": "regulate", "represents": "represent", "speaks": "speak", "studies": "study",
    "supports": "support", "teaches": "teach", "treats": "treat", "works": "work",
}  # fmt: skip
_PLURALS = {
    "alumni": "alumnus", "children": "child", "criteria": "criterion", "media": "medium",
    "men": "man", "people": "person", "women": "woman",
}  # fmt: skip
_NO_PLURALS = {
    "always", "gas", "has", "news", "physics", "politics", "series", "species", "this", "was",
}  # fmt: skip


def template_of(relation: str) -> str:
    """A question with ``{head}`` and ``{tail}`` that asks whether a triple is true.

    Parameters
    ----------
    relation : str
        Label of the relation.

    Returns
    -------
    str
        The same for the same label; each placeholder once.
    """
    known = _WORDNET.get(relation)
    if known is not None:
        return known
    # A label must not bring placeholders or columns of its own.
    clean = " ".join(re.sub(r"[{}]", " ", relation).split())
    if clean.startswith("/") and clean.count("/") >= 2:
        return _of_path(clean)
    return _of_words(clean)


# --- Freebase -------------------------------------------------------------------------------------


def _of_path(relation: str) -> str:
    """``/domain/type/property``, or two such paths with a dot between them."""
    parts = [path.strip("/").split("/") for path in re.split(r"\.(?=/)", relation)]
    first, last = parts[0], parts[-1]
    if min(len(first), len(last)) < 2:
        return _of_words(relation)
    subject = f"the {_spaced(first[-2])} {HEAD}"
    value = _spaced(last[-1])
    if len(parts) == 1:
        return _asked(subject, value)
    return f"Does {subject} have{_mediator(_spaced(first[-1]), _spaced(last[-2]), value)}?"


def _mediator(name: str, kind: str, value: str) -> str:
    """``a marriage whose type of union is {tail}``; `name` is what leads to the mediator."""
    other_words = {_singular(word) for word in f"{kind} {value}".split()}
    words = name.split()
    if " " not in kind and _participle(kind):
        kind = f"entry “{kind}”"
    if {_singular(word) for word in words} <= other_words:
        thing = f" {_a(kind)}"
    elif words[-1] in _PREPOSITIONS or words[0] in _VERBS:
        thing = f" {_a(kind)} ({name})"
    elif _is_plural(name):
        thing = f", among its {name}, {_a(kind)}"
    else:
        thing = f" {_a(name)} ({kind})"
    return f"{thing} {_which(value)}"


def _which(value: str) -> str:
    words = value.split()
    if words[-1] in _VERBS:
        return f"that {value} {TAIL}"
    if _is_plural(value):
        return f"that has {TAIL} among its {value}"
    if words[-1] in _PREPOSITIONS and len(words) > 1:
        return f"that is {value} {TAIL}" if _participle(words[-2]) else f"that has {value} {TAIL}"
    return f"whose {value} is {TAIL}"


# --- Words ----------------------------------------------------------------------------------------


def _of_words(relation: str) -> str:
    name = re.split(r"[/#]", relation.rstrip("/#"))[-1] or relation
    name = name.rpartition(":")[2] or name
    words = _spaced(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    if not re.search(r"[^\W\d_]{3}", words):  # a number such as P31 says nothing to people
        return f"Does “{relation}” lead from {HEAD} to {TAIL}?"
    return _asked(HEAD, words.lower())


def _asked(subject: str, phrase: str) -> str:
    """A question about a subject, from what stands between it and the tail in the label."""
    first, *rest = words = phrase.split()
    last, more = words[-1], " ".join(rest)
    if first in _IS and rest:
        return f"{first.capitalize()} {subject} {more} {TAIL}?"
    if first in ("has", "have") and rest:
        return _asked(subject, more)
    verb = next((word for word in words if word in _VERBS), None)
    if verb is not None and (verb in (first, last)):
        infinitive = " ".join(_VERBS.get(word, word) for word in words)
        return f"Does {subject} {infinitive} {TAIL}?"
    if _is_plural(phrase):
        return f"Does {subject} have {TAIL} among its {phrase}?"
    if last in _PREPOSITIONS and rest:
        return _prepositional(subject, words)
    if not rest and _participle(phrase):
        return f"Is it true that {subject} {phrase} {TAIL}?"
    return f"Does {subject} have the {phrase} {TAIL}?"


def _prepositional(subject: str, words: list[str]) -> str:
    phrase = " ".join(words)
    if words[-2] in _INTRANSITIVE:
        return f"Is it true that {subject} {phrase} {TAIL}?"
    if _participle(words[-2]):
        return f"Is {subject} {phrase} {TAIL}?"
    if words[-1] == "of":
        return f"Is {subject} {_a(phrase)} {TAIL}?"
    return f"Does {subject} have {phrase} {TAIL}?"


def _spaced(label: str) -> str:
    """``place_of_birth`` and ``spouse_s`` as words."""
    return " ".join(re.sub(r"_s$", "", label).replace("_", " ").split()) or label


def _participle(word: str) -> bool:
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 4)


def _is_plural(phrase: str) -> bool:
    words = phrase.split()
    end = next((i for i, word in enumerate(words) if word in _PREPOSITIONS or word == "per"), None)
    return any(_singular(word) != word for word in words[:end])


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if len(word) < 4 or word in _NO_PLURALS or word in _VERBS:
        return word
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "uses")) else word[:-1]


def _a(phrase: str) -> str:
    vowel = phrase[:1] in "aeio" or (phrase.startswith("u") and not phrase.startswith(("un", "us")))
    return f"{'an' if vowel else 'a'} {phrase}"
