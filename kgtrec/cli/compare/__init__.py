"""`kgtrec compare`: `command` has the comparison of systems and the subcommands that ask what it is
worth; `labels` those of other labels, parts and pools. Open `command` first."""
