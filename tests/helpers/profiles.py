"""How many examples hypothesis tries per property, and how a test asks for more.

``pytest --hypothesis-profile=NAME`` chooses a profile. A test never names a number of examples.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

DEFAULT = "kgtrec"
EXAMPLES = {
    DEFAULT: 20,
    "ci": 100,  # what `.ci/run slow` tries
    "quick": 10,  # while a test is being written
    "sanitizers": 25,
}


def register() -> None:
    """Register the profiles and load the default one.

    The default profile draws the same examples in every run: whoever runs the suite gets the result
    of everybody else. The others draw new ones.
    """
    for name, count in EXAMPLES.items():
        settings.register_profile(
            name,
            max_examples=count,
            derandomize=name == DEFAULT,
            print_blob=True,
            # A slow machine, or a build with sanitizers, is no reason to fail.
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile(DEFAULT)


def examples(times: float) -> settings:
    """Try so many times the examples of the profile: for a property whose faults are rare."""
    return settings(max_examples=round(times * settings.default.max_examples))
