"""`kgtrec compare`: `command` has the comparison of systems and subcommands on its reliability;
`labels` has those on other labels, parts and pools. Open `command` first."""
