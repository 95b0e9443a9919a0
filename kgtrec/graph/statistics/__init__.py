"""Statistics of a graph: popularity, categories of relations, leaks from train to test.

In: a `Graph`. Out: counts per entity or relation, and dataclasses with a `table()`. Open `summary`
first (what ``kgtrec stats`` prints); `splits` takes the triples of named splits.
"""
