"""`kgtrec report`: `command` reads the options; `parts` prints slices and rank types, `models` the
table of models and the page. Open `command` first."""
