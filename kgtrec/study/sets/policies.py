"""Policies that turn scores into a set of answers per question, as users write them: ``top:10``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError, choose, refuse_if

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
    """A rule that turns the scores of a question into its set of answers.

    - text, name: ``conformal:0.1`` and ``conformal``.
    - number: K of ``top``, the error A of ``conformal``, the threshold or the precision, exact.
    - aim: Aim of a threshold that is chosen on valid: "best-f1" or "precision"; "" for a number.
    """

    text: str
    name: str
    number: Fraction = Fraction(0)
    aim: str = ""

    @classmethod
    def parse(cls, text: object) -> Policy:
        """Parse a policy; UsageError if it is unknown, or its number is out of range."""
        name, colon, value = str(text).partition(":")
        choose("policy", name, POLICIES)
        named, aim = argument("policy", text), ""
        if name == "lists":
            refuse_if((colon, f"{named}: lists takes no number; leave it out"))
            return cls(name, name)
        if name == "threshold" and value == "best-f1":
            return cls(str(text), name, aim=value)
        if name == "threshold" and value.startswith("precision="):
            aim, _, value = value.partition("=")
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            problem = f"{named}: {value!r} is not a number; write {POLICIES[name]}"
            raise UsageError(problem) from None
        refuse_if(
            (
                name == "top" and (number < 1 or number.denominator > 1),
                f"{named}: {value} is not a number of candidates; give 1 or more, as in top:10",
            ),
            (
                name.startswith("conformal") and not 0 < number < 1,
                f"{named}: the error {value} is not between 0 and 1; {name}:0.1 claims that sets "
                "contain 90 % of the answers",
            ),
            (
                aim and not 0 < number <= 1,
                f"{named}: the precision {value} is not above 0 and at most 1",
            ),
        )
        return cls(str(text), name, number, aim)

    @property
    def claims(self) -> bool:
        """True if the policy claims a coverage."""
        return self.name.startswith("conformal")

    @property
    def needs_valid(self) -> bool:
        """True if the policy is chosen on the validation split."""
        return bool(self.aim) or self.claims

    def check_options(self, per: str, cover: str, ties: str, confidence: str, valid: bool) -> None:
        """Raise UsageError for options that do not exist, or that the policy does not have."""
        choose("per", per, ("", "relation"))
        choose("cover", cover, UNITS)
        choose("ties", ties, TIES)
        choose("confidence", confidence, CONFIDENCES)
        named, fitted = argument("policy", self.text), self.needs_valid
        on_valid = f"{named} is chosen on the validation split; give {argument('valid')}"
        no_claim = f"{named} claims no coverage; leave {argument('cover', cover)} out"
        all_ties = f"{named} has all candidates that tie; leave {argument('ties', ties)} out"
        refuse_if(
            (fitted and not valid, on_valid),
            (valid and not fitted, f"{named} needs no {argument('valid')}; leave it out"),
            (per and not fitted, f"{named} has no {argument('per', per)}; leave it out"),
            (cover != "answer" and not self.claims, no_claim),
            (ties != "all" and self.name != "top", all_ties),
        )
