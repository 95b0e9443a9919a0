"""Rebuild their label sets: seeds, pool, rules, complete split, questions, distributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from zhou_published import CATEGORY_FILES, Files, Row, row

import kgtrec
from kgtrec.graph.statistics.popularity import triples_of
from kgtrec.graph.statistics.relations import kl_divergence, relation_categories
from kgtrec.study.pooling.completion import (
    FALSE,
    TRUE,
    Completion,
    complete,
    read_relation_types,
    trivial_rules,
)
from kgtrec.study.pooling.edited_files import EditedFile, Judgements, read_judgements, read_triples
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.seeds import (
    SeedQuestions,
    keys_of,
    questions_of,
    read_question_ids,
    replace_split,
    sample_seeds,
    seed_questions,
)

__all__ = ["Labels", "label_rows", "read_labels"]


@dataclass(frozen=True, eq=False)
class Labels:
    """The published pool and judgements.

    Attributes
    ----------
    graph : Graph
    seeds : SeedQuestions
    pool : Pool
        Of one unnamed system; its places say when triples enter.
    judgements : Judgements
    """

    graph: kgtrec.Graph
    seeds: SeedQuestions
    pool: Pool
    judgements: Judgements

    def at(self, depth: int) -> Completion:
        """The labels at a pooling depth, from 0 to 10."""
        return complete(self.seeds, self.pool, self.judgements, depth=depth)


def read_labels(files: Files) -> Labels:
    """Read the graph and the published labels."""
    graph = kgtrec.read_graph(files.graph, progress=False)
    seeds = seed_questions(graph, read_triples(files.data("FB-Test-S/samples.txt"), graph))
    judgements = read_judgements(files.labels("annotations.txt"), graph)
    return Labels(graph, seeds, _published_pool(files, graph, seeds), judgements)


def _published_pool(files: Files, graph: kgtrec.Graph, seeds: SeedQuestions) -> Pool:
    path = files.labels("supplementary/pooling_depth.txt")
    file = EditedFile(path, "head, relation, tail and depth, with tabs between")
    columns = ["head", "relation", "tail", "depth", *map(str, range(4, len(file.first)))]
    lines = [*file.rows(columns)]
    triples = file.triple_ids(graph, lines)
    file.refuse_faults()
    depth = np.array([int(cells["depth"]) for _, cells in lines])
    own = dict(zip(seeds.keys.tolist(), seeds.ids, strict=True))
    asked = questions_of(graph, triples)[0]
    sides = np.isin(asked, seeds.keys)
    names = [(own.get(head, ""), own.get(tail, "")) for head, tail in asked.tolist()]
    return Pool(graph, ("published",), int(depth.max()), triples, depth[:, None], sides, names)


def label_rows(files: Files, labels: Labels) -> Iterator[Row]:
    """Table 1, the pool, the sample, the questions, the KL figures and the category lists."""
    yield from _table1(files, labels)
    yield from _pool(files, labels)
    yield from _rules(files, labels)
    yield from _questions(files, labels)
    yield from _distributions(labels)
    yield from _categories(files, labels.graph)


def _table1(files: Files, labels: Labels) -> Iterator[Row]:
    graph, whole = labels.graph, labels.at(10)
    sample = sample_seeds(graph, 0.05, seed=42)
    printed = [int(line) for line in files.data("FB-Test-S/sample_idxs.txt").read_text().split()]
    same = sample.rows.tolist() == printed and np.array_equal(sample.triples, labels.seeds.seeds)
    yield row("000.t1.O", len(graph.split("test")))
    yield row("000.t1.S", len(sample))
    yield row("000.S.sample_rule", same, "rows and triples of FB-Test-S, drawn anew")
    yield row("000.t1.SC", len(whole))
    yield row("000.t1.SC.pos", len(whole.with_label(TRUE)))
    yield row("000.t1.SC.neg", len(whole.with_label(FALSE)))
    theirs = read_triples(files.labels("test.txt"), graph)
    yield row("complete split = FB-Test-S-C/test.txt", _same(whole.split, theirs), published=True)
    yield row("000.O.relations", int((graph.relation_counts("test") > 0).sum()))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return {tuple(t) for t in one.tolist()} == {tuple(t) for t in other.tolist()}


def _pool(files: Files, labels: Labels) -> Iterator[Row]:
    pool = labels.pool
    yield row("000.pool.triples", len(pool))
    yield row("000.pool.entities", len(np.unique(pool.triples[:, [0, 2]])))
    yield row("000.pool.relations", len(np.unique(pool.triples[:, 1])))
    human = read_judgements(files.labels("supplementary/human_labeled.txt"), labels.graph, "N")
    note = f"lines; {len(human):,} triples, {human.repeated} repeated, {human.blank} blank labels"
    yield row("000.pool.human", human.rows, note)
    yield row("000.depth2.newpos", labels.at(2).counts()["added"])
    known = {tuple(t) for t in triples_of(labels.graph).tolist()}
    leaked = sum(tuple(t) in known for t in pool.triples.tolist())
    yield row("pooled triples that a split knows", leaked, published=0)
    raised = [labels.at(depth).counts() for depth in range(11)]
    for depth, counts in enumerate(raised):
        text = f"{counts['added']:,} true, {counts['false']:,} false"
        yield Row(f"pooled up to depth {depth}", None, text, None)


def _rules(files: Files, labels: Labels) -> Iterator[Row]:
    graph, pool = labels.graph, labels.pool
    filtered = read_judgements(files.labels("supplementary/filtered.txt"), graph)
    human = read_judgements(files.labels("supplementary/human_labeled.txt"), graph, "N")
    by_category = np.array(trivial_rules(pool, categories=relation_categories(graph))) != ""
    trivial = filtered.labels_of(pool.triples) == 0
    said = human.labels_of(pool.triples)
    yield row("trivial triples in filtered.txt", int(trivial.sum()), published=8899)
    note = f"{int((by_category & ~trivial).sum())} more fire, of which judges call "
    note += f"{int((said[by_category & ~trivial] == 1).sum())} true"
    yield row("... found by category rules alone", int((by_category & trivial).sum()), note, 8899)
    path = files.data("FB-Test-O/type_information/relation_specific.txt")
    types = read_relation_types(path, graph)
    wrong = np.array(trivial_rules(pool, types=types)) != ""
    remark = f"fire on {int(wrong.sum()):,}, of {int((wrong & (said >= 0)).sum()):,} judged ones "
    remark += f"{int((said[wrong] == 1).sum())} are true"
    yield Row("type rules, types looked up in all splits", None, None, None, remark)


def _questions(files: Files, labels: Labels) -> Iterator[Row]:
    whole = labels.at(10)
    printed = read_triples(files.labels("test.txt"), labels.graph)
    questions = replace_split(labels.graph, printed, "test").questions("test")
    ours = dict(zip(keys_of(questions).tolist(), questions.ids, strict=True))
    theirs = read_question_ids(files.labels("trec_queries.txt"), labels.graph)
    yield row("questions of FB-Test-S-C, names included", ours == theirs, published=True)
    own = read_question_ids(files.data("FB-Test-O/trec_queries.txt"), labels.graph)
    yield row("questions of FB-Test-O, names included", own == labels.seeds.names, published=True)
    text = f"{len(whole.reverse):,} of {len(questions):,}"
    yield Row("reverse questions, never pooled", None, text, None, "not mentioned in the paper")


def _distributions(labels: Labels) -> Iterator[Row]:
    graph = labels.graph
    original = graph.relation_counts("test")
    counts = [
        np.bincount(rows[:, 1], minlength=graph.n_relations)
        for rows in (labels.seeds.seeds, triples_of(graph), labels.at(10).split)
    ]
    sample, full, whole = counts
    yield row("000.kld.S_O", kl_divergence(original, sample))
    yield row("000.kld.O_full", kl_divergence(full, original))
    yield row("000.kld.SC_O", kl_divergence(original, whole))


def _categories(files: Files, graph: kgtrec.Graph) -> Iterator[Row]:
    categories = relation_categories(graph)
    for name, stem in CATEGORY_FILES.items():
        text = files.data(f"FB-Test-O/type_information/{stem}.txt").read_text("utf-8")
        theirs = {line.strip() for line in text.splitlines() if line.strip()}
        ours = {graph.relations[relation] for relation in categories.members(name).tolist()}
        yield row(
            f"relations {name}",
            len(ours),
            "the same names" if ours == theirs else f"differ in {sorted(ours ^ theirs)[:3]}",
            len(theirs),
        )
