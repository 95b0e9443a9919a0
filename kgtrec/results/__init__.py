"""Results: ranks and measures in; keys, tables, text and parts of the questions out.

In: `Ranks`, and a run where there is one. Out: `result.Result`: ``result[key]``, tables, JSON,
slices; `result.evaluate` makes one from scores in one call. Open `result` first; `tables` lays
out, `report` is the text of ``print(result)``, `slices` cuts by category, side, popularity or
label, `comparability` says whether two evaluations may stand in one table.
"""
