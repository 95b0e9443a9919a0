"""Results: ranks and measures in; keys, tables, text and parts of the questions out.

In: `Ranks`, and a run if there is one. Out: `result.Result`: ``result[key]``, tables, JSON,
slices; `result.evaluate` makes one from scores in one call. Open `result` first. `tables` makes
tables, `report` the text of ``print(result)``. `slices` splits by category, side, popularity or
label. `comparability` decides whether one table may show two evaluations. These modules know a
result by its `interface`, since `result` imports them.
"""
