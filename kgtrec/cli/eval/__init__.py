"""`kgtrec eval`: `command` does as it is asked, `options` reads the arguments as trec_eval does,
`help` prints its help. Open `command` first."""
