"""Scores: the output of any model in, blocks of score rows out.

In: arrays of any framework, `.npy` and `.npz` files, folders of shards, callables, iterables,
embeddings. Out: a `sources.Source`, read once, block by block; or `Factors`, which are ranked from
their vectors and have no rows. Read `sources` first: it builds the source from `matrices`, which
are arrays in memory or what `files` reads.
"""
