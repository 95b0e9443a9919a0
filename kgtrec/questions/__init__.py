"""Questions with their answers and other known facts, from a graph or from given answers.

In: a graph, a split, a filter protocol and candidates; or answers, known answers and terms. Out:
`api.Questions`: the answers, and the candidates that micro and macro filtering remove, as
compressed rows.

Read `questions` first, the data; `api` adds the methods for users. `graph_terms` has the terms of
questions such as (?, r, t) and (h, r, ?), `terms` those of other questions. `filters` decides which
facts of a graph are known, `answers` reads the other forms, `candidates` restricts candidates, and
`requests` has the options of commands.
"""
