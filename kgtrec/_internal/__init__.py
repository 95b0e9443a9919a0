"""Shared by every layer above, and independent of graphs: files that appear whole, printed tables,
threads, lazy exports, progress bars, compressed rows, the bootstrap.

`arrays` names types of arrays, `files` writes files, `table` prints tables, `csr` has lists of ids
of unequal lengths, `threads` shares rows of work. Modules here import only from `kgtrec.errors` and
from one another.
"""
