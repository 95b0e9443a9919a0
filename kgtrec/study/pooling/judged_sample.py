"""Which triples of a pool are judged, where judges cannot see them all: a random draw.

Inferred AP (Yilmaz and Aslam 2006) estimates AP from judgements of a random sample of the pool. Its
sample must be one of everything that is true or may be: a seed, or a triple that a rule labels, is
drawn like any other. Whether a triple is drawn depends on its names and on the draw alone, not on
the pool: a deeper pool, or one of more systems, keeps what was drawn, and a larger share adds to
it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError

__all__ = ["Draw", "read_draw"]

_BITS = 64
_WRITTEN = re.compile(r"sample=([0-9.e+-]+),seed=([0-9]+)")


@dataclass(frozen=True)
class Draw:
    """A random draw of triples, each with the same chance and on its own.

    Attributes
    ----------
    share : float
        Chance of every triple, above 0 and at most 1.
    seed : int
        From 0.

    Raises
    ------
    UsageError
        A share or a seed out of range.
    """

    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not 0 < self.share <= 1:
            raise UsageError(f"sample {self.share}: give the share to be drawn, above 0, up to 1")
        if isinstance(self.seed, bool) or self.seed < 0:
            raise UsageError(f"seed {self.seed} of the sample is below 0; give 0 or more")

    def takes(self, triples: Iterable[tuple[str, str, str]]) -> NDArray[np.bool_]:
        """Whether each triple, as labels, is drawn; shape (n,)."""
        start = hashlib.blake2b(f"{self.seed}".encode(), digest_size=_BITS // 8)
        limit = self.share * 2**_BITS
        drawn = []
        for triple in triples:
            digest = start.copy()
            digest.update(
                "".join(f"\t{text}" for text in triple).encode("utf-8", "surrogateescape")
            )
            drawn.append(int.from_bytes(digest.digest(), "big") < limit)
        return np.array(drawn, bool)

    def __str__(self) -> str:
        """As pool files name it: ``sample=0.3,seed=1``."""
        return f"sample={self.share!r},seed={self.seed}"


def read_draw(text: str) -> Draw | None:
    """A draw as pool files name it; None for any other text."""
    match = _WRITTEN.fullmatch(text)
    try:
        return Draw(float(match[1]), int(match[2])) if match else None
    except (ValueError, UsageError):
        return None
