"""Ranking: questions and blocks of scores in, counts per answer out.

Read `rank` first (one call) or `ranker` (the user's own loop), then follow the picture. One value,
`settings`, says how scores are ranked. Every step receives it and every part carries it::

    questions ──> rows: which row of scores counts which answers
                     │
    scores ──blocks──┤    `ScoreBlock`; Ranker claims rows; ranges: a part of the entities
                     ▼
                  blocks: ranks a block or a factorised model; NaN is an error, or last
                     ▼
                  kernel: shares rows out over threads, one call of the C core a part
                     │        per target: greater, equal, tied ahead  (micro and macro)
                     │        per question: the best entities, in trec order
                     ▼
                  partial: `build_ranks` of everything at once; else what rows
                     │        contribute for a range of entities: counts add up, the best merge
                     ▼
                  ranks: int64 counts per answer, and a manifest of their origin
                  parquet: the same as a file

Counts are integers and the best entities are totally ordered, so that results have the same bits
for every number of threads, block size, range of entities and kernel path (see ``csrc/README.md``).
"""
