"""Studies: experiments on graphs, ranks and judgements that papers report.

In: graphs, ranks, runs, judgements. Out: frozen dataclasses with a `table()`. The folders:
`comparison/` (which system is better), `suite/` (over many graphs), `pooling/` and `judging/` (more
labels), `judged/` (labels of a judge, corrected by people), `openworld/` (missing answers),
`classification/` (true or false?), `sampling/` (full ranking from drawn candidates), `pairs/`
(pairs as candidates), `sets/` (which candidates are answers), `auditing/` (published numbers),
`reporting/` (tables and pages); and the modules `alignment`, `stratified` (metrics at other
weights), `semantics` (do answers make sense?), `changes` and `corrections` (ranks with added
labels). The most used names are here, loaded on first use: ``from kgtrec import study``, then
``study.beta_curve(ranks)``.
"""

from __future__ import annotations

from kgtrec._internal.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
