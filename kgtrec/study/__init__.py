"""Studies: experiments on graphs, ranks and judgements that papers report.

In: graphs, ranks, runs, judgements. Out: frozen dataclasses with a `table()`. The folders:
`comparison/` (which system is better), `suite/` (over many graphs), `pooling/` and `judging/` (more
labels), `openworld/` (missing answers), `classification/` (true or false?), `sampling/` (full
ranking from drawn candidates), `pairs/` (pairs as candidates), `sets/` (which candidates are
answers), `auditing/` (published numbers), `reporting/` (tables and pages); and the modules
`alignment`, `stratified` (metrics at other weights), `semantics` (do answers make sense?) and
`changes`. The most used names are here, loaded on first use: ``from kgtrec import study``, then
``study.beta_curve(ranks)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import homes, lazy_exports

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling as Resampling
    from kgtrec.graph.statistics.leakage import find_leaks as find_leaks
    from kgtrec.graph.statistics.popularity import entity_frequencies as entity_frequencies
    from kgtrec.graph.statistics.popularity import entity_popularity as entity_popularity
    from kgtrec.graph.statistics.popularity import (
        popularity_correlations as popularity_correlations,
    )
    from kgtrec.graph.statistics.popularity import relation_frequencies as relation_frequencies
    from kgtrec.graph.statistics.popularity import relation_popularity as relation_popularity
    from kgtrec.graph.statistics.popularity import triple_mix as triple_mix
    from kgtrec.graph.statistics.relations import kl_divergence as kl_divergence
    from kgtrec.graph.statistics.relations import relation_categories as relation_categories
    from kgtrec.graph.statistics.relations import relation_ratios as relation_ratios
    from kgtrec.graph.statistics.relations import split_divergences as split_divergences
    from kgtrec.scores.pairs import PairVectors as PairVectors
    from kgtrec.study.alignment import align as align
    from kgtrec.study.alignment import alignment_questions as alignment_questions
    from kgtrec.study.alignment import size_experiment as size_experiment
    from kgtrec.study.auditing.claims import protocols_of as protocols_of
    from kgtrec.study.auditing.possible import audit as audit
    from kgtrec.study.changes import answer_changes as answer_changes
    from kgtrec.study.classification.classify import classify as classify
    from kgtrec.study.classification.labelled_triples import LabelledTriples as LabelledTriples
    from kgtrec.study.classification.labelled_triples import read_labelled as read_labelled
    from kgtrec.study.comparison.choice import choose_runs as choose_runs
    from kgtrec.study.comparison.correlation import over_questions as over_questions
    from kgtrec.study.comparison.correlation import over_systems as over_systems
    from kgtrec.study.comparison.correlation import rank_biased_overlap as rank_biased_overlap
    from kgtrec.study.comparison.correlation import ranking_correlation as ranking_correlation
    from kgtrec.study.comparison.correlation import reproduction_of as reproduction_of
    from kgtrec.study.comparison.correlation import tau_ap as tau_ap
    from kgtrec.study.comparison.correlation import tau_b as tau_b
    from kgtrec.study.comparison.correlation import tau_union as tau_union
    from kgtrec.study.comparison.gate import gate as gate
    from kgtrec.study.comparison.parts import read_value_table as read_value_table
    from kgtrec.study.comparison.parts import values_of_table as values_of_table
    from kgtrec.study.comparison.rankings import data_sensitivity as data_sensitivity
    from kgtrec.study.comparison.rankings import depth_curves as depth_curves
    from kgtrec.study.comparison.rankings import rankings_by_part as rankings_by_part
    from kgtrec.study.comparison.rankings import rankings_of_samples as rankings_of_samples
    from kgtrec.study.comparison.rankings import rankings_of_values as rankings_of_values
    from kgtrec.study.comparison.report import compare as compare
    from kgtrec.study.comparison.report import compare_replicates as compare_replicates
    from kgtrec.study.comparison.report import multiplicity as multiplicity
    from kgtrec.study.comparison.samples import samples_of_ranks as samples_of_ranks
    from kgtrec.study.comparison.samples import samples_of_runs as samples_of_runs
    from kgtrec.study.comparison.significance import discriminate as discriminate
    from kgtrec.study.comparison.significance import pairwise as pairwise
    from kgtrec.study.comparison.verdicts import compare_verdicts as compare_verdicts
    from kgtrec.study.openworld.simulate import family_tree as family_tree
    from kgtrec.study.openworld.simulate import random_removal as random_removal
    from kgtrec.study.openworld.simulate import ranked_removal as ranked_removal
    from kgtrec.study.pairs.lists import pair_stability as pair_stability
    from kgtrec.study.pairs.rank import rank_pairs as rank_pairs
    from kgtrec.study.pooling.completion import complete as complete
    from kgtrec.study.pooling.completion import trivial_rules as trivial_rules
    from kgtrec.study.pooling.depths import curves_of_ranks as curves_of_ranks
    from kgtrec.study.pooling.depths import curves_of_runs as curves_of_runs
    from kgtrec.study.pooling.depths import leave_one_out as leave_one_out
    from kgtrec.study.pooling.edited_files import read_judgements as read_judgements
    from kgtrec.study.pooling.lists import run_lists as run_lists
    from kgtrec.study.pooling.lists import score_lists as score_lists
    from kgtrec.study.pooling.pool import make_pool as make_pool
    from kgtrec.study.pooling.pool import read_pool as read_pool
    from kgtrec.study.pooling.pool import write_pool as write_pool
    from kgtrec.study.pooling.seeds import sample_seeds as sample_seeds
    from kgtrec.study.pooling.seeds import seed_questions as seed_questions
    from kgtrec.study.pooling.unjudged import intervals as intervals
    from kgtrec.study.pooling.unjudged import open_candidates as open_candidates
    from kgtrec.study.probe import probe_grid as probe_grid
    from kgtrec.study.reporting.model_table import table_of_models as table_of_models
    from kgtrec.study.sampling.counts import count_sampled as count_sampled
    from kgtrec.study.sampling.counts import full_bounds as full_bounds
    from kgtrec.study.sampling.counts import rank_bounds as rank_bounds
    from kgtrec.study.sampling.counts import rank_some as rank_some
    from kgtrec.study.sampling.draw import draw_candidates as draw_candidates
    from kgtrec.study.sampling.estimates import draw_check as draw_check
    from kgtrec.study.sampling.estimates import estimate_full as estimate_full
    from kgtrec.study.sampling.estimates import full_estimates as full_estimates
    from kgtrec.study.semantics import fitting_by_constraints as fitting_by_constraints
    from kgtrec.study.semantics import fitting_by_types as fitting_by_types
    from kgtrec.study.semantics import fitting_observed as fitting_observed
    from kgtrec.study.semantics import semantic_shares as semantic_shares
    from kgtrec.study.sets.answer_sets import answer_sets as answer_sets
    from kgtrec.study.stratified import beta_curve as beta_curve
    from kgtrec.study.stratified import beta_grid as beta_grid
    from kgtrec.study.stratified import read_relation_counts as read_relation_counts
    from kgtrec.study.stratified import recounted as recounted
    from kgtrec.study.stratified import reweighted as reweighted
    from kgtrec.study.stratified import reweighted_table as reweighted_table
    from kgtrec.study.stratified import spreads as spreads
    from kgtrec.study.suite.cells import read_numbers as read_numbers
    from kgtrec.study.suite.suite import suite_of_ranks as suite_of_ranks
    from kgtrec.study.suite.suite import suites as suites

_HOMES = homes(
    {
        "kgtrec.graph.statistics.popularity": (
            "entity_frequencies entity_popularity popularity_correlations relation_frequencies "
            "relation_popularity triple_mix"
        ),
        "kgtrec.study.probe": "probe_grid",
        "kgtrec.study.stratified": (
            "beta_curve beta_grid recounted read_relation_counts reweighted reweighted_table "
            "spreads"
        ),
        "kgtrec.graph.statistics.relations": (
            "relation_categories kl_divergence relation_ratios split_divergences"
        ),
        "kgtrec.graph.statistics.leakage": "find_leaks",
        "kgtrec.study.sampling.counts": "full_bounds rank_bounds count_sampled rank_some",
        "kgtrec.study.sampling.draw": "draw_candidates",
        "kgtrec.study.sampling.estimates": "draw_check estimate_full full_estimates",
        "kgtrec.study.alignment": "align alignment_questions size_experiment",
        "kgtrec.study.semantics": (
            "fitting_by_constraints fitting_by_types fitting_observed semantic_shares"
        ),
        "kgtrec.scores.pairs": "PairVectors",
        "kgtrec.study.pairs.lists": "pair_stability",
        "kgtrec.study.pairs.rank": "rank_pairs",
        "kgtrec.study.classification.labelled_triples": "LabelledTriples read_labelled",
        "kgtrec.study.classification.classify": "classify",
        "kgtrec.study.openworld.simulate": "family_tree random_removal ranked_removal",
        "kgtrec.study.pooling.seeds": "sample_seeds seed_questions",
        "kgtrec.study.pooling.lists": "run_lists score_lists",
        "kgtrec.study.pooling.pool": "make_pool read_pool write_pool",
        "kgtrec.study.pooling.completion": "trivial_rules complete",
        "kgtrec.study.pooling.edited_files": "read_judgements",
        "kgtrec.study.pooling.unjudged": "open_candidates intervals",
        "kgtrec._internal.bootstrap": "Resampling",
        "kgtrec.study.changes": "answer_changes",
        "kgtrec.study.comparison.report": "compare compare_replicates multiplicity",
        "kgtrec.study.comparison.choice": "choose_runs",
        "kgtrec.study.comparison.samples": "samples_of_ranks samples_of_runs",
        "kgtrec.study.comparison.significance": "pairwise discriminate",
        "kgtrec.study.comparison.gate": "gate",
        "kgtrec.study.comparison.verdicts": "compare_verdicts",
        "kgtrec.study.comparison.correlation": (
            "over_questions over_systems ranking_correlation tau_ap tau_b rank_biased_overlap "
            "reproduction_of tau_union"
        ),
        "kgtrec.study.comparison.rankings": (
            "rankings_by_part rankings_of_samples rankings_of_values data_sensitivity depth_curves"
        ),
        "kgtrec.study.comparison.parts": "read_value_table values_of_table",
        "kgtrec.study.pooling.depths": "curves_of_runs curves_of_ranks leave_one_out",
        "kgtrec.study.sets.answer_sets": "answer_sets",
        "kgtrec.study.suite.cells": "read_numbers",
        "kgtrec.study.suite.suite": "suite_of_ranks suites",
        "kgtrec.study.auditing.possible": "audit",
        "kgtrec.study.auditing.claims": "protocols_of",
        "kgtrec.study.reporting.model_table": "table_of_models",
    }
)

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
