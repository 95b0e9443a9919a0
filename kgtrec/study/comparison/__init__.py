"""Which system is better? Ranks or runs of several systems in, tables and a sentence out.

Open `report` first (`compare`). `samples` makes one value per system and item. `significance` tests
pairs and counts how many a measure separates. `correlation` compares two orders of systems,
`rankings` many. `parts` values systems on parts of the questions, by ranks or as published;
`stability` on random parts (`subsets`) and at every depth of a pool. `replicates` takes several
runs of a system.
"""
