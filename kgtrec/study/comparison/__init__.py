"""Which system is better? Ranks or runs of several systems in, tables and a sentence out.

Open `report` first (`compare`; `compare_replicates` takes several runs of a system). `samples`
makes one value per system and item. `significance` tests pairs and counts how many a measure
separates. `gate` decides whether a new system is worse than a base. `correlation` compares two
orders of systems, `rankings` many. `parts` values systems on parts of the questions, by ranks or as
published; `subsets` on random parts. `verdicts` asks whether several measures or labels conclude
the same.
"""
