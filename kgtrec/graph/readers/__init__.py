"""Readers of graphs in formats other than TSV and OpenKE.

In: a folder, and the order of columns if no file says it. Out: `common.GraphTables`. Their table is
``kgtrec.graph.formats``; `common` has what they share.
"""
