"""The formats of predictions: a row each, which `kgtrec formats` prints."""

from __future__ import annotations

from kgtrec._internal.formats import Format, Formats

__all__ = ["PREDICTIONS", "Format"]

_HERE = "kgtrec.predictions"

PREDICTIONS = Formats(
    "predictions",
    "kgtrec.prediction_formats",
    (
        Format(
            "anyburl",
            "AnyBURL, PyClause",
            "three lines a triple: head relation tail; Heads: entity<TAB>score...; Tails: ...",
            f"{_HERE}.anyburl:read_anyburl",
        ),
        Format(
            "jsonl",
            "language models",
            'a line a question: {"head": ..., "relation": ..., "predictions": [...]} (or "tail")',
            f"{_HERE}.jsonl:read_jsonl",
        ),
        Format(
            "pykeen",
            "PyKEEN prediction frames",
            "CSV or TSV with head_label, relation_label, tail_label and score",
            f"{_HERE}.pykeen:read_pykeen",
            "--sides: which entities were predicted",
        ),
        Format(
            "ogb-lsc",
            "OGB-LSC (WikiKG90Mv2)",
            "npz with t_pred_top10, h_pred_top10: entity numbers, a row a triple of the split",
            f"{_HERE}.ogb_lsc:read_ogb_lsc",
        ),
        Format(
            "trec",
            "TREC runs",
            "question Q0 entity rank score tag; questions as `kgtrec convert --questions` lists",
            f"{_HERE}.trec_run:read_trec_run",
        ),
    ),
)
