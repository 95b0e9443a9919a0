"""`kgtrec rank` and `kgtrec merge`: `command` ranks in this process and merges, `shard` ranks a
part of the rows, `options` are what users say. Open `command` first."""
