"""Policies that turn scores into a set of answers per question, as users write them: ``top:10``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError, choose

TIES = ("all", "none", "expected")
UNITS = ("answer", "question-any", "question-all")
CONFIDENCES = ("best", "gap")
POLICIES = {
    "top": "top:10",
    "threshold": "threshold:0.5, threshold:best-f1 or threshold:precision=P",
    "conformal": "conformal:0.1",
    "conformal-gap": "conformal-gap:0.1",
    "lists": "lists",
}
"""An example of each policy of `answer_sets`, by its name."""


@dataclass(frozen=True)
class Policy:
    """A policy, from its text.

    - text, name: ``conformal:0.1`` and ``conformal``.
    - number: K of ``top``, the error A of ``conformal``, the threshold or the precision, exact.
    - aim: What chooses a threshold on valid: "best-f1" or "precision"; "" if it is a number.
    """

    text: str
    name: str
    number: Fraction = Fraction(0)
    aim: str = ""

    @classmethod
    def parse(cls, text: object) -> Policy:
        """Return the policy of a text; UsageError if it is none, or its number is out of range."""
        name, colon, value = str(text).partition(":")
        choose("policy", name, POLICIES)
        if name == "lists":
            if colon:
                raise UsageError(f"{argument('policy', text)}: lists takes no number; leave it out")
            return cls(name, name)
        if name == "threshold" and value == "best-f1":
            return cls(str(text), name, aim=value)
        aim, equals, share = value.partition("=")
        if name == "threshold" and aim == "precision" and equals:
            return cls(str(text), name, _number(text, share, below=Fraction(1)), aim)
        if name == "top":
            number = _number(text, value)
            if number < 1 or number.denominator != 1:
                raise UsageError(
                    f"{argument('policy', text)}: {value} is not a number of candidates; give 1 or "
                    "more, as in top:10"
                )
            return cls(str(text), name, number)
        return cls(str(text), name, _number(text, value, share=name != "threshold"))

    @property
    def needs_valid(self) -> bool:
        """True if the policy is chosen on the validation split."""
        return bool(self.aim) or self.name.startswith("conformal")

    @property
    def needs_scores(self) -> bool:
        """True if the policy needs scores, because ranks are not enough."""
        return self.name in ("threshold", "conformal-gap")


def _number(
    text: object, value: str, *, share: bool = False, below: Fraction | None = None
) -> Fraction:
    """Return the exact number of a policy's text; UsageError if it is none or out of range."""
    name = str(text).partition(":")[0]
    try:
        number = Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{argument('policy', text)}: {value!r} is not a number; write {POLICIES[name]}"
        ) from None
    if share and not 0 < number < 1:
        raise UsageError(
            f"{argument('policy', text)}: the error {value} is not between 0 and 1; "
            f"{name}:0.1 claims that sets contain 90 % of the answers"
        )
    if below is not None and not 0 < number <= below:
        raise UsageError(
            f"{argument('policy', text)}: the precision {value} is not above 0 and at most 1"
        )
    return number
