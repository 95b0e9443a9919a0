"""Questions with their answers and other known facts; from a graph, or given by users.

In: a graph, a split, a filter protocol and candidates; or answers, known answers and terms. Out:
`api.Questions`: the answers, and the candidates that micro and macro filtering remove, as
compressed rows. Read `questions` first, the data;
`api` adds the methods for users. `graph_terms` says what (?, r, t) and (h, r, ?) give,
`terms` has the terms of other questions. `filters` decides what counts as known in a graph,
`answers` reads the other forms, `candidates` restricts the candidates of questions.
"""
