"""Answer sets: a policy turns scores into a set of candidates per question; one table judges sets.

In: ranks, scores or predicted lists, and a policy. Out: `AnswerSets`. Start with `answer_sets.py`;
`policies` reads policies, `conformal` and `thresholds` choose limits on valid, `ranked`, `scored`
and `listed` name sets, `measures` has the numbers, `sets` the result.
"""
