"""Pooling under sparse labels (Zhou et al. 2022): runs in; pools, qrels and intervals out.

In working order: `seeds` draws seed triples and makes their questions. `lists` reads the candidates
of each system, from runs or scores. `pool` pools them and writes the pool to a file. `completion`
applies rules, and converts judgements to qrels. `unjudged` computes what further judgements could
change, and `depths` how results depend on the pool. `edited_files` reads all files that people
edit. Open `pool` first.
"""
