"""``kgtrec rank --shard``: one part of a ranking, as a job of its own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgtrec._internal.atomic_file import sync_folder
from kgtrec._internal.locations import fetched, is_location, local_path, reachable, real_path
from kgtrec.cli._output import note
from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from kgtrec.cli.rank.options import QuestionRequest, Scoring
    from kgtrec.cluster.shards.shard import Shard

__all__ = ["rank_one"]


def rank_one(
    request: QuestionRequest,
    scoring: Scoring,
    shard: str,
    folder: str,
    *,
    run_depth: int,
    by: str,
    memory: str,
    plan_only: bool,
    show: bool | None,
) -> None:
    """Rank a shard into its file in ``folder``, after printing the plan; or only print that."""
    from kgtrec.cluster.plan import memory_bytes
    from kgtrec.cluster.shards.folder import local_shards, send_shard
    from kgtrec.cluster.shards.merge import shard_name
    from kgtrec.cluster.shards.shard import parse_shard
    from kgtrec.graph.formats import split_format

    number, count = parse_shard(shard)
    memory_bytes(memory)
    form, graph = split_format(request.graph)
    _check_folder(folder, graph, scoring.scores)
    with (
        fetched(graph, folders=True) as copy,
        local_shards(folder, shard_name(number, count)) as local,
    ):
        if is_location(graph):
            request = replace(request, graph=f"{form}{copy}")
        opened = _opened(request, scoring, str(local), number, count, run_depth, by, show)
        if not _rank(opened, scoring.scores, memory, plan_only, show):
            return
        if opened.path.parent != Path(folder):
            send_shard(opened.path, opened.inputs.store().folder, folder)
        _say(f"wrote {folder.rstrip('/')}/{opened.path.name}", show)


def _rank(opened: Shard, scores: str, memory: str, plan_only: bool, show: bool | None) -> bool:
    """Rank a shard, unless it is there or only its plan is asked for; whether that was done."""
    from kgtrec.cluster.shards.shard import rank_shard

    number, count = opened.about["number"], opened.about["count"]
    state = "missing" if plan_only else opened.state()
    if state == "whole":
        _say(f"shard {number}/{count} is there, whole and of these inputs: left as it is", show)
        return False
    plan = opened.plan(memory, calibrate=show is not False)
    _say(f"shard {number}/{count} by {opened.about['by']}: {plan}", show)
    if plan_only:
        return False
    if "sampled_hash" in opened.about["scores"]:
        _say(f"{scores} is over 1 GiB and known by its size, time and samples: leave it as it is "
             "until all shards are ranked", show)  # fmt: skip
    if "objects" in opened.about["scores"]:
        _say(f"{scores} is known by size and time of its objects: leave them as they are until all "
             "shards are ranked", show)  # fmt: skip
    if state == "damaged":
        _say(f"{opened.path.name} is there, but damaged or not complete: ranked again", show)
    rank_shard(opened, plan, show)
    return True


def _opened(
    request: QuestionRequest, scoring: Scoring, folder: str, number: int, count: int,
    run_depth: int, by: str, show: bool | None,
) -> Shard:  # fmt: skip
    """The shard with its inputs: questions from the folder, if another shard has put them there."""
    from kgtrec.cluster.content_hash import describe_request
    from kgtrec.cluster.inputs import fit_files, stored_questions
    from kgtrec.cluster.score_files import describe_scores
    from kgtrec.cluster.shards.shard import open_shard, shard_inputs

    store = stored_questions(
        folder,
        lambda: describe_request(request.graph, request.settings, request.lists),
        lambda: request.questions(show),
        scoring.rows,
    )
    higher = not scoring.lower_is_better
    files = fit_files(describe_scores(scoring.scores, folder), store, higher)
    inputs = shard_inputs(
        store, files, run_depth=run_depth, higher_is_better=higher, nan=scoring.nan,
        threads=scoring.threads, atol=scoring.atol, rtol=scoring.rtol,
    )  # fmt: skip
    return open_shard(inputs, folder, number, count, by)


def _say(text: str, show: bool | None) -> None:
    if show is not False:
        note(text)


def _check_folder(folder: str, graph: str, scores: str) -> None:
    """Make the folder of the shards; refuse one that holds inputs."""
    path = real_path(folder)
    inputs = {real_path(graph): "the graph's folder"}
    inputs[os.path.dirname(real_path(scores))] = "the folder of the scores"
    inputs[real_path(scores)] = "the scores"
    if path in inputs:
        raise UsageError(f"-o {folder} is {inputs[path]}; name a folder of its own for the shards")
    if is_location(folder):
        local = local_path(folder)
        if local is None:
            reachable(f"{folder}/questions")
            return
        folder = local
    try:
        Path(folder).mkdir(exist_ok=True)
        sync_folder(Path(folder).absolute().parent)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        hint = "give the name of a folder, to be made in one that there is"
        raise FileError(folder, found=error.strerror or str(error), hint=hint) from None
    if not writable:
        raise FileError(folder, found="no permission to write here", hint="choose another place")
