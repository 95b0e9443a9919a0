"""A second look at merged labels: as many true as false ones, drawn at random and shown blank.

Zhou et al. (2022, section 3.2) have an expert judge a balanced sample anew. Where most labels are
false, a plain sample would hold few true ones, and say little about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.study.judging.sheets import Item

__all__ = ["audit_sample"]


def audit_sample(items: Iterable[Item], size: int, seed: int = 0) -> list[Item]:
    """A balanced sample of judged triples, to be judged again by somebody else.

    Parameters
    ----------
    items : iterable of Item
        Judged triples; only those with the labels Y and N are drawn.
    size : int
        Even: half are Y, half N.
    seed : int

    Returns
    -------
    list of Item
        In random order, without label, evidence and note.

    Raises
    ------
    UsageError
        The size is odd or below 2, or there are too few triples of a label.
    """
    if size < 2 or size % 2:
        raise UsageError(f"an audit of {size} triples; give an even number, 2 or more")
    if seed < 0:
        raise UsageError(f"seed {seed} is below 0; give 0 or more")
    rng = np.random.default_rng(seed)
    chosen: list[Item] = []
    known = sorted(items, key=lambda item: item.triple)
    for label in ("Y", "N"):
        own = [item for item in known if item.label == label]
        if len(own) < size // 2:
            raise UsageError(
                f"{len(own):,} triples are labelled {label}, and {size // 2:,} were to be drawn; "
                f"ask for at most {2 * len(own):,}"
            )
        places = rng.choice(len(own), size // 2, replace=False)
        chosen += [own[place] for place in places.tolist()]
    order = rng.permutation(len(chosen)).tolist()
    return [replace(chosen[i], label="", evidence="", note="", line=0) for i in order]
