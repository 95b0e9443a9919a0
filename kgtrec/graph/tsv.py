"""Which files of a folder are its splits: their names, and what is to be said of others."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from kgtrec.errors import FileError, FilterWarning
from kgtrec.graph.tsv_errors import CODECS

__all__ = ["NUMBERED", "SPLITS", "find_split_files", "has_splits"]

SPLITS = ("train", "valid", "test")
NUMBERED = "2id.txt"  # how the names of OpenKE's files end

_STEMS = {"train": "train", "valid": "valid", "dev": "valid", "test": "test"}
_NAMES = {
    stem + suffix + packed: split
    for stem, split in _STEMS.items()
    for suffix in (".txt", ".tsv", "")
    for packed in ("", *CODECS)
}
_WORDS = {
    "train": "train", "training": "train",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_HOLDS_TRIPLES = re.compile(
    r"[^.]+(\.(txt|tsv|csv|tab|del|dat|nt|triples))?(\.(gz|zst|bz2|xz|zip))?", re.IGNORECASE
)
_INDUCTIVE = re.compile(
    r"((inference|inductive|msg)(_[a-z]+)?|inf_(valid|test)|(train|valid|test)_ind|"
    r"transductive_[a-z]+)\.(txt|tsv)(\.(gz|zst))?",
    re.IGNORECASE,
)
_NOT_SPLITS = ("test2id_all.txt",)  # OpenKE's test triples once more, by the kind of their relation
_NAMING = (
    "name the files train, valid (or dev), test, ending in .txt, .tsv or nothing, "
    "optionally packed as .gz or .zst"
)


def has_splits(names: Iterable[str]) -> bool:
    """Whether files of these names are splits, tab-separated or in OpenKE's format."""
    return any(name in _NAMES or name.removesuffix(NUMBERED) in SPLITS for name in names)


def find_split_files(folder: str | PathLike[str]) -> dict[str, Path]:
    """Files of the splits in a folder, in the order train, valid, test.

    Those of OpenKE's format, ``train2id.txt`` and so on, where there are no others.

    Raises
    ------
    FileError
        If the folder is missing or a file, if it holds no split, or two files for one split.
    """
    folder = Path(folder)
    advice = "give the folder that holds train.txt, valid.txt and test.txt"
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        names = [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        raise FileError(folder, found="this folder does not exist", hint=advice) from None
    except NotADirectoryError:
        raise FileError(folder, found="this is a file, not a folder", hint=advice) from None
    except OSError as error:
        raise FileError(folder, found=f"cannot be listed ({error.strerror})", hint=advice) from None
    _refuse_inductive(folder, names)
    files: dict[str, Path] = {}
    for name in names:
        split = _NAMES.get(name)
        if split is None:
            continue
        if split in files:
            both = f"{files[split].name!r} and {name!r}"
            raise FileError(
                folder, found=f"two files for split {split!r}: {both}", hint="keep one of them"
            )
        files[split] = folder / name
    named = files or {s: folder / (s + NUMBERED) for s in SPLITS if s + NUMBERED in names}
    if not named:
        raise _no_split(folder)
    _check_overlooked(folder, entries, named)
    files = named
    return {split: files[split] for split in SPLITS if split in files}


def _check_overlooked(
    folder: Path, entries: list[os.DirEntry[str]], files: dict[str, Path]
) -> None:
    """A split that is missed without a word would go missing from the filter, too."""
    for entry in entries:
        name = entry.name
        if _NAMES.get(name) not in (None, *files):
            raise FileError(
                folder / name,
                found="no regular file (a folder, or a link to nothing?)",
                hint=f"put the triples of split {_NAMES[name]!r} there, or take it away",
            )
    names = [entry.name for entry in entries if entry.is_file()]
    unread = [name for name in names if folder / name not in files.values()]
    for name, split in ((name, _split_like(name)) for name in unread):
        if split is None:
            continue
        if split in files and name == split + NUMBERED:  # the same in OpenKE's format, as may be
            continue
        triples = _HOLDS_TRIPLES.fullmatch(name)
        missed = f"split {split!r} is not read: {name!r} is not a name for it"
        if split not in files and triples:
            hint = f"{_NAMING}; or move it away, if its triples are not to be filtered"
            raise FileError(folder, found=missed, hint=hint)
        message = f"{missed}; {_NAMING}"
        if split in files:
            message = f"{name!r} is not read: split {split!r} is {files[split].name!r}"
        if split not in files or triples:
            warnings.warn(
                f"{folder}: {message}", FilterWarning, stacklevel=4
            )  # read_graph's caller


def _refuse_inductive(folder: Path, names: list[str]) -> None:
    """Folders with a graph for inference beside that of training are not to be half-read."""
    inductive = [name for name in names if _INDUCTIVE.match(name)]
    if inductive:
        raise FileError(
            folder,
            found=f"{', '.join(map(repr, inductive))} beside the splits: a folder of an inductive "
            "benchmark, of which only a part would be read",
            hint="say what it is: ilpc:DIR, grail:DIR or ultra:DIR ask its inference graph; or put "
            "the graph that is asked into a folder of its own, as train, valid and test",
        )


def _split_like(name: str) -> str | None:
    """The split that a file's name speaks of, if it begins or ends with the word for one."""
    if name in _NOT_SPLITS:
        return None
    stem = name.lower().partition(".")[0]
    if stem in _WORDS:
        return _WORDS[stem]
    words = [word for word in re.split("[^a-z]+", stem) if word]
    if not words or not _HOLDS_TRIPLES.fullmatch(name):
        return None
    return _WORDS.get(words[0]) or _WORDS.get(words[-1])


def _no_split(folder: Path) -> FileError:
    present = sorted(entry.name + "/" * entry.is_dir() for entry in os.scandir(folder))
    listing = ", ".join(map(repr, present[:10])) + (", ..." if len(present) > 10 else "")
    hint = _NAMING
    if any(name.endswith(NUMBERED) for name in present):
        hint = (
            "of OpenKE's format, at least one of train2id.txt, valid2id.txt, test2id.txt is needed"
        )
    return FileError(folder, found=f"no split here, only: {listing or 'nothing'}", hint=hint)
