"""Graphs: files of triples in, integer triples with labels out.

In: a folder of TSV files or of OpenKE's, or integer arrays. Out: `graph.Graph`, the splits as int32
triples (head, relation, tail) beside `labels.Labels`. Read `graph` first, then the format's reader:
`tsv` (its `scan` finds the bad line), `openke`, `id_files` for lists of entities, pairs and
candidates. `statistics/` describes a graph.
"""
