"""What systems are called: by ``--name``, or by their files."""

from __future__ import annotations

from kgtrec.errors import UsageError

__all__ = ["system_names"]


def system_names(files: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each file: as given, or its own without folder and ending.

    Raises
    ------
    UsageError
        Another number of names than of files.
    """
    from kgtrec.ranking.parquet import system_name

    if names and len(names) != len(files):
        raise UsageError(
            f"--name is given {len(names)} times for {len(files)} files; name every file, or none"
        )
    return names or tuple(map(system_name, files))
