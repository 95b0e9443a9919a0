"""Entity alignment (Berrendorf et al. 2020): two graphs' embeddings and pairs in, ranks out.

Open `alignment` first; `similarity` makes score rows of embeddings, CSLS among them.
"""
