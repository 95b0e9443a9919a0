"""TREC files: bytes to columns and back.

In: run and qrels files (plain, packed, standard input), dicts, frames. Out: `columns.RunColumns`
and `columns.QrelsColumns`; or lines of a file. Open `read` first; `text` holds the bytes and says
what is wrong in which line, `parse` calls the native reader on all cores, `convert` and `pack` take
what is in memory; `group_lines` reads judgements in groups. `run.Run` is what a ranking leaves;
`write` writes it, in lines that `lines` makes.
"""
