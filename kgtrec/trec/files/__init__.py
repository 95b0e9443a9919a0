"""TREC files: bytes to columns and back.

In: run and qrels files (plain, packed, standard input), dicts, frames. Out: `columns.RunColumns`
and `columns.QrelsColumns`; or lines of a file. Open `run` first, the front of all readers. `text`
holds the bytes and explains faults by line. `parse` calls the native reader on all cores and
formats lines. `convert` takes data in memory, and `write` writes files.
"""
