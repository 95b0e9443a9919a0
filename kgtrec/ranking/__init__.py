"""Ranking: questions and blocks of scores in, counts per answer out.

Read `rank` first (a single call) or `ranker` (a loop of the user), then follow the picture. The
value `settings` decides how scores are ranked. Every step receives it and every part carries it::

    questions ──> rows: the answers that each row of scores counts
                     │
    scores ──blocks──┤    `ScoreBlock`; Ranker claims rows; ranges: a part of the entities
                     ▼
                  blocks: ranks a block or a factorised model; NaN is an error, or last
                     ▼
                  kernel: divides rows among threads, one call of the C core per part
                     │        per target: greater, equal, tied ahead  (micro and macro)
                     │        per question: the best entities, in trec order
                     ▼
                  partial: `build_ranks` of a whole ranking; else the results of some rows
                     │        for a range of entities, of which counts are added, the best merged
                     ▼
                  ranks: int64 counts per answer, and a manifest of their origin
                  parquet: files of ranks

Counts are integers and the best entities are totally ordered, so that results have the same bits
for every number of threads, block size, range of entities and kernel path (see ``csrc/README.md``).
"""
