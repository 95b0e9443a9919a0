"""Write the files that the commands of `baseline_cases.py` and `baseline_errors.py` read, by seed.

They are in the working folder, beside the graph that `kgtrec demo` writes to ``demo/``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from data import FOLDER, SHARED_DATA

import kgtrec

Array = npt.NDArray[Any]
Triple = tuple[str, str, str]
SEED = 20_261

# Per system: the weight of a correct answer, and the decimals of its scores.
SYSTEMS = {"a": (3.0, 6), "b": (2.0, 0), "c": (1.0, 2)}
REAL_MODELS = ("distmult", "complex", "transe", "rotate")


def write_inputs(home: Path) -> None:
    """Write everything except the demo's own files, which must already exist."""
    countries(home)
    formats(home / "small")
    contexts(home)
    predictions(home)
    candidates(home)
    labelled_triples(home)
    alignments(home)
    trec_files(home)
    tables(home)
    jobs(home)


# ---- helpers ----


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def lines(rows: Iterable[Iterable[Any]], separator: str = "\t") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def save(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def labels_of(graph: kgtrec.Graph, split: str) -> list[Triple]:
    e, r = graph.entities, graph.relations
    return [(e[h], r[k], e[t]) for h, k, t in graph.splits[split][:, :3].tolist()]


# ---- the demo's countries: scores of systems and of seeds, half of the labels ----


def countries(home: Path) -> None:
    graph = kgtrec.read_graph(home / "demo/graph")
    test = labels_of(graph, "test")
    for split in ("train", "valid"):
        write(home / f"half/graph/{split}.txt", lines(labels_of(graph, split)))
    write(home / "half/graph/test.txt", lines(test[::2]))
    write(home / "half.tsv", lines(test[::2]))
    for folder in (home, home / "half"):
        # Entities that half of the demo's triples do not name have no columns there.
        own = kgtrec.read_graph(home / "demo/graph" if folder == home else folder / "graph")
        for number, (name, (skill, decimals)) in enumerate(SYSTEMS.items()):
            save(folder / f"{name}.npy", scores(own, number, skill, decimals))
    for number, name in enumerate(("x-1", "x-2", "x-3", "y-1", "y-2", "y-3")):
        save(home / f"{name}.npy", scores(graph, 10 + number, 2.5 if number < 3 else 2.0, 3))
    whole = np.load(home / "a.npy")
    for part, rows in enumerate(np.array_split(whole, 3)):
        save(home / f"a.shards/{part}.npy", rows)
    factors(home, graph)
    frame = graph.questions()
    rng = np.random.default_rng(SEED + 40)
    instances = rng.normal(size=(frame.n_instances, graph.n_entities)).round(1)
    save(home / "instances.npy", instances.astype(np.float32))
    holes = whole.copy()
    holes[::7, ::5] = np.nan
    save(home / "nan.npy", holes)
    for side, name in enumerate(("head", "tail")):
        save(home / f"{name}.npy", whole[frame.side == side])
    asked = graph.questions("valid")
    save(home / "valid.npy", np.random.default_rng(SEED).random((len(asked), graph.n_entities)))
    write(
        home / "types.tsv", lines((e, "A" if i % 3 else "B") for i, e in enumerate(graph.entities))
    )
    write(home / "roles.tsv", lines((r, "A", "B") for r in graph.relations))
    write(home / "labels.tsv", lines((*t, f"l{i % 3}") for i, t in enumerate(test)))
    write(home / "entities.txt", lines([e] for e in graph.entities[::2]))
    write(home / "relations.txt", lines([r] for r in graph.relations[:4]))
    write(home / "unknown.txt", lines([r] for r in ("borders", "no such relation")))
    write(home / "known.tsv", lines((t, r, h) for h, r, t in test))
    write(home / "names.tsv", lines((e, e.upper()) for e in graph.entities))
    weights = np.random.default_rng(SEED).random((2 * graph.n_relations, graph.n_entities))
    save(home / "weights.npy", weights.astype(np.float32))
    save(home / "relation-scores.npy", relation_scores(graph))


def scores(graph: kgtrec.Graph, number: int, skill: float, decimals: int) -> Array:
    """Scores: popularity on the asked side of the relation, noise, and part of the answers."""
    rng = np.random.default_rng(SEED + number)
    questions = graph.questions()
    train = graph.splits["train"]
    counts = np.zeros((2, graph.n_relations, graph.n_entities), dtype=np.float64)
    for side, column in ((0, 0), (1, 2)):
        np.add.at(counts[side], (train[:, 1], train[:, column]), 1)
    made = np.sqrt(counts[questions.side, questions.relation])
    made += rng.normal(size=made.shape)
    for row in range(len(questions)):
        own = questions.answers[row]
        made[row, own] += skill * rng.random(len(own))
    return made.round(decimals).astype(np.float32)


def relation_scores(graph: kgtrec.Graph) -> Array:
    rng = np.random.default_rng(SEED + 50)
    rows = len(graph.questions(sides="relation"))
    return rng.normal(size=(rows, graph.n_relations)).round(1).astype(np.float32)


def factors(home: Path, graph: kgtrec.Graph) -> None:
    """A factorised model by each metric: a question is the mean of its answers, and noise."""
    rng = np.random.default_rng(SEED + 60)
    questions = graph.questions()
    entities = rng.normal(size=(graph.n_entities, 12)).astype(np.float32)
    queries = np.stack([entities[questions.answers[row]].mean(0) for row in range(len(questions))])
    queries += rng.normal(size=queries.shape).astype(np.float32) * 0.8
    for metric in ("dot", "l1", "l2", "cosine"):
        arrays = {"queries": queries.astype(np.float32), "entities": entities, "metric": metric}
        np.savez(home / f"{metric}.npz", **arrays)
    bias = rng.normal(size=len(entities)).astype(np.float32)
    np.savez(home / "bias.npz", queries=queries.astype(np.float32), entities=entities, bias=bias)


# ---- one small graph in every format that is read ----

SMALL = {
    "train": [("zoë", "likes", "adam"), ("adam", "knows", "b c"), ("b c", "likes", "zoë"),
              ("eve", "knows", "adam"), ("dan", "likes", "eve"), ("adam", "likes", "dan")],
    "valid": [("b c", "knows", "adam")],
    "test": [("adam", "likes", "zoë"), ("zoë", "knows", "eve"), ("eve", "likes", "dan")],
}  # fmt: skip
ENTITIES = ["b c", "zoë", "adam", "dan", "eve"]  # in no order of bytes or appearance
RELATIONS = ["likes", "knows"]
TRAINED = [("x", "likes", "y"), ("y", "only here", "x")]
DATASET = (
    "dataset:\n  files.entity_ids.filename: entity_ids.del\n  files.train:\n"
    "    filename: train.del\n  files.valid.filename: valid.del\n  num_entities: 5\n"
)


def numbers(split: str) -> list[tuple[int, int, int]]:
    return [(ENTITIES.index(h), RELATIONS.index(r), ENTITIES.index(t)) for h, r, t in SMALL[split]]


def formats(home: Path) -> None:
    for split, rows in SMALL.items():
        ids, head, relation, tail = numbers(split), *zip(*rows, strict=True)
        table = pa.table({"tail": tail, "relation": relation, "head": head})
        long = {"train": "training", "valid": "validation", "test": "testing"}[split]
        write(home / f"tsv/{split}.txt", lines(rows))
        write(home / f"htr/{split}.tsv", lines((h, t, r) for h, r, t in rows))
        write(home / f"libkge/{split}.del", lines(ids))
        write(home / f"rotate/{split}.txt", lines(rows))
        write(home / f"dglke/{split}.txt", lines((r, t, h) for h, r, t in ids))
        write(home / f"pykeen/{long}/numeric_triples.tsv.gz", "head\trelation\ttail\n" + lines(ids))
        write(
            home / f"openke/{split}2id.txt",
            f"{len(ids)}\n" + lines(((h, t, r) for h, r, t in ids), " "),
        )
        write(
            home / f"csv/{split}.csv",
            "tail,head,relation\n" + lines(((f'"{t}"', h, r) for h, r, t in rows), ","),
        )
        write(
            home / f"ntriples/{split}.nt",
            "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in rows).replace("b c", "b-c"),
        )
        (home / "arrow").mkdir(exist_ok=True)
        (home / "ogb").mkdir(exist_ok=True)
        pq.write_table(table, home / f"arrow/{split}.parquet")
        h, r, t = np.array(ids).T
        np.savez(home / f"ogb/{split}.npz", head=h, relation=r, tail=t, num_nodes=7)
        maps(home / f"pykeen/{long}", "entity_to_id.tsv.gz", "relation_to_id.tsv.gz", "id\tlabel\n")
        write(home / f"grail/v1_ind/{split}.txt", lines(rows))
    write(home / "libkge/dataset.yaml", DATASET)
    maps(home / "libkge", "entity_ids.del", "relation_ids.del")
    maps(home / "rotate", "entities.dict", "relations.dict")
    maps(home / "dglke", "entities.tsv", "relations.tsv")
    for name, labels in (("entity2id", ENTITIES), ("relation2id", RELATIONS)):
        rows = ((label, i) for i, label in enumerate(labels))
        write(home / f"openke/{name}.txt", f"{len(labels)}\n" + lines(rows))
    write(home / "openke/type_constrain.txt", "2\n0 3 0 2 3\n0 3 1 2 3\n1 2 1 4\n1 3 0 2 4\n")
    inductive(home)
    for name in ("tsv", "openke"):
        questions = kgtrec.read_graph(home / name).questions()
        rng = np.random.default_rng(SEED + 70)
        save(home / f"{name}.npy", rng.random((len(questions), 5)).astype(np.float32))


def maps(home: Path, entities: str, relations: str, header: str = "") -> None:
    write(home / entities, header + lines(enumerate(ENTITIES)))
    write(home / relations, header + lines(enumerate(RELATIONS)))


def inductive(home: Path) -> None:
    for name, split in (
        ("inference", "train"),
        ("inference_validation", "valid"),
        ("inference_test", "test"),
    ):
        write(home / f"ilpc/{name}.txt", lines(SMALL[split]))
    for name, split in (("inference_graph", "train"), ("inf_valid", "valid"), ("inf_test", "test")):
        write(home / f"ultra/{name}.txt", lines(SMALL[split]))
    for place in ("ilpc/train", "grail/v1/train", "ultra/transductive_train"):
        write(home / f"{place}.txt", lines(TRAINED))


# ---- facts with times and with qualifiers ----


def contexts(home: Path) -> None:
    rng = np.random.default_rng(SEED + 80)
    facts = np.unique(rng.integers(0, (20, 3, 20, 9), (300, 4)), axis=0)
    rng.shuffle(facts)
    parts = dict(zip(("train", "valid", "test"), np.split(facts, [180, 230]), strict=True))
    for split, rows in parts.items():
        timed = ((f"e{h}", f"r{r}", f"e{t}", f"2014-07-0{d + 1}") for h, r, t, d in rows.tolist())
        write(home / f"timed/{split}.txt", lines(timed))
        stated = [
            [f"e{h}", f"r{r}", f"e{t}", *(f"q{d % 2}", f"e{d}")[: 2 * (d % 3 > 0)]]
            for h, r, t, d in rows.tolist()
        ]
        write(home / f"statements/{split}.txt", lines(stated, ","))
        records = (
            {f"r{r}_h": f"e{h}", f"r{r}_t": f"e{t}", f"q{d % 2}": [f"e{d}"], "N": 3}
            for h, r, t, d in rows.tolist()
        )
        write(
            home / f"wikipeople/n-ary_{split}.json", "".join(json.dumps(r) + "\n" for r in records)
        )
    asked: Mapping[str, dict[str, str]] = {
        "timed": {"context": "time"},
        "statements": {"context": "qualifiers"},
        "qualifier": {"context": "qualifiers", "sides": "qualifier"},
    }
    for name, options in asked.items():
        folder = "timed" if name == "timed" else "statements"
        questions = kgtrec.read_graph(f"{folder}:{home / folder}").questions(**options)
        n = questions.graph.n_entities
        save(home / f"{name}.npy", rng.normal(size=(len(questions), n)).round(1).astype(np.float32))


# ---- lists of predictions, and candidates ----


def predictions(home: Path) -> None:
    """The same lists over the small graph in every format, with some names that are no entities."""
    rng = np.random.default_rng(SEED + 90)
    graph = kgtrec.read_graph(home / "small/tsv")
    questions = graph.questions()
    names = [*graph.entities, "nobody"]
    lists: dict[tuple[int, str, str], list[tuple[str, float]]] = {}
    for side, entity, relation in zip(
        questions.side, questions.entity, questions.relation, strict=True
    ):
        key = int(side), graph.entities[int(entity)], graph.relations[int(relation)]
        chosen = rng.choice(len(names), 4, replace=False)
        lists[key] = [(names[i], 4 - place // 2) for place, i in enumerate(chosen)]
    records = (
        json.dumps({("tail", "head")[side]: e, "relation": r, "predictions": given})
        for (side, e, r), given in lists.items()
    )
    write(home / "lists.jsonl", "\n".join(records) + "\n")
    blocks, frame = "", []
    for h, r, t in SMALL["test"]:
        heads, tails = lists[0, t, r], lists[1, h, r]
        blocks += f"{h} {r} {t}\nHeads: {cells(heads)}\nTails: {cells(tails)}\n"
        frame += [(h, r, e, score) for e, score in tails]
    write(home / "lists.anyburl", blocks)
    write(home / "lists.csv", "head_label,relation_label,tail_label,score\n" + lines(frame, ","))
    run = (
        f"{name} Q0 {e.replace(' ', '%20')} 1 {score} x\n"
        for name, given in zip(questions.ids, lists.values(), strict=True)
        for e, score in given
    )
    write(home / "lists.run", "".join(run))
    top = rng.permuted(np.tile(np.arange(5), (3, 1)), axis=1)[:, :3]
    np.savez(home / "lists.npz", t_pred_top10=top, h_pred_top10=top[::-1])


def cells(given: list[tuple[str, float]]) -> str:
    return "".join(f"{entity}\t{score}\t" for entity, score in given)


def candidates(home: Path) -> None:
    rng = np.random.default_rng(SEED + 100)
    graph = kgtrec.read_graph(home / "demo/graph")
    questions = graph.questions()
    rows = []
    for row, name in enumerate(questions.ids):
        drawn = rng.choice(graph.n_entities, 40, replace=False)
        given = np.unique(np.concatenate([drawn, questions.answers[row]]))
        rows.append((name, *(graph.entities[int(i)] for i in given)))
    write(home / "candidates.tsv", lines(rows))
    test = graph.splits["test"]
    drawn = {side: rng.integers(0, graph.n_entities, (len(test), 30)) for side in ("head", "tail")}
    np.savez(home / "negatives.npz", head_neg=drawn["head"], tail_neg=drawn["tail"])
    narrow = rng.normal(size=(2 * len(test), 31)).round(1).astype(np.float32)
    save(home / "negatives.npy", narrow)


# ---- other studies ----


def labelled_triples(home: Path) -> None:
    rng = np.random.default_rng(SEED + 110)
    for name, size in (("valid", 300), ("test", 400)):
        label = rng.random(size) < 0.5
        triples = [(f"e{rng.integers(60)}", f"r{rng.integers(4)}", f"t{i}") for i in range(size)]
        score = (label + rng.normal(size=size)).round(3)
        rows = [(*t, int(y), s) for t, y, s in zip(triples, label, score, strict=True)]
        write(home / f"classify/{name}.tsv", lines(rows))
        write(home / f"classify/{name}-bare.tsv", lines(row[:4] for row in rows))
        write(home / f"classify/{name}-true.tsv", lines(row[:3] for row in rows if row[3]))
        write(home / f"classify/{name}-false.tsv", lines(row[:3] for row in rows if not row[3]))
        save(home / f"classify/{name}.npy", score)
        ordered = [row[4] for row in rows if row[3]] + [row[4] for row in rows if not row[3]]
        write(home / f"classify/{name}-ordered.txt", lines([s] for s in ordered))


def alignments(home: Path) -> None:
    rng = np.random.default_rng(SEED + 120)
    left = rng.normal(size=(120, 8)).astype(np.float32)
    right = (left + 0.7 * rng.normal(size=left.shape)).astype(np.float32)
    save(home / "align/left.npy", left)
    save(home / "align/right.npy", right)
    save(home / "align/matrix.npy", (left @ right.T).round(1))
    write(home / "align/pairs.tsv", lines((i, i) for i in range(20, 120)))
    write(home / "align/named.tsv", lines((f"l{i}", f"r{i}") for i in range(20, 120)))
    for side in ("l", "r"):
        write(home / f"align/{side}.txt", lines([f"{side}{i}"] for i in range(120)))


def trec_files(home: Path) -> None:
    """Graded qrels with runs, preferences, judgement groups, sparse qrels, z-scores."""
    rng = np.random.default_rng(SEED + 130)
    documents = [f"d{i:02}" for i in range(40)]
    qrels, prefs, groups = [], [], []
    runs: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": [], "t": []}
    for query in range(1, 13):
        judged = rng.choice(documents, 20, replace=False)
        grades = rng.choice([-1, 0, 1, 2, 3], 20, p=[0.1, 0.4, 0.2, 0.2, 0.1])
        qrels += [(query, 0, d, g) for d, g in zip(judged, grades, strict=True)]
        prefs += [(query, f"g{i % 2}", "s0", d, i % 4) for i, d in enumerate(judged)]
        groups += [(query, a, d, int(rng.random() < 0.4)) for d in judged for a in ("u", "v")]
        for name in runs:
            drawn = rng.choice(documents, 25, replace=False)
            score = rng.normal(size=25).round(1)
            if (name, query) != ("t", 5):
                runs[name] += [
                    (query, "Q0", d, 1, s, name) for d, s in zip(drawn, score, strict=True)
                ]
    write(home / "trec/qrels.txt", lines(qrels, " "))
    write(home / "trec/sparse.txt", lines([q for q in qrels if q[3] != 2], " "))
    write(home / "trec/prefs.txt", lines(prefs, " "))
    write(
        home / "trec/qrels_prefs.txt", lines(((q, g, d, level) for q, g, _, d, level in prefs), " ")
    )
    write(home / "trec/groups.txt", lines(groups, " "))
    for name, rows in runs.items():
        write(home / f"trec/{name}.run", lines(rows, " "))
    write(home / "trec/r.run.gz", lines(runs["r"], " "))
    write(home / "trec/z.txt", lines(((q, "map", 0.3, 0.1 + q / 100) for q in range(1, 13)), " "))


def tables(home: Path) -> None:
    """Published values of systems, whole and by depth."""
    rng = np.random.default_rng(SEED + 140)
    names = [f"m{i}" for i in range(6)]
    for name in ("sparse", "complete"):
        values = rng.random((6, 2)).round(3)
        rows = [(m, *v) for m, v in zip(names, values, strict=True)]
        write(home / f"{name}.csv", "system,micro_mrr,macro_mrr\n" + lines(rows, ","))
    deep = [(m, d, *rng.random(2).round(3)) for d in (1, 5, 10) for m in names]
    write(home / "depths.csv", "system,depth,micro_mrr,macro_mrr\n" + lines(deep, ","))
    for folder in ("many/countries", "many/half", "parts/openke"):
        (home / folder).mkdir(parents=True)
    cells = [(g, m, "mrr", round(rng.random(), 3)) for g in ("g1", "g2", "g3", "g4") for m in "ABC"]
    write(home / "many.csv", "graph,model,metric,value\n" + lines(cells[:-1], ","))
    row = "0.501,0.357,0.588,0.812,22.8"
    header = "model,mrr,hits@1,hits@3,hits@10,mr\n"
    write(home / "printed.csv", f"{header}A,{row}\nB,0.301{row[5:]}\n")
    write(home / "printed-a.csv", "model,mrr,hits@1\na,0.293,0.168\n")


JOBS = """
output = "batch"
measures = ["realistic.micro.mrr", "macro.map_cut_20"]
[graphs]
countries = "demo/graph"
half = "half/graph"
[models]
a = { scores = "a.npy", graphs = ["countries"] }
b = { scores = "b.npy", graphs = ["countries"] }
h = { scores = "half/a.npy", graphs = ["half"] }
[protocols.filtered]
[protocols.raw]
filter = "raw"
"""


def jobs(home: Path) -> None:
    write(home / "jobs.toml", JOBS)


def judgements(home: Path) -> None:
    """Answers of three annotators to the sheets that `kgtrec judge sheets` wrote."""
    rng = np.random.default_rng(SEED + 150)
    for name, labels in (("anna", "YYNNNN?"), ("ben", "YYNNN")):
        head, *rows = (home / f"sheets/{name}.tsv").read_text("utf-8").splitlines()
        at = head.split("\t").index("label")
        made = [row.split("\t") for row in sorted(rows)]
        for row in made:
            row[at] = str(rng.choice(list(labels)))
        write(home / f"judged/{name}.tsv", lines([head.split("\t"), *made]))
    head, *rows = (home / "sampled.tsv").read_text("utf-8").splitlines()
    triples = [row.split("\t")[:3] for row in rows]
    made = [(*triple, "YN"[i % 2]) for i, triple in enumerate(triples)]
    write(home / "judged/sampled.tsv", "head\trelation\ttail\tlabel\n" + lines(made))


def adjudication(home: Path) -> None:
    """The adjudicator's decisions on the conflicts."""
    head, *rows = (home / "carla.tsv").read_text("utf-8").splitlines()
    at = head.split("\t").index("label")
    made = [row.split("\t") for row in rows]
    for number, row in enumerate(made):
        row[at] = "YN?"[number % 3]
    write(home / "judged/carla.tsv", lines([head.split("\t"), *made]))


def complete_split(home: Path) -> None:
    """A graph with the test split that `kgtrec complete` wrote, and scores for it."""
    for split in ("train", "valid"):
        write(home / f"whole/graph/{split}.txt", (home / f"demo/graph/{split}.txt").read_bytes())
    write(home / "whole/graph/test.txt", (home / "complete.tsv").read_bytes())
    graph = kgtrec.read_graph(home / "whole/graph")
    for number, (name, (skill, decimals)) in enumerate(SYSTEMS.items()):
        save(home / f"whole/{name}.npy", scores(graph, number, skill, decimals))


# ---- FB15k-237 with its four models ----


def write_real(home: Path) -> None:
    questions = kgtrec.read_graph(FOLDER).questions("test")
    (home / "fb").mkdir()
    (home / "fb/graph").symlink_to(FOLDER)
    for name in REAL_MODELS:
        vectors, entities, metric = queries(name, questions)
        np.savez(home / f"fb/{name}.npz", queries=vectors, entities=entities, metric=metric)


def queries(name: str, questions: kgtrec.Questions) -> tuple[Array, Array, str]:
    """Query vectors, entity vectors and metric of a model (see ../shared/data/README.md)."""
    with np.load(SHARED_DATA / "models" / f"fb15k-237-{name}.npz", allow_pickle=False) as file:
        entity, relation, scale = file["entity"], file["relation"], file["logscale"]
    inverse = questions.relation + questions.graph.n_relations
    e = entity[questions.entity]
    w = relation[np.where(questions.side == 0, inverse, questions.relation)]
    if name == "distmult":
        return e * w, entity, "dot"
    if name == "transe":
        return np.exp(scale / 2) * (e + w), np.exp(scale / 2) * entity, "l2"
    half = entity.shape[1] // 2
    left = e[:, :half] + 1j * e[:, half:]
    if name == "complex":
        product = left * (w[:, :half] + 1j * w[:, half:])
        return np.hstack([product.real, product.imag]).astype(np.float32), entity, "dot"
    angle = (10 * w[:, :half]).astype(np.float32)
    product = left * (np.cos(angle) + 1j * np.sin(angle))
    scaled = np.hstack([product.real, product.imag]).astype(np.float32)
    return np.exp(scale / 2) * scaled, np.exp(scale / 2) * entity, "l2"
