"""The number of hypothesis examples per property, and a decorator for more.

``pytest --hypothesis-profile=NAME`` chooses a profile. A test never names a number of examples.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

DEFAULT, MUTANTS = "kgtrec", "mutants"
EXAMPLES = {
    DEFAULT: 20,
    MUTANTS: 20,  # the same; that a fault is found is enough, so none is made smaller
    "ci": 100,  # what `.ci/run slow` tries
    "quick": 10,  # for writing a test
    "sanitizers": 12,
    "hours": 20_000,
}


def register() -> None:
    """Register the profiles and load the default one.

    The default profile draws the same examples in every run, so everybody gets the same result,
    and mutants do. The others draw new ones.
    """
    for name, count in EXAMPLES.items():
        settings.register_profile(
            name,
            max_examples=count,
            derandomize=name in (DEFAULT, MUTANTS),
            phases=[
                one for one in Phase if name != MUTANTS or one not in (Phase.shrink, Phase.explain)
            ],
            print_blob=True,
            # A slow machine, or a build with sanitizers, must not fail a test.
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile(DEFAULT)


def examples(times: float) -> settings:
    """Multiply the profile's number of examples, for a property whose faults are rare."""
    return settings(max_examples=round(times * settings.default.max_examples))
