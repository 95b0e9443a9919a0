"""Questions: their answers, and what else is known; a graph asks some, users hand over others.

In: a graph, a split, a filter protocol and candidates; or answers, known answers and terms. Out:
`questions.Questions`: the answers, and the candidates that micro and macro filtering leave out, as
compressed rows. Open `questions` first. `graph_terms` says what (?, r, t) and (h, r, ?) give,
`terms` what tells other questions apart; `filters` decides what counts as known in a graph,
`answers` reads the other forms, `candidates` says among which labels an answer is ranked.
"""
