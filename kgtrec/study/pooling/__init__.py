"""Pooling under sparse labels (Zhou et al. 2022): runs in; pools, qrels and intervals out.

In the order of the work: `seeds` draws seed triples and asks about them, `lists` gives each
system's candidates, of runs or of scores; `pool` pools them and keeps the pool in a file;
`completion` labels by rules what a rule can, and turns judgements (`triple_files`) into qrels.
`unjudged` says what is not known yet, `depths` and `reusability` how far the pool can be trusted.
Open `pool` first.
"""
