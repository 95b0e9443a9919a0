"""What every layer above uses, and nothing about graphs: files that appear whole, printed tables,
threads, lazy exports, progress bars, compressed rows, the bootstrap.

`atomic_file` writes files, `table` prints them, `csr` holds lists of ids of unequal lengths.
Modules here import from `kgtrec.errors` and one another only.
"""
