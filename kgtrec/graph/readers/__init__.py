"""Readers of graphs in other formats than TSV and OpenKE, a file each.

In: a folder, and the order of columns if no file says it. Out: `common.GraphTables`. The table of
them is ``kgtrec.graph.formats``; open `common` for what they share.
"""
