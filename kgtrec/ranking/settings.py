"""How scores are ranked: one value, checked once, that every step of a ranking receives.

Front doors take its fields as keywords and make it by `Settings.of`. A partial ranking carries it,
so parts that were ranked differently never merge. The manifest is written from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.runtime import available_cores
from kgtrec.errors import UsageError, choose


class Tolerance(NamedTuple):
    """How far a tied score may be from the answer's: ``atol + rtol |s(a)|``."""

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
    """The same, with run depth and threads as keywords too."""

    run_depth: int
    threads: int | None


@dataclass(frozen=True)
class Settings:
    """How scores are ranked; `kgtrec.Ranker` documents each field.

    Two are equal if they give the same counts: threads, the order of columns and the treatment of
    repeated rows change no count.
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
        """Refuse wrong values: UsageError."""
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
    def of(cls, caller: str, kind: type, options: Mapping[str, Any], **others: Any) -> Settings:
        """Return the settings from a front door's arguments.

        - caller: The front door's name, for messages.
        - options: Its keywords; those of ``kind``, such as `RankOptions`, are known. Any other
          raises TypeError, as in Python.
        - others: Fields that it takes by name.
        """
        for name in options:
            if name not in kind.__annotations__:
                raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
        return cls.convert(**{**others, **options})

    @classmethod
    def convert(cls, **fields: Any) -> Settings:
        """Return the settings with these fields, numbers as Python's int and float."""
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
        """The tolerance of ties with the answer's score; None: only equal scores tie."""
        return Tolerance(self.atol, self.rtol) if self.atol or self.rtol else None

    @property
    def n_threads(self) -> int:
        """Number of threads that rank: as requested, or one per core."""
        return self.threads or available_cores()

    def shared(self) -> Settings:
        """The settings that all parts of one ranking share, small enough to send with each."""
        return replace(self, threads=1, columns=None, duplicates="error")


def whole_number(name: str, value: Any, least: int) -> int:
    """Check that an argument is a whole number of at least ``least``; UsageError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{argument(name, value)} is not a whole number of at least {least}")
    return int(value)
