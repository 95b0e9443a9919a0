"""Judging pooled triples by hand (Zhou et al. 2022, 3.2).

``wording`` makes a question out of a relation's label, and ``templates`` keeps such questions in a
file that people edit; ``sheets`` is what an annotator fills in, ``batches`` shares triples out;
``journal`` keeps every answer, ``server`` is the local web page (``page/``) on which they are
given; ``agreement`` says how far annotators agree, ``merging`` makes one judgement of theirs.
"""

from __future__ import annotations

from kgtrec.study.judging.agreement import Agreement, agreement_table, agreements, cohen
from kgtrec.study.judging.assignment import Batch, PooledTriple, make_batches, read_pooled
from kgtrec.study.judging.file_errors import Fault, Faults
from kgtrec.study.judging.journal import Journal, judged_sheet
from kgtrec.study.judging.merging import Merged, merge_sheets
from kgtrec.study.judging.question_text import template_of
from kgtrec.study.judging.sheets import Item, Sheet, read_sheet, scan_sheet, write_sheet
from kgtrec.study.judging.templates import (
    Names,
    Templates,
    generated_templates,
    read_templates,
    write_templates,
)

__all__ = [
    "Agreement",
    "Batch",
    "Fault",
    "Faults",
    "Item",
    "Journal",
    "Merged",
    "Names",
    "PooledTriple",
    "Sheet",
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
