"""Many graphs, many models, many seeds: one comparison over a suite of graphs.

In: ranks by graph, model and seed, or other people's numbers. Out: `Suite`, one per measure, with
tables of means, places, pairs and missing cells. `cells` reads values, `suite` ranks models within
graphs and over them, and writes all of it as one page.
"""
