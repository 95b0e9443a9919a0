"""`kgtrec rank` and `kgtrec merge`: `command` ranks in this process, `shard` a part of the rows,
`merge` puts shards together, `options` are shared by them. Open `command` first."""
