"""TREC files: bytes to columns and back.

In: run and qrels files (plain, packed, standard input; TREC's lines and other forms), dicts,
frames. Out: `columns.RunColumns` and `columns.QrelsColumns`; or lines of a file. Open `run` first,
then `documents`, the front of all readers of files. `text` holds the bytes, `forms` recognises the
form, `score_archives` reads runs from arrays, and `parse` calls the native reader on all cores and
formats lines. `faults` explains faulty lines; `levels` and `subtopics` have advice for relevances
that are fractions, and for documents with several relevances. `convert` takes data in memory, and
`write` writes files.
"""
