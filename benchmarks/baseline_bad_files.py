"""Faulty files. `baseline.py` records the messages of the commands that read them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from baseline_inputs import write

Content = Any  # text, bytes, None (no such file), an array (.npy), a dict of arrays or columns

NT = "<a> <r> <b> .\n"
FRAME = "head_label,relation_label,tail_label,score\n"
GOOD = {"queries": np.ones((466, 2), "f4"), "entities": np.ones((893, 2), "f4")}
TREC = "1 0 d01 1\n"
GRAPHS = '[graphs]\ng = "../demo/graph"\n'
JOBS = f'{GRAPHS}[models]\nm = "../a.npy"\n'
SHEET = "head\trelation\ttail\tlabel\n"


def ids(head: list[Any], relation: list[int], tail: list[int], **more: int) -> dict[str, Content]:
    """Arrays of OGB's format."""
    made = {"head": head, "relation": relation, "tail": tail, **more}
    return {name: np.array(each) for name, each in made.items()}


def top(entities: np.ndarray[Any, Any]) -> dict[str, Content]:
    """Arrays of OGB-LSC's predictions, three rows of heads."""
    return {"t_pred_top10": entities, "h_pred_top10": np.zeros((3, 10), int)}


def negatives(entities: np.ndarray[Any, Any]) -> dict[str, Content]:
    return {"head_neg": entities, "tail_neg": np.zeros_like(entities)}


# Group: a folder that is first copied to bad/ (or none), the command, and per case the file in bad/
# and its new content.
FILES: dict[str, tuple[str | None, str, dict[str, tuple[str, Content]]]] = {
    "graph/tsv": ("small/tsv", "stats bad", {
        "two columns": ("train.txt", "a\tr\tb\na\tr\n"),
        "four columns": ("train.txt", "a\tr\tb\tc\n"),
        "empty label": ("train.txt", "a\t\tb\n"),
        "empty line": ("train.txt", "a\tr\tb\n\nb\tr\ta\n"),
        "blanks for tabs": ("train.txt", "a r b\n"),
        "carriage return": ("train.txt", b"a\tr\tb\rb\tr\ta\n"),
        "zero byte": ("test.txt", b"a\tr\tb\0\n"),
        "UTF-16": ("test.txt", "a\tr\tb\n".encode("utf-16")),
        "gzip cut": ("test.txt.gz", b"\x1f\x8b\x08"),
        "two files": ("test.tsv", "a\tr\tb\n"),
        "other file": ("test_hard.txt", "a\tr\tb\n"),
        "other name": ("Valid.csv", "a\tr\tb\n"),
    }),
    "graph/order": ("small/htr", "stats tsv,htr:bad", {
        "columns": ("test.tsv", "a\tb\tr\na\tb\n"),
    }),
    "graph/libkge": ("small/libkge", "stats bad", {
        "yaml": ("dataset.yaml", "dataset:\n  a: [\n"),
        "key": ("dataset.yaml", "job: x\n"),
        "object": ("dataset.yaml", "dataset: !!python/object/apply:os.getcwd []\n"),
        "circle": ("dataset.yaml", "dataset: &a\n  x: *a\n"),
        "number": ("train.del", "0\t1\t2\n0\t1\t3\n0\t9\t1\n"),
        "columns": ("test.del", "0\t1\n"),
        "map": ("entity_ids.del", "0\ta\n2\tb\n"),
        "twice": ("entity_ids.del", "0\ta\n1\ta\n"),
        "no file": ("train.del", None),
    }),
    "graph/rotate": ("small/rotate", "stats rotate:bad", {
        "label": ("test.txt", "adam\tlikes\tzoë\nadam\tzoë\tlikes\n"),
        "columns": ("test.txt", "adam\n"),
        "id": ("entities.dict", "a\tadam\n"),
        "no map": ("relations.dict", None),
    }),
    "graph/rotate undeclared": ("small/rotate", "stats bad", {"said": ("x", "")}),
    "graph/dgl-ke": ("small/dglke", "stats dgl-ke,rth:bad", {
        "order": ("test.txt", "2 0 1\n"),
        "words": ("test.txt", "a\tb\tc\n"),
    }),
    "graph/dgl-ke undeclared": ("small/dglke", "stats dgl-ke:bad", {"said": ("x", "")}),
    "graph/pykeen": ("small/pykeen", "stats bad", {
        "header": ("testing/numeric_triples.tsv.gz", "0\t1\t2\n"),
        "number": ("testing/numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t9\n"),
        "labels": ("testing/entity_to_id.tsv.gz", "id\tlabel\n0\tx\n"),
        "empty": ("testing/numeric_triples.tsv.gz", ""),
        "bytes": ("testing/numeric_triples.tsv.gz", b"head\trelation\ttail\n0\t\xff\t1\n"),
        "quotation": ("training/entity_to_id.tsv.gz", 'id\tlabel\n0\t"x\n1\ty\n'),
    }),
    "graph/openke": ("small/openke", "stats bad", {
        "count": ("train2id.txt", "3\n0 1 0\n"),
        "no count": ("train2id.txt", "0 1 0\n"),
        "number": ("train2id.txt", "1\n0 9 0\n"),
        "map": ("entity2id.txt", "2\na\t0\na\t1\n"),
        "no map": ("relation2id.txt", None),
    }),
    "graph/ogb": (None, "stats bad", {
        "names": ("train.npz", {"x": np.array([1])}),
        "floats": ("train.npz", ids([0.5], [0], [0])),
        "lengths": ("train.npz", ids([1, 2], [0], [0])),
        "negative": ("train.npz", ids([-1], [0], [0])),
        "size": ("train.npz", ids([5], [0], [0], num_nodes=5)),
        "large": ("train.npz", ids([1 << 24], [0], [0])),
        "no archive": ("train.npz", "PK"),
    }),
    "graph/csv": ("small/csv", "stats bad", {
        "header": ("train.csv", "a,r,b\n"),
        "fields": ("train.csv", "head,relation,tail\na,r,b\na,r\n"),
        "empty label": ("train.csv", "head,relation,tail\na,,b\n"),
        "column twice": ("train.csv", "head,relation,tail,head\na,r,b,c\n"),
        "quotation": ("train.csv", 'head,relation,tail\na,r,"b\nb,r,c\nc,r,a\n'),
        "last line": ("train.csv", 'head,relation,tail\na,r,b\nb,r,"c\n'),
        "two formats": ("test.nt", NT),
    }),
    "graph/csv declared": ("small/csv", "stats csv,htr:bad", {"header": ("x", "")}),
    "graph/arrow": (None, "stats bad", {
        "columns": ("train.parquet", {"head": ["a"], "tail": ["b"]}),
        "null": ("train.parquet", {"head": ["a", None], "relation": ["r"] * 2, "tail": ["b"] * 2}),
        "kinds": ("train.parquet", {"head": [1], "relation": ["r"], "tail": [2]}),
        "floats": ("train.parquet", {"head": [1.5], "relation": ["r"], "tail": ["b"]}),
        "negative": ("train.parquet", {"head": [0], "relation": [0], "tail": [-4]}),
        "empty": ("train.parquet", {"head": ["a", ""], "relation": ["r", "r"], "tail": ["b", "b"]}),
        "damaged": ("train.parquet", "PAR1"),
        "damaged arrow": ("train.arrow", "ARROW1"),
    }),
    "graph/ntriples": (None, "stats bad", {
        "literal": ("train.nt", NT + '<a> <r> "b"@en .\n'),
        "empty IRI": ("train.nt", NT + "<> <r> <b> .\n"),
        "no triple": ("train.nt", "# none\n"),
        "form": ("train.nt", NT + "a r b\n"),
        "pickle": ("train.pt", "x"),
        "nothing": ("readme.md", "x"),
    }),
    "graph/timed": ("timed", "stats timed:bad", {
        "columns": ("test.txt", "a\tr\tb\n"),
        "widths": ("test.txt", "a\tr\tb\t1\na\tr\tb\t1\t2\n"),
        "empty": ("test.txt", "a\tr\t\t1\n"),
    }),
    "graph/statements": ("statements", "stats statements:bad", {
        "even": ("test.txt", "a,r,b,q\n"),
        "empty": ("test.txt", "a,,b\n"),
        "short": ("test.txt", "a,r\n"),
    }),
    "graph/wikipeople": ("wikipeople", "stats bad", {
        "json": ("n-ary_test.json", "{\n"),
        "list": ("n-ary_test.json", "[1]\n"),
        "no head": ("n-ary_test.json", '{"r_t": "a"}\n'),
        "value": ("n-ary_test.json", '{"r_h": "a", "r_t": "b", "q": [3]}\n'),
    }),
    "graph/ilpc": ("small/ilpc", "stats ilpc:bad", {
        "no file": ("inference.txt", None),
        "entity": ("inference_test.txt", "adam\tlikes\tx\nx\tlikes\ty\n"),
    }),
    "graph/ilpc undeclared": ("small/ilpc", "stats bad", {"said": ("x", "")}),
    "graph/grail": ("small/grail", "stats grail:bad/v1", {"no file": ("v1_ind/test.txt", None)}),
    "scores": (None, "rank $g --scores {file} -o out.parquet", {
        "empty": ("s.npy", ""),
        "pickled": ("s.npy", b"\x80\x04\x95pickled"),
        "empty archive": ("s.npz", ""),
        "pickle": ("s.pkl", "x"),
        "parquet": ("s.parquet", "x"),
        "rows": ("s.npy", np.zeros((9, 893), "f4")),
        "columns": ("s.npy", np.zeros((466, 8), "f4")),
        "one dimension": ("s.npy", np.zeros(893, "f4")),
        "integers": ("s.npy", np.zeros((466, 893), int)),
        "complex": ("s.npy", np.zeros((466, 893), "c8")),
        "instances": ("s.npy", np.zeros((680, 893), "f4")),
        "NaN": ("s.npy", np.full((466, 893), np.nan, "f4")),
        "factors/no entities": ("s.npz", {"queries": GOOD["queries"]}),
        "factors/name": ("s.npz", GOOD | {"Bias": np.zeros(893)}),
        "factors/metric": ("s.npz", GOOD | {"metric": np.array("angle")}),
        "factors/width": ("s.npz", GOOD | {"queries": np.ones((466, 3), "f4")}),
        "factors/bias": ("s.npz", GOOD | {"bias": np.ones(7, "f4")}),
        "factors/entities": ("s.npz", GOOD | {"entities": np.ones((9, 2), "f4")}),
        "factors/queries": ("s.npz", GOOD | {"queries": np.ones((9, 2), "f4")}),
    }),
    "scores/folder": (None, "rank $g --scores bad -o out.parquet", {
        "empty": ("readme.txt", "x"),
        "short": ("0.npy", np.zeros((9, 893), "f4")),
    }),
    "predictions/anyburl": (None, "$listed --predictions-format anyburl", {
        "no triple": ("p", "a b\nHeads:\nTails:\n"),
        "no heads": ("p", "adam likes zoë\nHead: c\t1\n"),
        "heads twice": ("p", "adam likes zoë\nHeads: c\t1\nHeads:\n"),
        "tails cut": ("p", "adam likes zoë\nTails: c\t1\n"),
        "odd": ("p", "adam likes zoë\nHeads: c\t1\td\nTails:\n"),
        "score": ("p", "adam likes zoë\nHeads: c\tx\n"),
        "NaN": ("p", "adam likes zoë\nHeads: c\tnan\n"),
        "empty": ("p", ""),
    }),
    "predictions/jsonl": (None, "$listed --predictions-format jsonl", {
        "no JSON": ("p", "{}x\n"),
        "list": ("p", "[1]\n"),
        "neither": ("p", '{"relation": "likes"}\n'),
        "both": ("p", '{"head": "a", "tail": "b"}\n'),
        "relation": ("p", '{"head": "adam", "relation": 3}\n'),
        "none": ("p", '{"head": "adam", "relation": "likes"}\n'),
        "entry": ("p", '{"head": "adam", "relation": "likes", "predictions": ["b", 1]}\n'),
        "score": ("p", '{"head": "adam", "relation": "likes", "predictions": [["b", NaN]]}\n'),
        "mixed": ("p", '{"head": "adam", "relation": "likes", "predictions": [["b", 1]]}\n'
                  '{"head": "zoë", "relation": "knows", "predictions": ["b"]}\n'),
        "bytes": ("p", b'{"head": "\xff"}\n'),
        "unasked": ("p", '{"head": "nobody", "relation": "likes", "predictions": ["b"]}\n'),
    }),
    "predictions/pykeen": (None, "$listed --predictions-format pykeen", {
        "name": ("p", "a\n"),
        "ids": ("p.csv", "head_id,score\n"),
        "fields": ("p.csv", FRAME + "a,r\n"),
        "label": ("p.csv", FRAME + "a,,b,1\n"),
        "score": ("p.csv", FRAME + "a,r,b,\n"),
        "none": ("p.csv", FRAME),
        "quotation": ("p.csv", FRAME + 'a,r,"b,1\na,r,c,2\n'),
    }),
    "predictions/ogb-lsc": (None, "$listed --predictions-format ogb-lsc", {
        "names": ("p.npz", {"x": np.zeros(3)}),
        "rows": ("p.npz", top(np.zeros((2, 10), int))),
        "floats": ("p.npz", top(np.zeros((3, 10)))),
        "range": ("p.npz", top(np.full((3, 1), 99))),
    }),
    "predictions/trec": (None, "$listed --predictions-format trec", {
        "columns": ("p", "tail0 Q0 a\n"),
        "queries": ("p", "q1 Q0 a 1 2 x\n"),
        "twice": ("p", "tail0 Q0 adam 1 2 x\ntail0 Q0 adam 2 1 x\n"),
    }),
    "candidates": (None, "$rank --candidates {file}", {
        "question": ("c.tsv", "nobody\tFrance\n"),
        "entity": ("c.tsv", "head0\tAtlantis\n"),
        "twice": ("c.tsv", "head0\tFrance\nhead0\tSpain\n"),
        "few": ("c.tsv", "head0\tFrance\n"),
        "empty": ("c.tsv", ""),
        "names": ("c.npz", {"x": np.zeros((340, 3), int)}),
        "rows": ("c.npz", negatives(np.zeros((9, 3), int))),
        "range": ("c.npz", negatives(np.full((340, 3), 9999))),
    }),
    "entities": (None, "$rank --entities {file}", {
        "unknown": ("e.txt", "Atlantis\n"),
        "empty": ("e.txt", ""),
        "tab": ("e.txt", "France\tx\n"),
        "twice": ("e.txt", "France\nFrance\n"),
    }),
    "relations": (None, "$rank --relations {file}", {"unknown": ("r.txt", "no such relation\n")}),
    "known": (None, "$rank --known {file}", {
        "columns": ("k.tsv", "a\tb\n"),
        "unknown": ("k.tsv", "a\tb\tc\n"),
    }),
    "type-constraints": ("small/openke", "rank --graph small/openke --scores small/openke.npy "
                         "-o out.parquet --type-constraints bad/type_constrain.txt", {
        "no entities": ("entity2id.txt", None),
        "count": ("type_constrain.txt", "2\n0 3 0 2\n"),
        "words": ("type_constrain.txt", "x\n"),
        "range": ("type_constrain.txt", "2\n0 1 99\n0 1 1\n1 1 1\n1 1 1\n"),
        "outside": ("type_constrain.txt", "2\n0 1 0\n0 1 1\n1 1 1\n1 1 1\n"),
    }),
    "ranks": (None, "report {file}", {
        "text": ("r.parquet", "x"),
        "empty": ("r.parquet", ""),
        "columns": ("r.parquet", {"greater": [1]}),
        "run": ("r.run", "1 Q0 d 1 1 x\n"),
    }),
    "shards": (None, "merge bad -o out.parquet", {"none": ("readme", "x")}),
    "shards/one": ("shards", "merge bad -o out.parquet", {
        "damaged": ("shard-2-of-3.arrow", "ARROW1"),
        "empty": ("shard-2-of-3.arrow", ""),
        "missing": ("shard-2-of-3.arrow", None),
        "of another number": ("shard-1-of-2.arrow", "x"),
    }),
    "batch": (None, "batch {file} --status", {
        "syntax": ("j.toml", "output = \n"),
        "no output": ("j.toml", "[graphs]\n"),
        "no models": ("j.toml", 'output = "o"\n' + GRAPHS),
        "unknown key": ("j.toml", 'output = "o"\nmodel = 3\n' + JOBS),
        "unknown option": ("j.toml", 'output = "o"\n' + JOBS + '[protocols.p]\nsplitt = "test"\n'),
        "measure": ("j.toml", 'output = "o"\nmeasures = ["mmr"]\n' + JOBS),
        "memory": ("j.toml", 'output = "o"\nmemory = "much"\n' + JOBS),
        "graph of model": (
            "j.toml",
            f'output = "o"\n{GRAPHS}[models]\nm = {{ scores = "../a.npy", graphs = ["h"] }}\n',
        ),
        "url": ("j.toml", 'output = "s3://x/o"\n' + JOBS),
    }),
    "qrels": (None, "eval {file} trec/r.run", {
        "columns": ("q", "1 0 d01\n"),
        "level": ("q", "1 0 d01 x\n"),
        "twice": ("q", TREC + "1 0 d01 2\n"),
        "empty": ("q", ""),
        "other queries": ("q", "99 0 d01 1\n"),
        "gzip": ("q.gz", b"\x1f\x8b"),
    }),
    "run": (None, "eval trec/qrels.txt {file}", {
        "columns": ("r", "1 Q0 d01 1 2\n"),
        "score": ("r", "1 Q0 d01 1 x r\n"),
        "NaN": ("r", "1 Q0 d01 1 nan r\n"),
        "twice": ("r", "1 Q0 d01 1 2 r\n1 Q0 d01 2 1 r\n"),
        "empty": ("r", ""),
        "parquet": ("r.parquet", {"a": [1]}),
    }),
    "preferences": (None, "eval -R prefs -m all_prefs {file} trec/r.run", {
        "columns": ("p", "1 g d01 1\n"),
        "level": ("p", "1 g s d01 x\n"),
        "twice": ("p", "1 g s d01 1\n1 g s d01 2\n"),
    }),
    "groups": (None, "eval -R qrels_jg -m qrels_jg {file} trec/r.run", {
        "columns": ("g", "1 a d01\n"),
        "twice": ("g", "1 a d01 1\n1 a d01 0\n"),
    }),
    "zscores": (None, "eval -Z {file} trec/qrels.txt trec/r.run", {
        "columns": ("z", "1 map 0.3\n"),
        "number": ("z", "1 map x 0.1\n"),
        "empty": ("z", ""),
    }),
    "classify": (None, "classify --valid-triples classify/valid.tsv --test-triples {file}", {
        "columns": ("t.tsv", "a\tr\n"),
        "label": ("t.tsv", "a\tr0\tb\t7\t0.3\n"),
        "score": ("t.tsv", "a\tr0\tb\t1\tx\n"),
        "no score": ("t.tsv", "a\tr0\tb\t1\n"),
        "widths": ("t.tsv", "a\tr0\tb\t1\t0.3\na\tr0\tb\t1\n"),
        "empty": ("t.tsv", ""),
    }),
    "classify/scores": (None, "$bare --test-scores {file}", {
        "few": ("s.npy", np.zeros(3)),
        "shape": ("s.npy", np.zeros((400, 2))),
        "word": ("s.txt", "x\n"),
        "NaN": ("s.npy", np.full(400, np.nan)),
    }),
    "align/pairs": (None, "$aligned --left align/left.npy --pairs {file}", {
        "columns": ("p.tsv", "1\n"),
        "range": ("p.tsv", "1\t9999\n"),
        "word": ("p.tsv", "x\ty\n"),
        "twice": ("p.tsv", "1\t1\n1\t1\n"),
        "empty": ("p.tsv", ""),
    }),
    "align/left": (None, "$aligned --left {file} --pairs align/pairs.tsv", {
        "width": ("l.npy", np.ones((120, 3), "f4")),
        "NaN": ("l.npy", np.full((120, 8), np.nan, "f4")),
        "rows": ("l.npy", np.ones((3, 8), "f4")),
        "words": ("l.npy", np.array([["x"]])),
        "text": ("l.npy", "x"),
    }),
    "seeds": (None, "pool $g --seed-triples {file} a.run -o out.tsv", {
        "columns": ("s.tsv", "a\tb\n"),
        "unknown": ("s.tsv", "Atlantis\tborders\tFrance\n"),
        "not in test": ("s.tsv", "France\tborders\tFrance\n"),
        "empty": ("s.tsv", ""),
    }),
    "pool": (None, "complete $seeds --pool {file} --judgements settled.tsv --write-qrels "
    "out.qrels", {
        "header": ("p.tsv", "a\tb\n"),
        "empty": ("p.tsv", ""),
        "columns": ("p.tsv", "head\trelation\ttail\n"),
    }),
    "judgements": (None, "complete $seeds --pool pool.tsv --judgements {file} --write-qrels "
    "out.qrels", {
        "label": ("j.tsv", SHEET + "France\tborders\tSpain\tyes\n"),
        "blank": ("j.tsv", SHEET + "France\tborders\tSpain\t\n"),
        "columns": ("j.tsv", "France\tborders\n"),
        "contradiction": ("j.tsv", SHEET + "".join(f"France\tborders\tSpain\t{x}\n" for x in "YN")),
        "entity": ("j.tsv", SHEET + "Atlantis\tborders\tSpain\tY\n"),
        "empty": ("j.tsv", ""),
    }),
    "sheets": (None, "judge merge {file} -o out.tsv", {
        "label": ("s.tsv", SHEET + "a\tr\tb\tno\n"),
        "twice": ("s.tsv", SHEET + "a\tr\tb\tY\na\tr\tb\tY\n"),
        "contradiction": ("s.tsv", SHEET + "a\tr\tb\tY\na\tr\tb\tN\n"),
        "columns": ("s.tsv", SHEET + "a\tr\n"),
        "no label": ("s.tsv", SHEET + "a\tr\tb\t\n"),
        "empty": ("s.tsv", ""),
    }),
    "check": (None, "judge check {file}", {
        "faults": ("s.tsv", SHEET + "a\tr\tb\tY\na\tr\tb\tY\na\tr\tb\tN\na\tr\tc\tno\nx\n"),
    }),
    "templates": (None, "judge sheets pool.tsv --annotators a --templates {file} -o new", {
        "header": ("t.tsv", "a\tb\n"),
        "no place": ("t.tsv", "relation\ttemplate\nborders\tdoes it?\n"),
        "twice": ("t.tsv", "relation\ttemplate\nborders\t{head} {tail}\nborders\t{head} {tail}\n"),
    }),
    "names": (None, "judge sheets pool.tsv --annotators a --names {file} -o new", {
        "columns": ("n.tsv", "France\n"),
        "twice": ("n.tsv", "France\tA\nFrance\tB\n"),
    }),
    "types": (None, "pool $seeds a.run --relation-types {file} -o out.tsv", {
        "columns": ("t.tsv", "borders\tA\n"),
        "unknown": ("t.tsv", "no such relation\tA\tB\n"),
        "twice": ("t.tsv", "borders\tA\tB\nborders\tA\tB\n"),
    }),
    "roles": (None, "semantics $g a.run --entity-types types.tsv --relation-types {file}", {
        "columns": ("t.tsv", "borders\tA\n"),
        "unknown": ("t.tsv", "no such relation\tA\tB\n"),
    }),
    "questions": (None, "semantics $g a.run --questions {file}", {
        "columns": ("q.tsv", "head0\tFrance\n"),
        "entity": ("q.tsv", "head0\tAtlantis\tborders\n"),
        "empty": ("q.tsv", ""),
    }),
    "labels": (None, "report a.parquet --by label --labels {file}", {
        "columns": ("l.tsv", "a\tb\n"),
        "unknown": ("l.tsv", "Atlantis\tborders\tFrance\tx\n"),
        "empty": ("l.tsv", ""),
    }),
    "ratios": (None, "report a.parquet --ratios {file}", {
        "columns": ("r.tsv", "a\tb\n"),
        "unknown": ("r.tsv", "a\tno such relation\tb\n"),
        "empty": ("r.tsv", ""),
    }),
    "published": (None, "compare labels {file} --against complete.csv", {
        "header": ("v.csv", "m0,0.3\n"),
        "number": ("v.csv", "system,micro_mrr\nm0,x\nm1,0.3\nm2,0.1\n"),
        "fields": ("v.csv", "system,micro_mrr\nm0\n"),
        "twice": ("v.csv", "system,micro_mrr\nm0,0.3\nm0,0.2\n"),
        "others": ("v.csv", "system,micro_mrr\nz0,0.3\nz1,0.2\nz2,0.1\n"),
        "measure": ("v.csv", "system,other\nm0,0.3\nm1,0.2\nm2,0.1\n"),
        "empty": ("v.csv", ""),
    }),
    "weights": (None, "estimate $g --scores a.npy --draw-by {file}", {
        "shape": ("w.npy", np.ones((3, 3))),
        "negative": ("w.npy", np.full((24, 893), -1.0)),
        "text": ("w.npy", "x"),
    }),
}  # fmt: skip


def cases(home: Path) -> Iterator[tuple[str, str, str]]:
    """Name and command line of each case of `FILES`, after writing its file into ``bad/``."""
    for group, (base, line, rows) in FILES.items():
        for name, (file, content) in rows.items():
            shutil.rmtree(home / "bad", ignore_errors=True)
            if base is None:
                (home / "bad").mkdir()
            else:
                shutil.copytree(home / base, home / "bad")
            put(home / "bad" / file, content)
            yield f"{group}/{name}", line, f"bad/{file}"
    shutil.rmtree(home / "bad")


def put(path: Path, content: Content) -> None:
    if content is None:
        path.unlink()
    elif isinstance(content, (str, bytes)) and path.suffix == ".gz" and content[:1] == b"\x1f":
        path.write_bytes(content)  # damaged as it is
    elif isinstance(content, (str, bytes)):
        write(path, content)
    elif isinstance(content, dict) and path.suffix == ".parquet":
        pq.write_table(pa.table(content), path)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content)
