"""Graphs: files of triples in, integer triples with labels out.

In: a folder of TSV files or of OpenKE's, or integer arrays. Out: `graph.Graph`, the splits as int32
triples (head, relation, tail) beside `labels.Labels`. Read `graph` first, then the format's reader:
`tsv` (its `scan` finds the bad line), `openke`, `id_files` for lists of entities, pairs and
candidates. `statistics/` describes a graph.

The order of the columns of lines is, from the strongest to the weakest: what the user declares
(``tsv,htr:DIR`` or ``columns=``; `formats` parses it), what the first lines of the files say
(`readers.headings`), or head, relation, tail. `readers.headings.decide_order` decides. A
declaration that contradicts a first line is an error. An order that is neither declared nor named
is checked: if many relations are also entities, there is a warning (`readers.fields.order_doubt`).
Some formats have a fixed order. In CSV, every file has its own first line, or the order must be
declared.
"""
