"""trec_eval's measures: judged lists in, values per query out.

In: runs and qrels as columns, or a ranking's own run and answers. Out: a value per query and
measure. Open `definitions` first (the measures, a row each: `family` says what a row holds,
`qrels_rows` and `group_rows` are the rows), then `names` (spellings to columns, with `parameters`
behind them), `judge` (files to `judged_lists`) and `values`, which picks who computes:
`pytrec_eval`, the only module that calls it, or `binary` and `graded`, over `relevant` documents by
query and rank. `judgement_groups`: preferences (`preferences`, `preference_pairs`) and several
assessors (`judge_groups`). `ties` and `tie_groups`: values over all orders of tied documents;
`bounds`: over all labels of unjudged ones; `from_ranks`: from the answers' ordinal ranks;
`agreement` compares the two.
"""
