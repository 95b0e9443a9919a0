"""kgtrec in training libraries: one small module per library, imported by its name.

In: models, data sets and loops of other libraries. Out: their own kinds of results, and `Result`.
Each module imports its library, which an extra of the same name installs
(``pip install 'kgtrec[pykeen]'``). No other module imports these libraries, nor does
``import kgtrec``. Open `pykeen` for an evaluator class, `pyg` for a function over a model's
scores, `torchmetrics` for a metric in a loop. `ogb` has OGB's own protocol. `embeddings` reads
vectors from files (`saved_models` knows the programs that wrote them), and
`libkge_checkpoint` those of LibKGE. `trackers` converts results for
experiment trackers.

``evaluate(model, ...)`` of `pyg`, `torchkge`, `libkge` and `pykeen` ranks a model of that library,
with every number of kgtrec. ``known`` has further triples to filter out (None: filter nothing),
``sides`` is "both", "head" or "tail", ``batch_size`` the number of questions scored at a time, and
further options are those of `kgtrec.evaluate`.
"""
