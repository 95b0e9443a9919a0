"""`kgtrec compare`: `command` has the comparison of systems and names the subcommands, which are in
`labels` (other labels, depths, reuse), `parts` and `studies`. Open `command` first."""
