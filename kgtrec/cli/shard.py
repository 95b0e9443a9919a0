"""``kgtrec rank --shard``: one part of a ranking, as a job of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from kgtrec.questions import Questions

__all__ = ["rank_one"]


def rank_one(
    shard: str,
    graph: str,
    scores: str,
    folder: str,
    ask: Callable[[], Questions],
    options: Mapping[str, Any],
    lists: Mapping[str, Any],
    rows: str,
    settings: Mapping[str, Any],
    by: str,
    memory: str,
    show: bool | None,
) -> None:
    """Rank a shard into its file in ``folder``, after printing the plan."""
    from kgtrec.cluster.fitting import fit_files, stored_questions
    from kgtrec.cluster.identity import describe_request
    from kgtrec.cluster.plan import memory_bytes
    from kgtrec.cluster.shards import open_shard, parse_shard, rank_shard, shard_inputs
    from kgtrec.cluster.sources import describe_scores

    number, count = parse_shard(shard)
    memory_bytes(memory)
    _check_folder(folder, graph, scores)
    files = {name: [path] if isinstance(path, str) else list(path or ())
             for name, path in lists.items()}  # fmt: skip
    store = stored_questions(folder, lambda: describe_request(graph, options, files), ask, rows)
    found = fit_files(describe_scores(scores, folder), store, settings["higher_is_better"])
    opened = open_shard(shard_inputs(store, found, **settings), folder, max(number, 1), count, by)
    state = "missing" if number == 0 else opened.found()
    if state == "whole":
        _say(f"shard {number}/{count} is there, whole and of these inputs: left as it is", show)
        return
    plan = opened.plan(memory)
    _say(f"shard {max(number, 1)}/{count} by {opened.about['by']}: {plan}", show)
    if number == 0:
        return
    if state == "damaged":
        _say(f"{opened.path} is there, but damaged or not complete: ranked again", show)
    rank_shard(opened, plan, show)
    _say(f"wrote {opened.path}", show)


def _say(text: str, show: bool | None) -> None:
    if show is not False:
        click.echo(f"kgtrec: {text}".encode("utf-8", "surrogateescape"), err=True)


def _check_folder(folder: str, graph: str, scores: str) -> None:
    """Make the folder of the shards; refuse one that holds inputs."""
    path = os.path.realpath(folder)
    inputs = {os.path.realpath(graph): "the graph's folder"}
    inputs[os.path.dirname(os.path.realpath(scores))] = "the folder of the scores"
    inputs[os.path.realpath(scores)] = "the scores"
    if path in inputs:
        raise UsageError(f"-o {folder} is {inputs[path]}; name a folder of its own for the shards")
    try:
        Path(folder).mkdir(exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        mend = "give the name of a folder, to be made in one that there is"
        raise FileError(folder, found=error.strerror or str(error), mend=mend) from None
    if not writable:
        raise FileError(folder, found="no permission to write here", mend="choose another place")
