"""Which system is better? Ranks or runs of several systems in, tables and a sentence out.

Open `report` first (`compare`). `samples` and `run_samples` make a value per system and question;
`significance` tests pairs, `discriminative_power` counts the pairs told apart; `rank_correlation`
and `rankings` compare orders of systems, `part_rankings` on parts of the questions; `published`
reads values that papers print; `subsets`, `question_subsets` and `stability` take parts of the test
set.
"""
