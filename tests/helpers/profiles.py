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
    "fuzz": 100,  # as many, but new ones in every run
    "quick": 10,  # for writing a test
    "sanitizers": 12,
    "hours": 20_000,
}
REPEATABLE = {DEFAULT, MUTANTS, "ci", "sanitizers"}


def register() -> None:
    """Register the profiles and load the default one.

    Profiles in `REPEATABLE` draw the same examples in every run, so that a commit passes or fails
    for everybody alike. The others draw new ones: run them before a release, and when a reader, a
    kernel or an oracle changes.
    """
    for name, count in EXAMPLES.items():
        settings.register_profile(
            name,
            max_examples=count,
            derandomize=name in REPEATABLE,
            phases=[
                phase
                for phase in Phase
                if name != MUTANTS or phase not in (Phase.shrink, Phase.explain)
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
