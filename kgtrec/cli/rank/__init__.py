"""`kgtrec rank` and `kgtrec merge`: `command` ranks in this process and merges, `shard` ranks one
shard, `options` defines the options. Open `command` first."""
