"""Answer sets: a policy turns scores into a set of candidates per question; one table judges sets.

In: ranks, scores or predicted lists, and a policy. Out: `AnswerSets`. Start with `answer_sets.py`;
`policies` reads policies, `conformal` has limits from valid, `ranked` sets of the best candidates,
`measures` the numbers, `sets` the result.
"""
