"""Studies: experiments on graphs, ranks and judgements that papers report.

What is used most is here, loaded on first use: ``from kgtrec import study``, then
``study.beta_curve(ranks)``. `kgtrec.study.openworld` and `kgtrec.study.judging` are packages of
their own, and `kgtrec.study.overview.overview` is what ``kgtrec stats`` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec.lazy import front_page

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
    # seeds, pools, labels; the sheets are in kgtrec.study.judging
    "sample_seeds": "sampling",
    "seed_questions": "seeds",
    "run_lists": "runlists",
    "score_lists": "scorelists",
    "make_pool": "pooling",
    "read_pool": "poolfile",
    "write_pool": "poolfile",
    "trivial_rules": "trivial",
    "read_judgements": "triplefiles",
    "complete": "completion",
    "open_candidates": "openness",
    "intervals": "openness",
    # which system is better
    "compare": "comparison",
    "samples_of_ranks": "samples",
    "samples_of_runs": "run_samples",
    "pairwise": "significance",
    "over_questions": "correlation",
    "over_systems": "correlation",
    "ranking_correlation": "correlation",
    "tau_ap": "correlation",
    "tau_b": "correlation",
    "rankings_of_samples": "rankings",
    "rankings_of_values": "rankings",
    "data_sensitivity": "stability",
    "depth_curves": "stability",
    "curves_of_runs": "pool_depths",
    "discriminate": "discriminative",
    "leave_one_out": "reuse",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = front_page(globals(), _HOMES)
