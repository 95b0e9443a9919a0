"""Evaluation under the open-world assumption (Yang et al. 2022).

Missing answers make every rank metric saturate and, by chance, misorder models. ``formulas`` has
the assumptions, exact moments, lemmas and theorems, and ``simulate`` simulates them.
``derivatives`` shows how fast metrics grow with strength. ``compare`` judges two models at a
sparsity. ``experiment`` compares sparse with full metrics in a closed world, with its own models.
``worlds`` writes closed worlds with hidden facts for other models, and ``checkpoints`` compares
their ranks. ``results`` contains the results and their wording.

The functions share their parameters. Values out of range are a UsageError.

- strength: l in [0, 1], the probability that a model predicts a true answer; arrays give arrays.
- beta: The sparsity in [0, 1), the share of the true answers that the test set lacks.
- n_answers, n_entities: True answers of a question, missing ones included, and its candidates;
  by default 14505, the entities of FB15k-237 as the paper counts them.
- metric: ``mrr``, ``hits@10``, ``log_mrr``, ``p_mrr@0.5``, ...
- rho: Correlation of missing and predicted answers.
- level, p: Accepted probability of the wrong order, below 0.5.
"""

from __future__ import annotations

from kgtrec.study.openworld.checkpoints import (
    CheckpointStudy,
    RankedCheckpoint,
    compare_checkpoints,
    read_checkpoints,
)
from kgtrec.study.openworld.compare import compare_ranks, compare_values, question_values
from kgtrec.study.openworld.derivatives import Slope, Slopes, slopes, slopes_of_ranks
from kgtrec.study.openworld.experiment import family_study
from kgtrec.study.openworld.formulas import (
    approximate_slope_by_rho,
    approximation,
    approximation_error,
    correlation_range,
    delta_bound,
    expectation,
    expectation_main,
    inconsistency,
    moments,
    must_fall_with_rho,
    queries_needed,
    slope,
    slope_by_rho,
    sparsity_of_density,
    split_strength,
)
from kgtrec.study.openworld.results import Comparison, Curve, FamilyStudy, Outlook, Panel
from kgtrec.study.openworld.simulate import Simulation, simulate
from kgtrec.study.openworld.worlds import (
    HiddenWorld,
    hide_facts,
    hide_predicted_facts,
    split_family_tree,
)

__all__ = [
    "CheckpointStudy",
    "Comparison",
    "Curve",
    "FamilyStudy",
    "HiddenWorld",
    "Outlook",
    "Panel",
    "RankedCheckpoint",
    "Simulation",
    "Slope",
    "Slopes",
    "approximate_slope_by_rho",
    "approximation",
    "approximation_error",
    "compare_checkpoints",
    "compare_ranks",
    "compare_values",
    "correlation_range",
    "delta_bound",
    "expectation",
    "expectation_main",
    "family_study",
    "hide_facts",
    "hide_predicted_facts",
    "inconsistency",
    "moments",
    "must_fall_with_rho",
    "queries_needed",
    "question_values",
    "read_checkpoints",
    "simulate",
    "slope",
    "slope_by_rho",
    "slopes",
    "slopes_of_ranks",
    "sparsity_of_density",
    "split_family_tree",
    "split_strength",
]
