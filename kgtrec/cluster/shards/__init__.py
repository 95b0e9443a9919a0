"""Parts of a ranking as the files of a job array (`kgtrec rank --shard`, `kgtrec merge`).

In: the same command with the number of its part. Out: a shard file each; of all of them, ranks and
run. Open `shard` first; `shard_file` is the format, `merge` puts the parts together.
"""
