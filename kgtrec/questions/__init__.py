"""Questions: what is asked of a split, the answers, and what else is known.

In: a graph, a split, a filter protocol and candidates. Out: `questions.Questions`: (?, r, t) and
(h, r, ?) with their answers, and the entities that micro and macro filtering leave out, as
compressed rows. Open `questions` first; `filters` decides what counts as known, `candidates` which
entities an answer is ranked among.
"""
