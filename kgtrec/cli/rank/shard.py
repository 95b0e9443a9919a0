"""``kgtrec rank --shard``: one part of a ranking, as a separate job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kgtrec._internal.files import sync_folder
from kgtrec._internal.locations import is_location, local_path, reachable, real_path
from kgtrec._internal.system import reason_of
from kgtrec.cli._report import Report, note
from kgtrec.cli.rank.options import has_embeddings, model_file, ranking_settings
from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from kgtrec.cluster import shards
    from kgtrec.questions.requests import AnswerRequest, QuestionRequest


def rank_shard(request: QuestionRequest | AnswerRequest, options: Mapping[str, Any]) -> Report:
    """Rank a shard into its file in the folder. With --plan, only print its plan."""
    from kgtrec.cluster import shards
    from kgtrec.cluster.plan import memory_bytes

    number, count = shards.parse_shard(options["shard"])
    memory, folder = options["memory"] or "2GB", options["output"]
    memory_bytes(memory)
    _check_folder(folder, request.folders, options["scores"])
    with (
        request.with_local_copy() as fetched_request,
        shards.local_shards(folder, shards.shard_name(number, count)) as local,
        TemporaryDirectory(prefix="kgtrec-") as temporary,
    ):
        opened = _open_shard(fetched_request, options, str(local), temporary, number, count)
        if not _rank(opened, options["scores"], memory, options["plan"]):
            return Report()
        if opened.path.parent != Path(folder):
            shards.send_shard(opened.path, opened.inputs.store().folder, folder)
        notes = [f"wrote {folder.rstrip('/')}/{opened.path.name}"]
        asked, kept = options["run_depth"], opened.header.run_depth
        if 0 < asked < kept:
            notes.append(
                f"the shard keeps {kept} candidates per question, which `kgtrec merge` checks; for "
                f"a run of {asked}, give --run-depth {asked} to `kgtrec merge`, too"
            )
        return Report(notes=notes)


def _rank(opened: shards.Shard, scores: str, memory: str, plan_only: bool) -> bool:
    """Rank a shard unless it exists or only its plan is requested. Return True if it ranked."""
    from kgtrec.cluster import shards

    number, count = opened.header.number, opened.header.count
    state = "missing" if plan_only else opened.state()
    if state == "whole":
        note(f"shard {number}/{count} is complete and has these inputs; kept")
        return False
    plan = opened.plan(memory, calibrate=True)
    note(f"shard {number}/{count} by {opened.header.by}: {plan}")
    if plan_only:
        return False
    if "sampled_hash" in opened.header.scores:
        note(
            f"{scores} is over 1 GiB, so kgtrec checks only its size, time and samples: do not "
            "change it until all shards are ranked"
        )
    if "objects" in opened.header.scores:
        note(
            f"kgtrec checks only the size and time of the objects of {scores}: do not change them "
            "until all shards are ranked"
        )
    if state == "damaged":
        note(f"{opened.path.name} is damaged or incomplete, so it is ranked again")
    shards.rank_shard(opened, plan)
    return True


def _open_shard(
    request: QuestionRequest | AnswerRequest,
    options: Mapping[str, Any],
    folder: str,
    temporary: str,
    number: int,
    count: int,
) -> shards.Shard:
    """Open a shard and its inputs. Its questions come from the folder if they are there.

    - temporary: Folder for arrays that are computed from vectors.
    """
    from kgtrec.cluster import shards
    from kgtrec.cluster.inputs import fit_files, open_question_store
    from kgtrec.cluster.plan import memory_bytes
    from kgtrec.cluster.score_files import describe_scores
    from kgtrec.cluster.vectors import check_memory, describe_vectors
    from kgtrec.ranking.settings import Settings

    settings = Settings.convert(run_depth=options["run_depth"], **ranking_settings(options))
    vectors = model_file(options) if options.get("graph") and has_embeddings(options) else None
    if vectors is not None:
        check_memory(vectors, memory_bytes(options["memory"] or "2GB"))
        shape = 0, vectors.count_entities()
    else:
        files = describe_scores(options["scores"], folder)
        shape = files.n_rows, files.n_columns
    store = open_question_store(folder, request, settings.rows, shape)
    if vectors is not None:
        by = shards.choose_way(store, count, options["by"] or "auto")
        rows, _ = shards.share_of(store, by, number, count)
        files = describe_vectors(vectors, store, Path(temporary), slice(*rows))
    files = fit_files(files, store, settings.higher_is_better)
    inputs = shards.build_shard_inputs(store, files, settings)
    return shards.open_shard(inputs, folder, number, count, options["by"] or "auto")


def _check_folder(folder: str, folders: dict[str, str], scores: str) -> None:
    """Make the folder of the shards; refuse a folder that holds inputs."""
    path = real_path(folder)
    inputs = {real_path(path): noun for path, noun in folders.items()}
    inputs[os.path.dirname(real_path(scores))] = "the folder of the scores"
    inputs[real_path(scores)] = "the scores"
    if path in inputs:
        raise UsageError(f"-o {folder} is {inputs[path]}; give a separate folder for the shards")
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
        hint = "give a new folder in an existing one"
        raise FileError(folder, found=reason_of(error), hint=hint) from None
    if not writable:
        raise FileError(folder, found="no permission to write here", hint="choose another place")
