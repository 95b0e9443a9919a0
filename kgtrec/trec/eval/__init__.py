"""What `kgtrec eval` and `kgtrec.trec.evaluate` compute, above ranks and results.

In: qrels, runs and options. Out: values per query and the row for all, text as trec_eval prints it.
Open `score` first; `evaluate` is the Python call, `output` prints, `kg_metrics` computes micro
metrics of graphs from a run, `zscores` standardises.
"""
