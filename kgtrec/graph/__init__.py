"""Graphs: files of triples in, integer triples with labels out.

In: a folder of TSV files or of OpenKE's, or integer arrays. Out: `graph.Graph`, the splits as int32
triples (head, relation, tail) beside `labels.Labels`. Open `graph` first; then the reader of the
format at hand: `tsv` (`tsv_errors` finds the line that is wrong), `openke`, `id_files` for lists of
entities, pairs and candidates. `statistics/` says what is in a graph.
"""
