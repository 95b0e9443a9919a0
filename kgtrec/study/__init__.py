"""Studies: experiments on graphs, ranks and judgements that papers report.

What is used most is here, loaded on first use: ``from kgtrec import study``, then
``study.beta_curve(ranks)``. `kgtrec.study.openworld` and `kgtrec.study.judging` are packages of
their own, and `kgtrec.study.overview.overview` is what ``kgtrec stats`` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.study.alignment import align as align
    from kgtrec.study.alignment import alignment_questions as alignment_questions
    from kgtrec.study.alignment import size_experiment as size_experiment
    from kgtrec.study.categories import relation_categories as relation_categories
    from kgtrec.study.comparison import compare as compare
    from kgtrec.study.completion import complete as complete
    from kgtrec.study.correlation import over_questions as over_questions
    from kgtrec.study.correlation import over_systems as over_systems
    from kgtrec.study.correlation import ranking_correlation as ranking_correlation
    from kgtrec.study.correlation import tau_ap as tau_ap
    from kgtrec.study.correlation import tau_b as tau_b
    from kgtrec.study.discriminative import discriminate as discriminate
    from kgtrec.study.distribution import kl_divergence as kl_divergence
    from kgtrec.study.distribution import read_relation_counts as read_relation_counts
    from kgtrec.study.distribution import relation_ratios as relation_ratios
    from kgtrec.study.distribution import reweighted as reweighted
    from kgtrec.study.distribution import reweighted_table as reweighted_table
    from kgtrec.study.distribution import split_divergences as split_divergences
    from kgtrec.study.familytree import family_tree as family_tree
    from kgtrec.study.leaks import find_leaks as find_leaks
    from kgtrec.study.openness import intervals as intervals
    from kgtrec.study.openness import open_candidates as open_candidates
    from kgtrec.study.pool_depths import curves_of_runs as curves_of_runs
    from kgtrec.study.poolfile import read_pool as read_pool
    from kgtrec.study.poolfile import write_pool as write_pool
    from kgtrec.study.pooling import make_pool as make_pool
    from kgtrec.study.popularity import entity_frequencies as entity_frequencies
    from kgtrec.study.popularity import entity_popularity as entity_popularity
    from kgtrec.study.popularity import popularity_correlations as popularity_correlations
    from kgtrec.study.popularity import relation_frequencies as relation_frequencies
    from kgtrec.study.popularity import relation_popularity as relation_popularity
    from kgtrec.study.popularity import triple_mix as triple_mix
    from kgtrec.study.rankings import rankings_of_samples as rankings_of_samples
    from kgtrec.study.rankings import rankings_of_values as rankings_of_values
    from kgtrec.study.removal import correlated_removal as correlated_removal
    from kgtrec.study.removal import random_removal as random_removal
    from kgtrec.study.removal import ranked_removal as ranked_removal
    from kgtrec.study.reuse import leave_one_out as leave_one_out
    from kgtrec.study.run_samples import samples_of_runs as samples_of_runs
    from kgtrec.study.runlists import run_lists as run_lists
    from kgtrec.study.sampled import full_bounds as full_bounds
    from kgtrec.study.sampled import rank_bounds as rank_bounds
    from kgtrec.study.samples import samples_of_ranks as samples_of_ranks
    from kgtrec.study.sampling import sample_seeds as sample_seeds
    from kgtrec.study.scorelists import score_lists as score_lists
    from kgtrec.study.seeds import seed_questions as seed_questions
    from kgtrec.study.significance import pairwise as pairwise
    from kgtrec.study.spread import spreads as spreads
    from kgtrec.study.stability import data_sensitivity as data_sensitivity
    from kgtrec.study.stability import depth_curves as depth_curves
    from kgtrec.study.stratify import beta_curve as beta_curve
    from kgtrec.study.stratify import beta_grid as beta_grid
    from kgtrec.study.stratify import recounted as recounted
    from kgtrec.study.triplefiles import read_judgements as read_judgements
    from kgtrec.study.trivial import trivial_rules as trivial_rules

_HOMES = {
    # graphs
    "entity_frequencies": "kgtrec.study.popularity",
    "entity_popularity": "kgtrec.study.popularity",
    "popularity_correlations": "kgtrec.study.popularity",
    "relation_frequencies": "kgtrec.study.popularity",
    "relation_popularity": "kgtrec.study.popularity",
    "triple_mix": "kgtrec.study.popularity",
    # ranks by popularity
    "beta_curve": "kgtrec.study.stratify",
    "beta_grid": "kgtrec.study.stratify",
    "recounted": "kgtrec.study.stratify",
    # parts, and what they weigh
    "relation_categories": "kgtrec.study.categories",
    "kl_divergence": "kgtrec.study.distribution",
    "read_relation_counts": "kgtrec.study.distribution",
    "relation_ratios": "kgtrec.study.distribution",
    "reweighted": "kgtrec.study.distribution",
    "reweighted_table": "kgtrec.study.distribution",
    "split_divergences": "kgtrec.study.distribution",
    "spreads": "kgtrec.study.spread",
    # what train gives away
    "find_leaks": "kgtrec.study.leaks",
    # sampled candidates
    "full_bounds": "kgtrec.study.sampled",
    "rank_bounds": "kgtrec.study.sampled",
    # two graphs
    "align": "kgtrec.study.alignment",
    "alignment_questions": "kgtrec.study.alignment",
    "size_experiment": "kgtrec.study.alignment",
    # the open world: formulas and simulation are in kgtrec.study.openworld
    "family_tree": "kgtrec.study.familytree",
    "correlated_removal": "kgtrec.study.removal",
    "random_removal": "kgtrec.study.removal",
    "ranked_removal": "kgtrec.study.removal",
    # seeds, pools, labels; the sheets are in kgtrec.study.judging
    "sample_seeds": "kgtrec.study.sampling",
    "seed_questions": "kgtrec.study.seeds",
    "run_lists": "kgtrec.study.runlists",
    "score_lists": "kgtrec.study.scorelists",
    "make_pool": "kgtrec.study.pooling",
    "read_pool": "kgtrec.study.poolfile",
    "write_pool": "kgtrec.study.poolfile",
    "trivial_rules": "kgtrec.study.trivial",
    "read_judgements": "kgtrec.study.triplefiles",
    "complete": "kgtrec.study.completion",
    "open_candidates": "kgtrec.study.openness",
    "intervals": "kgtrec.study.openness",
    # which system is better
    "compare": "kgtrec.study.comparison",
    "samples_of_ranks": "kgtrec.study.samples",
    "samples_of_runs": "kgtrec.study.run_samples",
    "pairwise": "kgtrec.study.significance",
    "over_questions": "kgtrec.study.correlation",
    "over_systems": "kgtrec.study.correlation",
    "ranking_correlation": "kgtrec.study.correlation",
    "tau_ap": "kgtrec.study.correlation",
    "tau_b": "kgtrec.study.correlation",
    "rankings_of_samples": "kgtrec.study.rankings",
    "rankings_of_values": "kgtrec.study.rankings",
    "data_sensitivity": "kgtrec.study.stability",
    "depth_curves": "kgtrec.study.stability",
    "curves_of_runs": "kgtrec.study.pool_depths",
    "discriminate": "kgtrec.study.discriminative",
    "leave_one_out": "kgtrec.study.reuse",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
