"""Shortened names keep what differs between them, and stay different."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec._internal.text import shorten_names

WORDS = st.sampled_from(["transe", "rotate", "dim", "0.5", "200", "seed", "a", "x" * 30])
NAMES = st.lists(
    st.builds(
        str.join, st.sampled_from(["_", "-", "/", " ", ""]), st.lists(WORDS, min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=8,
)


def is_cut_from(shown: str, name: str) -> bool:
    """The pieces around ellipses occur in the name in this order, up to both of its ends."""
    pieces = shown.split("…")
    if not (name.startswith(pieces[0]) and name.endswith(pieces[-1])):
        return False
    start = 0
    for piece in pieces:
        start = name.find(piece, start)
        if start < 0:
            return False
        start += len(piece)
    return True


@given(names=NAMES, width=st.integers(12, 60))
def test_different_names_stay_different_and_fit(names: list[str], width: int) -> None:
    shown = shorten_names(names, width)
    assert all(len(text) <= width for text in shown)
    assert len({*shown}) == len({*names})
    assert len({*zip(names, shown, strict=True)}) == len({*names})
    if all(len(name) <= width for name in names):
        assert shown == names
    for text, name in zip(shown, names, strict=True):
        assert is_cut_from(text, name) or text.endswith(")")


@pytest.mark.parametrize("width", [20, 28, 40])
def test_what_differs_in_the_middle_is_shown(width: int) -> None:
    values = ["0", "0.5", "12.25"]
    names = [f"experiments-2026_transe_dim-200_margin-{v}_batch-1024_seed-17" for v in values]
    for value, text in zip(values, shorten_names(names, width), strict=True):
        assert f"margin-{value}" in text
        assert "…" in text
    pairs = [f"{a}{'_shared' * 9}_{b}" for a in ("transe", "rotate") for b in ("one", "two")]
    for name, text in zip(pairs, shorten_names(pairs, width), strict=True):
        assert text.startswith(name[:6])
        assert text.endswith(name[-3:])


def test_names_of_different_numbers_of_words() -> None:
    start, end = "results-of-the-experiments-", "-with-all-of-the-negatives"
    names = [f"{start}{middle}{end}" for middle in ("svd", "svd-large", "complex-n3")]
    assert shorten_names(names, 20) == [
        "…experiments-svd…",
        "results-…-svd-large…",
        "results…-complex-n3…",
    ]


def test_a_difference_within_a_long_word_is_shown() -> None:
    names = [f"{'a' * 30}{letter}{'b' * 30}" for letter in "xy"]
    first, second = shorten_names(names, 20)
    assert ("x" in first, "y" in second) == (True, True)
    assert shorten_names(["z" * 40], 20) == ["z" * 9 + "…" + "z" * 10]
