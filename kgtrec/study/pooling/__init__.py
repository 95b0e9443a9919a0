"""Pooling under sparse labels (Zhou et al. 2022): runs in; pools, qrels and intervals out.

In the order of the work: `seed_sampling` draws seed triples, `seed_questions` asks about them,
`ranked_lists` (of runs; `score_lists` of scores) gives each system's candidates, `pool` pools them,
`pool_file` keeps the pool, `automatic_labels` labels what a rule can, `completion` turns judgements
into qrels. `judged_share` and `unjudged` say what is not known yet, `depths` (`rank_depths`: of
ranks) and `reusability` how far the pool can be trusted. Open `pool` first.
"""
