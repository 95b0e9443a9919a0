"""Studies: experiments on graphs, ranks and judgements that papers report.

In: graphs, ranks, runs, judgements. Out: frozen dataclasses with a `table()`. Eight folders:
`comparison/` (which system is better), `pooling/` and `judging/` (labels where they are sparse),
`openworld/` (missing answers), `alignment/`, `classification/` (true or false?), `sampling/` (full
ranking from drawn candidates), `reporting/` (what is published); and `stratified`, `semantics` (do
answers make sense?), `changes`, `relation_shift` and `relation_spread`. What is used most is here,
loaded on first use: ``from kgtrec import study``, then ``study.beta_curve(ranks)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.graph.statistics.categories import relation_categories as relation_categories
    from kgtrec.graph.statistics.leakage import find_leaks as find_leaks
    from kgtrec.graph.statistics.popularity import entity_frequencies as entity_frequencies
    from kgtrec.graph.statistics.popularity import entity_popularity as entity_popularity
    from kgtrec.graph.statistics.popularity import (
        popularity_correlations as popularity_correlations,
    )
    from kgtrec.graph.statistics.popularity import relation_frequencies as relation_frequencies
    from kgtrec.graph.statistics.popularity import relation_popularity as relation_popularity
    from kgtrec.graph.statistics.popularity import triple_mix as triple_mix
    from kgtrec.graph.statistics.relation_distribution import kl_divergence as kl_divergence
    from kgtrec.graph.statistics.relation_distribution import relation_ratios as relation_ratios
    from kgtrec.graph.statistics.relation_distribution import split_divergences as split_divergences
    from kgtrec.study.alignment.alignment import align as align
    from kgtrec.study.alignment.alignment import alignment_questions as alignment_questions
    from kgtrec.study.alignment.alignment import size_experiment as size_experiment
    from kgtrec.study.changes import answer_changes as answer_changes
    from kgtrec.study.classification.classify import classify as classify
    from kgtrec.study.classification.labelled_triples import LabelledTriples as LabelledTriples
    from kgtrec.study.classification.labelled_triples import read_labelled as read_labelled
    from kgtrec.study.comparison.discriminative_power import discriminate as discriminate
    from kgtrec.study.comparison.multiplicity import multiplicity as multiplicity
    from kgtrec.study.comparison.part_rankings import rankings_by_part as rankings_by_part
    from kgtrec.study.comparison.published import read_value_table as read_value_table
    from kgtrec.study.comparison.published import values_of_table as values_of_table
    from kgtrec.study.comparison.rank_correlation import over_questions as over_questions
    from kgtrec.study.comparison.rank_correlation import over_systems as over_systems
    from kgtrec.study.comparison.rank_correlation import ranking_correlation as ranking_correlation
    from kgtrec.study.comparison.rank_correlation import tau_ap as tau_ap
    from kgtrec.study.comparison.rank_correlation import tau_b as tau_b
    from kgtrec.study.comparison.rankings import rankings_of_samples as rankings_of_samples
    from kgtrec.study.comparison.rankings import rankings_of_values as rankings_of_values
    from kgtrec.study.comparison.replicates import compare_replicates as compare_replicates
    from kgtrec.study.comparison.report import compare as compare
    from kgtrec.study.comparison.reproduction import rank_biased_overlap as rank_biased_overlap
    from kgtrec.study.comparison.reproduction import reproduction_of as reproduction_of
    from kgtrec.study.comparison.reproduction import tau_union as tau_union
    from kgtrec.study.comparison.run_samples import samples_of_runs as samples_of_runs
    from kgtrec.study.comparison.samples import samples_of_ranks as samples_of_ranks
    from kgtrec.study.comparison.significance import pairwise as pairwise
    from kgtrec.study.comparison.stability import data_sensitivity as data_sensitivity
    from kgtrec.study.comparison.stability import depth_curves as depth_curves
    from kgtrec.study.openworld.family_tree import family_tree as family_tree
    from kgtrec.study.openworld.removal import correlated_removal as correlated_removal
    from kgtrec.study.openworld.removal import random_removal as random_removal
    from kgtrec.study.openworld.removal import ranked_removal as ranked_removal
    from kgtrec.study.pooling.automatic_labels import trivial_rules as trivial_rules
    from kgtrec.study.pooling.completion import complete as complete
    from kgtrec.study.pooling.depths import curves_of_runs as curves_of_runs
    from kgtrec.study.pooling.pool import make_pool as make_pool
    from kgtrec.study.pooling.pool_file import read_pool as read_pool
    from kgtrec.study.pooling.pool_file import write_pool as write_pool
    from kgtrec.study.pooling.rank_depths import curves_of_ranks as curves_of_ranks
    from kgtrec.study.pooling.ranked_lists import run_lists as run_lists
    from kgtrec.study.pooling.reusability import leave_one_out as leave_one_out
    from kgtrec.study.pooling.score_lists import score_lists as score_lists
    from kgtrec.study.pooling.seed_questions import seed_questions as seed_questions
    from kgtrec.study.pooling.seed_sampling import sample_seeds as sample_seeds
    from kgtrec.study.pooling.triple_files import read_judgements as read_judgements
    from kgtrec.study.pooling.unjudged import intervals as intervals
    from kgtrec.study.pooling.unjudged import open_candidates as open_candidates
    from kgtrec.study.relation_shift import read_relation_counts as read_relation_counts
    from kgtrec.study.relation_shift import reweighted as reweighted
    from kgtrec.study.relation_shift import reweighted_table as reweighted_table
    from kgtrec.study.relation_spread import spreads as spreads
    from kgtrec.study.reporting.model_table import table_of_models as table_of_models
    from kgtrec.study.sampling.bounds import full_bounds as full_bounds
    from kgtrec.study.sampling.bounds import rank_bounds as rank_bounds
    from kgtrec.study.sampling.counts import count_sampled as count_sampled
    from kgtrec.study.sampling.draw import draw_candidates as draw_candidates
    from kgtrec.study.sampling.estimates import estimate_full as estimate_full
    from kgtrec.study.sampling.estimates import full_estimates as full_estimates
    from kgtrec.study.sampling.full_check import draw_check as draw_check
    from kgtrec.study.sampling.subset import rank_some as rank_some
    from kgtrec.study.semantics import fitting_by_constraints as fitting_by_constraints
    from kgtrec.study.semantics import fitting_by_types as fitting_by_types
    from kgtrec.study.semantics import fitting_observed as fitting_observed
    from kgtrec.study.semantics import semantic_shares as semantic_shares
    from kgtrec.study.stratified import beta_curve as beta_curve
    from kgtrec.study.stratified import beta_grid as beta_grid
    from kgtrec.study.stratified import recounted as recounted

_HOMES = {
    # graphs
    "entity_frequencies": "kgtrec.graph.statistics.popularity",
    "entity_popularity": "kgtrec.graph.statistics.popularity",
    "popularity_correlations": "kgtrec.graph.statistics.popularity",
    "relation_frequencies": "kgtrec.graph.statistics.popularity",
    "relation_popularity": "kgtrec.graph.statistics.popularity",
    "triple_mix": "kgtrec.graph.statistics.popularity",
    # ranks by popularity
    "beta_curve": "kgtrec.study.stratified",
    "beta_grid": "kgtrec.study.stratified",
    "recounted": "kgtrec.study.stratified",
    # parts, and what they weigh
    "relation_categories": "kgtrec.graph.statistics.categories",
    "kl_divergence": "kgtrec.graph.statistics.relation_distribution",
    "read_relation_counts": "kgtrec.study.relation_shift",
    "relation_ratios": "kgtrec.graph.statistics.relation_distribution",
    "reweighted": "kgtrec.study.relation_shift",
    "reweighted_table": "kgtrec.study.relation_shift",
    "split_divergences": "kgtrec.graph.statistics.relation_distribution",
    "spreads": "kgtrec.study.relation_spread",
    # what train gives away
    "find_leaks": "kgtrec.graph.statistics.leakage",
    # sampled candidates
    "full_bounds": "kgtrec.study.sampling.bounds",
    "rank_bounds": "kgtrec.study.sampling.bounds",
    "count_sampled": "kgtrec.study.sampling.counts",
    "draw_candidates": "kgtrec.study.sampling.draw",
    "draw_check": "kgtrec.study.sampling.full_check",
    "estimate_full": "kgtrec.study.sampling.estimates",
    "full_estimates": "kgtrec.study.sampling.estimates",
    "rank_some": "kgtrec.study.sampling.subset",
    # two graphs
    "align": "kgtrec.study.alignment.alignment",
    "alignment_questions": "kgtrec.study.alignment.alignment",
    "size_experiment": "kgtrec.study.alignment.alignment",
    # do answers make sense?
    "fitting_by_constraints": "kgtrec.study.semantics",
    "fitting_by_types": "kgtrec.study.semantics",
    "fitting_observed": "kgtrec.study.semantics",
    "semantic_shares": "kgtrec.study.semantics",
    # true or false?
    "LabelledTriples": "kgtrec.study.classification.labelled_triples",
    "classify": "kgtrec.study.classification.classify",
    "read_labelled": "kgtrec.study.classification.labelled_triples",
    # the open world: formulas and simulation are in kgtrec.study.openworld
    "family_tree": "kgtrec.study.openworld.family_tree",
    "correlated_removal": "kgtrec.study.openworld.removal",
    "random_removal": "kgtrec.study.openworld.removal",
    "ranked_removal": "kgtrec.study.openworld.removal",
    # seeds, pools, labels; the sheets are in kgtrec.study.judging
    "sample_seeds": "kgtrec.study.pooling.seed_sampling",
    "seed_questions": "kgtrec.study.pooling.seed_questions",
    "run_lists": "kgtrec.study.pooling.ranked_lists",
    "score_lists": "kgtrec.study.pooling.score_lists",
    "make_pool": "kgtrec.study.pooling.pool",
    "read_pool": "kgtrec.study.pooling.pool_file",
    "write_pool": "kgtrec.study.pooling.pool_file",
    "trivial_rules": "kgtrec.study.pooling.automatic_labels",
    "read_judgements": "kgtrec.study.pooling.triple_files",
    "complete": "kgtrec.study.pooling.completion",
    "open_candidates": "kgtrec.study.pooling.unjudged",
    "intervals": "kgtrec.study.pooling.unjudged",
    # which system is better
    "answer_changes": "kgtrec.study.changes",
    "compare": "kgtrec.study.comparison.report",
    "samples_of_ranks": "kgtrec.study.comparison.samples",
    "samples_of_runs": "kgtrec.study.comparison.run_samples",
    "pairwise": "kgtrec.study.comparison.significance",
    "compare_replicates": "kgtrec.study.comparison.replicates",
    "multiplicity": "kgtrec.study.comparison.multiplicity",
    "over_questions": "kgtrec.study.comparison.rank_correlation",
    "over_systems": "kgtrec.study.comparison.rank_correlation",
    "ranking_correlation": "kgtrec.study.comparison.rank_correlation",
    "tau_ap": "kgtrec.study.comparison.rank_correlation",
    "tau_b": "kgtrec.study.comparison.rank_correlation",
    "rankings_by_part": "kgtrec.study.comparison.part_rankings",
    "read_value_table": "kgtrec.study.comparison.published",
    "values_of_table": "kgtrec.study.comparison.published",
    "rankings_of_samples": "kgtrec.study.comparison.rankings",
    "rankings_of_values": "kgtrec.study.comparison.rankings",
    "data_sensitivity": "kgtrec.study.comparison.stability",
    "depth_curves": "kgtrec.study.comparison.stability",
    "curves_of_runs": "kgtrec.study.pooling.depths",
    "curves_of_ranks": "kgtrec.study.pooling.rank_depths",
    "discriminate": "kgtrec.study.comparison.discriminative_power",
    "rank_biased_overlap": "kgtrec.study.comparison.reproduction",
    "reproduction_of": "kgtrec.study.comparison.reproduction",
    "tau_union": "kgtrec.study.comparison.reproduction",
    "leave_one_out": "kgtrec.study.pooling.reusability",
    # what is published
    "table_of_models": "kgtrec.study.reporting.model_table",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
