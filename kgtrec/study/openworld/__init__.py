"""Evaluation under the open-world assumption (Yang et al. 2022).

Missing answers make every rank metric saturate and, by chance, misorder models. ``formulas`` has
the assumptions, exact moments, lemmas and theorems, and ``simulate`` draws the same. ``compare``
judges two models at a sparsity. ``experiment`` compares sparse with full metrics
in a closed world. ``results`` contains the results and their wording.
"""

from __future__ import annotations

from kgtrec.study.openworld.compare import compare_ranks, compare_values, question_values
from kgtrec.study.openworld.experiment import family_study
from kgtrec.study.openworld.formulas import (
    approximation,
    approximation_error,
    correlation_range,
    covariance,
    expectation,
    expectation_main,
    inconsistency,
    queries_needed,
    slope,
    sparsity_of_density,
    split_strength,
    variance,
)
from kgtrec.study.openworld.results import Comparison, Curve, FamilyStudy, Outlook, Panel
from kgtrec.study.openworld.simulate import Simulation, simulate

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
    "queries_needed",
    "question_values",
    "simulate",
    "slope",
    "sparsity_of_density",
    "split_strength",
    "variance",
]
