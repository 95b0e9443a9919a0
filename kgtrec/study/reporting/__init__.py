"""From ranks to what is published: the table of a paper.

In: ranks of several models, on one graph or several. Out: `ModelTable`, a row a model, with what is
best and what is significant; `formats` writes it as LaTeX, Markdown, HTML, Typst, CSV or text, and
`captions` says what was evaluated. Open `model_table` first.
"""
