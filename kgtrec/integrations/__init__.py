"""kgtrec where people train: a small file for each library, imported by its name.

In: models, data sets and loops of other libraries. Out: their own kinds of results, and `Result`.
Each module imports its library, which an extra of the same name installs
(``pip install 'kgtrec[pykeen]'``); nothing else in the package imports one of them, and
``import kgtrec`` none. Open `pykeen` for an evaluator class, `pyg` for a function over a model's
scores, `torchmetrics` for a metric in a loop; `ogb` knows OGB's own protocol, `embeddings` reads
vectors from files, `libkge_checkpoint` LibKGE's, `trackers` gives results the form that experiment
trackers take.
"""
