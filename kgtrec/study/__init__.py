"""Studies: experiments on graphs, ranks and judgements that papers report.

What is used most is here, loaded on first use: ``from kgtrec import study``, then
``study.beta_curve(ranks)``. `kgtrec.study.openworld` and `kgtrec.study.judging` are packages of
their own, and `kgtrec.study.overview.overview` is what ``kgtrec stats`` prints.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgtrec.study.alignment import align as align
    from kgtrec.study.alignment import alignment_questions as alignment_questions
    from kgtrec.study.alignment import size_experiment as size_experiment
    from kgtrec.study.categories import relation_categories as relation_categories
    from kgtrec.study.distribution import kl_divergence as kl_divergence
    from kgtrec.study.distribution import read_relation_counts as read_relation_counts
    from kgtrec.study.distribution import relation_ratios as relation_ratios
    from kgtrec.study.distribution import reweighted as reweighted
    from kgtrec.study.distribution import reweighted_table as reweighted_table
    from kgtrec.study.distribution import split_divergences as split_divergences
    from kgtrec.study.familytree import family_tree as family_tree
    from kgtrec.study.leaks import find_leaks as find_leaks
    from kgtrec.study.popularity import entity_frequencies as entity_frequencies
    from kgtrec.study.popularity import entity_popularity as entity_popularity
    from kgtrec.study.popularity import popularity_correlations as popularity_correlations
    from kgtrec.study.popularity import relation_frequencies as relation_frequencies
    from kgtrec.study.popularity import relation_popularity as relation_popularity
    from kgtrec.study.popularity import triple_mix as triple_mix
    from kgtrec.study.removal import correlated_removal as correlated_removal
    from kgtrec.study.removal import random_removal as random_removal
    from kgtrec.study.removal import ranked_removal as ranked_removal
    from kgtrec.study.sampled import full_bounds as full_bounds
    from kgtrec.study.sampled import rank_bounds as rank_bounds
    from kgtrec.study.spread import spreads as spreads
    from kgtrec.study.stratify import beta_curve as beta_curve
    from kgtrec.study.stratify import beta_grid as beta_grid
    from kgtrec.study.stratify import recounted as recounted

_HOMES = {
    # graphs
    "entity_frequencies": "popularity",
    "entity_popularity": "popularity",
    "popularity_correlations": "popularity",
    "relation_frequencies": "popularity",
    "relation_popularity": "popularity",
    "triple_mix": "popularity",
    # ranks by popularity
    "beta_curve": "stratify",
    "beta_grid": "stratify",
    "recounted": "stratify",
    # parts, and what they weigh
    "relation_categories": "categories",
    "kl_divergence": "distribution",
    "read_relation_counts": "distribution",
    "relation_ratios": "distribution",
    "reweighted": "distribution",
    "reweighted_table": "distribution",
    "split_divergences": "distribution",
    "spreads": "spread",
    # what train gives away
    "find_leaks": "leaks",
    # sampled candidates
    "full_bounds": "sampled",
    "rank_bounds": "sampled",
    # two graphs
    "align": "alignment",
    "alignment_questions": "alignment",
    "size_experiment": "alignment",
    # the open world: formulas and simulation are in kgtrec.study.openworld
    "family_tree": "familytree",
    "correlated_removal": "removal",
    "random_removal": "removal",
    "ranked_removal": "removal",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kgtrec.study' has no attribute {name!r}")
    value = getattr(import_module(f"kgtrec.study.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
