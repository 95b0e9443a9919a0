"""What `kgtrec eval` and `kgtrec.trec.evaluate` compute, above ranks and results.

In: qrels, runs and options. Out: values per query and the row for all, text as trec_eval prints it.
Open `request` first (what is asked), then `score`, which carries it out and standardises.
`evaluate` is the Python call; `paths` are its three ways to the values, and `measure_rows` what it
returns. `output` prints. `kg_metrics` computes micro metrics of graphs from a run.
"""
