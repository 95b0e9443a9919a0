"""From ranks to what is published: the table of a paper.

In: ranks of several models, on one graph or several. Out: `ModelTable`, a row a model, with what is
best and what is significant; `marks` says so and what was evaluated, `formats` and `latex` write
it. `page` is the report page. Open `model_table` first.
"""
