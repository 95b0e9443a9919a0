"""Judging pooled triples by hand (Zhou et al. 2022, 3.2).

``questions`` makes a question out of a relation's label and keeps questions in a file that people
edit; ``sheets`` is what an annotator fills in, ``assignment`` shares triples out; ``journal`` keeps
every answer, ``server`` is the local web page (``page/``) on which they are given; ``audit`` says
how far annotators agree, ``merging`` makes one judgement out of theirs.
"""

from __future__ import annotations

from kgtrec.study.judging.assignment import PooledTriple, SheetBatch, make_batches, read_pooled
from kgtrec.study.judging.audit import Agreement, agreement_table, agreements, cohen
from kgtrec.study.judging.journal import Journal, judged_sheet
from kgtrec.study.judging.merging import Merged, merge_sheets
from kgtrec.study.judging.questions import (
    Names,
    Templates,
    generated_templates,
    read_templates,
    template_of,
    write_templates,
)
from kgtrec.study.judging.sheets import (
    Fault,
    Faults,
    Item,
    Sheet,
    read_sheet,
    scan_sheet,
    write_sheet,
)

__all__ = [
    "Agreement",
    "Fault",
    "Faults",
    "Item",
    "Journal",
    "Merged",
    "Names",
    "PooledTriple",
    "Sheet",
    "SheetBatch",
    "Templates",
    "agreement_table",
    "agreements",
    "cohen",
    "generated_templates",
    "judged_sheet",
    "make_batches",
    "merge_sheets",
    "read_pooled",
    "read_sheet",
    "read_templates",
    "scan_sheet",
    "template_of",
    "write_sheet",
    "write_templates",
]
