"""From ranks to publications: tables for papers, and a report page.

In: ranks of several models, on one graph or several. Out: `ModelTable`, one row per model, with the
best and significant values marked. `columns` has its columns, `formats` writes it. `builder`
computes the report page: each study renders its section, and `page` assembles them. Open
`model_table` first.
"""
