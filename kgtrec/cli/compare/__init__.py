"""`kgtrec compare`: `command` reads the options, `systems` and `labels` call the studies, `report`
lays out what comes back. Open `command` first."""
