"""trec_eval's measures: judged lists in, values per query out.

In: runs and qrels as columns, or a ranking's own run and answers. Out: one value per query and
measure. Open `rows` first (the measures; `trec_measure` defines their fields), then `names`
(spellings to columns), `judge` (files to judged lists) and `values`. `values` calls `pytrec_eval`
(the only module that uses that library), or `formulas` and the native core, on the `relevant`
documents by query and rank. `judgement_groups` and `preferences` are for judgements in groups.
`ties`: values over all orders of tied documents; `bounds`: over all labels of unjudged ones;
`agreement` compares values of runs with those of ordinal ranks.
"""
