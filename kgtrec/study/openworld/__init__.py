"""Evaluation under the open-world assumption (Yang et al. 2022).

Missing answers make every rank metric saturate and, by chance, misorder models. One theme a file:
``model`` (what is assumed), ``gains`` (metrics as 1/f), ``moments`` (exact mean and variance),
``formulas`` (lemmas, theorems, corollaries), ``simulate``, ``mixture`` and ``compare`` (two models
at a sparsity), ``factorise``, ``experiment`` and ``curves`` (sparse against full, closed world).
"""

from __future__ import annotations

from kgtrec.study.openworld.compare import (
    Comparison,
    compare_ranks,
    compare_values,
    question_values,
)
from kgtrec.study.openworld.experiment import family_study
from kgtrec.study.openworld.formulas import (
    approximation,
    approximation_error,
    expectation_main,
    inconsistency,
    negative_part_bound,
    queries_constant,
    queries_needed,
    slope,
    slope_approximation,
    slope_rho,
)
from kgtrec.study.openworld.model import correlation_range, sparsity_of_density, split_strength
from kgtrec.study.openworld.moments import covariance, expectation, negative_part, variance
from kgtrec.study.openworld.projection import Outlook
from kgtrec.study.openworld.simulate import Simulation, simulate
from kgtrec.study.openworld.study_results import Curve, FamilyStudy, Panel

__all__ = [
    "Comparison",
    "Curve",
    "FamilyStudy",
    "Outlook",
    "Panel",
    "Simulation",
    "approximation",
    "approximation_error",
    "compare_ranks",
    "compare_values",
    "correlation_range",
    "covariance",
    "expectation",
    "expectation_main",
    "family_study",
    "inconsistency",
    "negative_part",
    "negative_part_bound",
    "queries_constant",
    "queries_needed",
    "question_values",
    "simulate",
    "slope",
    "slope_approximation",
    "slope_rho",
    "sparsity_of_density",
    "split_strength",
    "variance",
]
