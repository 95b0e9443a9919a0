"""The settings of a ranking: one value, checked once, that every step of a ranking receives.

Public functions take its fields as keywords and make it by `Settings.from_options`. A partial
ranking carries it, so that parts with different settings never merge. The manifest records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.threads import available_cores
from kgtrec.errors import UsageError, choose


class Tolerance(NamedTuple):
    """The largest distance of a tied score from the answer's score s(a): ``atol + rtol |s(a)|``."""

    atol: float
    rtol: float


class TieOptions(TypedDict, total=False):
    """The options that decide which scores are greater and which tie; see `Settings`."""

    higher_is_better: bool
    atol: float
    rtol: float


class ScoreOptions(TieOptions, total=False):
    """Keywords of every ranking of scores; see `Settings`."""

    rows: str
    nan: str


class RankOptions(ScoreOptions, total=False):
    """Keywords of a ranking in one process; see `Settings`."""

    columns: Any


class EvaluateOptions(RankOptions, total=False):
    """Keywords of `kgtrec.evaluate`: those of a ranking, run depth and threads."""

    run_depth: int
    threads: int | None


@dataclass(frozen=True)
class Settings:
    """The settings of a ranking; `kgtrec.Ranker` documents each field.

    Two settings are equal if they lead to the same counts. Threads, the order of columns and the
    treatment of repeated rows change no count.
    """

    run_depth: int = 0
    rows: str = "questions"
    higher_is_better: bool = True
    nan: str = "error"
    atol: float = 0.0
    rtol: float = 0.0
    threads: int | None = field(default=None, compare=False)
    columns: Any = field(default=None, compare=False, repr=False)
    duplicates: str = field(default="error", compare=False)

    def __post_init__(self) -> None:
        """Raise UsageError for a wrong value."""
        choose("rows", self.rows, ("questions", "instances"))
        choose("nan", self.nan, ("error", "worst"))
        choose("duplicates", self.duplicates, ("error", "ignore"))
        if not isinstance(self.higher_is_better, (bool, np.bool_)):
            raise UsageError(
                f"{argument('higher_is_better', self.higher_is_better, option='lower_is_better')}; "
                "choose True or False"
            )
        whole_number("run_depth", self.run_depth, 0)
        if self.threads is not None:
            whole_number("threads", self.threads, 1)
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            is_number = isinstance(value, (int, float, np.integer, np.floating))
            if not is_number or isinstance(value, bool) or not 0 <= value < float("inf"):
                raise UsageError(
                    f"{argument(name, value)}; it must be a number from 0, such as 1e-5"
                )

    @classmethod
    def from_options(
        cls, caller: str, kind: type, options: Mapping[str, Any], **others: object
    ) -> Settings:
        """Return the settings from the arguments of a public function.

        - caller: Name of the function, for messages.
        - options: Keywords of the call. TypeError if `kind`, such as `RankOptions`, lacks one.
        - others: Fields that are parameters of the function.
        """
        for name in options:
            if name not in kind.__annotations__:
                raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
        return cls.convert(**{**others, **options})

    @classmethod
    def convert(cls, **fields: Any) -> Settings:
        """Return the settings with these fields; numbers become Python's int and float."""
        settings = cls(**fields)
        return replace(
            settings,
            run_depth=int(settings.run_depth),
            higher_is_better=bool(settings.higher_is_better),
            threads=None if settings.threads is None else int(settings.threads),
            atol=float(settings.atol),
            rtol=float(settings.rtol),
        )

    @property
    def tolerance(self) -> Tolerance | None:
        """Tolerance of ties with the answer's score; None if only equal scores tie."""
        return Tolerance(self.atol, self.rtol) if self.atol or self.rtol else None

    @property
    def n_threads(self) -> int:
        """Number of threads: as requested, or one per core."""
        return self.threads or available_cores()

    def shared(self) -> Settings:
        """Return the settings that all parts of a ranking share, small enough to send with each."""
        return replace(self, threads=1, columns=None, duplicates="error")


def whole_number(name: str, value: object, least: int) -> int:
    """Return an argument as int; UsageError unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{argument(name, value)} is not a whole number of at least {least}")
    return int(value)
