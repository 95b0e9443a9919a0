"""Sparse against full metrics of any models' checkpoints (section 6; Figures 3 to 5 and 8 to 14).

A checkpoint is a model at one step of its training, ranked on the full and on the sparse test set
of a world. A file lists checkpoints, one per line:

``model<TAB>step<TAB>density<TAB>full ranks<TAB>sparse ranks[<TAB>removal]``

Paths of ranks are relative to the file. Both values of a checkpoint are of the questions with a
sparse answer, and average over the answers of each question first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import FileError, InputError, PathName, UsageError, about, choose
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.openworld.compare import Mixture, count_candidates
from kgtrec.study.openworld.experiment import METRICS, TREC, correlate, metric_values
from kgtrec.study.openworld.formulas import check, gain, title_of
from kgtrec.study.openworld.results import Curve, Panel, PanelTables

COLUMNS = "model<TAB>step<TAB>density<TAB>full ranks<TAB>sparse ranks"
HEADER = ("model", "step", "density", "full", "sparse", "removal")
LARGEST_STEP = 1 << 53
INDEPENDENT = "independent"
LISTED = 10
"""Misordered pairs that the text lists."""


class RankedCheckpoint(NamedTuple):
    """A model at one step of its training, with its ranks.

    - model: Its name; tables and legends show it.
    - step: Whole number, which orders the checkpoints of a model.
    - density: Share of all facts that the graph records.
    - full, sparse: Ranks on the full and on the sparse test set, or the paths of their files.
    - removal: How facts were hidden: "independent", "correlated" or another word.
    - name: Name of the checkpoint in messages, such as ``checkpoints.tsv:3``.
    """

    model: str
    step: int
    density: float
    full: Ranks | PathName
    sparse: Ranks | PathName
    removal: str = INDEPENDENT
    name: str = ""


@dataclass(frozen=True, eq=False)
class CheckpointStudy(PanelTables):
    """The result of `compare_checkpoints`: a panel per density and removal."""

    metrics: tuple[str, ...]
    panels: tuple[Panel, ...]

    def table(self) -> Table:
        """Return a table per density, removal and metric: how sparse values agree with full ones.

        Columns are reach and flattening of the sparse values, the number of pairs of checkpoints of
        different models, and how many of these pairs the sparse values misorder.
        """
        rows = [
            (
                panel.title(),
                title_of(metric),
                panel.sparsity,
                panel.reach(metric),
                panel.flattening(metric),
                panel.count_pairs(metric),
                len(panel.overtaking(metric)),
                panel.inconsistency(metric),
            )
            for panel in self.panels
            for metric in self.metrics
        ]
        columns = (
            "=panel, metric, sparsity:3, range=reach:4, slope=flattening:3, pairs, "
            "wrong=n_misordered, share=inconsistency:4"
        )
        return Table.from_rows(columns, rows, names=2)

    def overtaking(self, metric: str | None = None) -> Table:
        """Return the misordered pairs of checkpoints, the widest gap of full values first.

        The stronger checkpoint has the higher full value and the lower sparse value (Figure 4).
        Without a metric, the first one is used.
        """
        name = self.metrics[0] if metric is None else metric
        choose("metric", name, self.metrics, "was not measured")
        rows = [row for panel in self.panels for row in _list_overtaking(panel, name)]
        rows.sort(key=lambda row: -row[0])
        columns = (
            "=panel, stronger, weaker, full=full_stronger:4, full=full_weaker:4, "
            "sparse=sparse_stronger:4, sparse=sparse_weaker:4, gap:4"
        )
        return Table.from_rows(columns, [row for _, row in rows], names=3)

    def __str__(self) -> str:
        pairs, title = self.overtaking(), title_of(self.metrics[0])
        parts = [*map(_describe_panel, self.panels), "", self.table().to_text(), "", _LEGEND, ""]
        if len(pairs):
            parts += [
                f"Stronger checkpoints with a lower sparse {title} (full and sparse value of each,",
                f"and the gap of the full ones): the widest of {len(pairs):,}",
                "",
                pairs.in_order(range(min(len(pairs), LISTED))).to_text(),
            ]
        else:
            parts.append(f"No stronger checkpoint of another model has a lower sparse {title}.")
        return "\n".join(parts)


_LEGEND = """\
range  highest minus lowest sparse value
slope  slope of sparse against full values in the upper half of the full values,
       divided by that in the lower half: 1 means no degradation, 0 is flat
pairs  pairs of checkpoints, of different models, that tie on neither side
wrong  of these, those that the sparse values order differently from the full
       ones, and their share"""


def _list_overtaking(panel: Panel, metric: str) -> Iterator[tuple[float, tuple[Cell, ...]]]:
    """Yield the gap and a row for each misordered pair: panel, checkpoints, values, gap."""
    full, sparse, curve = panel.points(metric)
    steps = np.concatenate([each.steps for each in panel.curves])
    labels = [f"{panel.curves[c].model} {s}" for c, s in zip(curve, steps, strict=True)]
    for weak, strong in panel.overtaking(metric).tolist():
        gap = float(full[strong] - full[weak])
        values = (full[strong], full[weak], sparse[strong], sparse[weak], gap)
        yield gap, (panel.title(), labels[strong], labels[weak], *map(float, values))


def _describe_panel(panel: Panel) -> str:
    """Return a paragraph on the size of a panel: checkpoints, questions and answers."""
    count = sum(len(curve.steps) for curve in panel.curves)
    return (
        f"{panel.title()}: {count:,} checkpoints of {len(panel.curves):,} models, "
        f"{panel.n_questions:,} questions,\n  {panel.full_answers:.4g} true answers each, "
        f"{panel.sparse_answers:.4g} of them in the sparse test"
    )


def read_checkpoints(path: PathName) -> list[RankedCheckpoint]:
    """Read the file that lists checkpoints; skip a first line with the names of columns.

    Raises
    ------
    FileError
        The file is missing or empty, or a line has too few columns, a step that is not a whole
        number, or a density outside (0, 1].
    """
    rows, folder = [], Path(path).parent
    for number, raw in lines_of(path):
        cells = text_of(raw).split("\t")
        if number == 1 and tuple(cells) in (HEADER, HEADER[:5]):
            continue
        hint = f"every line must be {COLUMNS}, and may end with <TAB>removal"
        if len(cells) not in (5, 6) or not all(cell.strip() for cell in cells):
            problem = f"{len(cells)} columns, or an empty one: {text_of(raw)[:120]!r}"
            raise FileError(path, number, found=problem, hint=hint)
        model, step, density, full, sparse, *removal = cells
        rows.append(
            RankedCheckpoint(
                model,
                _parse_step(path, number, step),
                _parse_density(path, number, density),
                folder / full,
                folder / sparse,
                removal[0] if removal else INDEPENDENT,
                f"{path}:{number}",
            )
        )
    if not rows:
        raise FileError(path, found="no checkpoints", hint=f"write lines of {COLUMNS}")
    return rows


def _parse_step(path: PathName, line: int, text: str) -> int:
    """Return a step as a whole number; FileError for other texts."""
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= LARGEST_STEP):
        hint = f"write a whole number from 0 to {LARGEST_STEP}"
        raise FileError(path, line, found=f"step {text[:40]!r}", hint=hint)
    return int(text)


def _parse_density(path: PathName, line: int, text: str) -> float:
    """Return a density as a number above 0 and up to 1; FileError for other texts."""
    try:
        density = float(text)
    except ValueError:
        density = math.nan
    if not 0 < density <= 1:
        hint = "write the share of all facts that the graph records, above 0 and up to 1"
        raise FileError(path, line, found=f"density {text[:40]!r}", hint=hint)
    return density


def compare_checkpoints(
    checkpoints: Sequence[RankedCheckpoint], metrics: Sequence[str] = METRICS
) -> CheckpointStudy:
    """Compare sparse with full values of the checkpoints of models.

    Checkpoints with the same density and removal are of one world, and one panel. Only questions
    with a sparse answer count. The ranks are those of questions for a head or a tail.

    Parameters
    ----------
    checkpoints : sequence of RankedCheckpoint
        At least two of every density and removal.
    metrics : sequence of str
        ``mrr``, ``hits@K``, ``log_mrr``, ``p_mrr@P``, ``ndcg@20``, ``map@20``.

    Raises
    ------
    InputError
        Checkpoints of one density and removal rank different questions or answers, a sparse answer
        is not an answer of the full test set, or a checkpoint is repeated.
    UsageError
        No metric, an unknown one, or a single checkpoint of a density and removal.
    """
    if not metrics:
        raise UsageError(f"{argument('metrics', ())} is empty; give at least one")
    for metric in metrics:
        if metric not in TREC:
            gain(metric)  # refuses metrics without a formula
    worlds: dict[tuple[float, str], list[RankedCheckpoint]] = {}
    for index, row in enumerate(checkpoints, start=1):
        named = row._replace(name=row.name or f"checkpoint {index}")
        check("density", row.density, 0 < row.density <= 1, "a number above 0 and up to 1")
        worlds.setdefault((row.density, row.removal), []).append(named)
    if not worlds:
        raise UsageError("there are no checkpoints; give at least two")
    for rows in worlds.values():
        _check_rows(rows)
    return CheckpointStudy(tuple(metrics), tuple(_build_panel(r, metrics) for r in worlds.values()))


def _check_rows(rows: Sequence[RankedCheckpoint]) -> None:
    """Refuse a world with a single checkpoint, or with a repeated one."""
    if len(rows) < 2:
        first = rows[0]
        raise UsageError(
            f"{first.name} is the only checkpoint of density {first.density:g}, {first.removal}; "
            "give at least two, to compare"
        )
    seen: dict[tuple[str, int], str] = {}
    for row in rows:
        before = seen.setdefault((row.model, row.step), row.name)
        if before != row.name:
            raise InputError(
                f"{before} and {row.name} are the same step {row.step} of {row.model!r} at density "
                f"{row.density:g}; give each checkpoint once"
            )


@dataclass(frozen=True, eq=False)
class _World:
    """The questions that all checkpoints of a panel have in common.

    - name: The checkpoint that the others are compared with.
    - keys: Identity of the instances of the full and of the sparse ranks; see `_keys`.
    - graphs: Hash of the graph of the full and of the sparse ranks, or None.
    """

    name: str
    keys: tuple[Int64, Int64]
    graphs: tuple[str | None, str | None]


def _build_panel(rows: Sequence[RankedCheckpoint], metrics: Sequence[str]) -> Panel:
    """Measure all checkpoints of a world, one after another; only one is in memory at a time."""
    world: _World | None = None
    points: dict[str, list[tuple[int, float, list[float], list[float]]]] = {}
    for row in rows:
        full, sparse = _load(row, row.full, "full"), _load(row, row.sparse, "sparse")
        if world is None:
            world = _World(row.name, (_keys(full), _keys(sparse)), (_graph(full), _graph(sparse)))
            kept, missing = _match(row, *world.keys)
            sizes = full, sparse
        else:
            _check_world(row, full, sparse, world)
        counted = full.subset(np.flatnonzero(kept))
        values = metric_values(counted, metrics), metric_values(sparse, metrics)
        points.setdefault(row.model, []).append((row.step, correlate(missing, counted), *values))
    counts = np.unique(sizes[0].question[kept], return_counts=True)[1]
    n_entities = count_candidates(sizes[0], counts.astype(np.float64))
    sparsity = float(missing.mean())
    return Panel(
        rows[0].density,
        rows[0].removal,
        sparsity,
        len(counts),
        float(counts.mean()),
        len(sizes[1]) / len(counts),
        tuple(_build_curve(model, several, metrics) for model, several in points.items()),
        _expect(counts, sparsity, n_entities, metrics),
    )


def _load(row: RankedCheckpoint, ranks: Ranks | PathName, kind: str) -> Ranks:
    """Load ranks; InputError if they are empty, or if a question asks for neither head nor tail."""
    with about(row.name):
        loaded = ranks if isinstance(ranks, Ranks) else Ranks.load(ranks)
        if not len(loaded):
            raise InputError(f"its {kind} ranks contain no questions; rank a split with triples")
        if not loaded.of_graph or not np.isin(loaded.side, (0, 1)).all():
            raise InputError(
                f"its {kind} ranks ask for something else than a head or a tail; rank with the "
                "questions for heads or tails of a graph"
            )
    return loaded


def _keys(ranks: Ranks) -> Int64:
    """Return side, relation, given entity, answer and candidates of each instance, int64 (5, n)."""
    columns = (ranks.side, ranks.relation, ranks.given, ranks.answer, ranks.candidates)
    return np.stack([np.asarray(column, np.int64) for column in columns])


def _graph(ranks: Ranks) -> str | None:
    """Return the hash of the ranks' graph; None if it is unknown."""
    return ranks.provenance.graph_hash


def _match(row: RankedCheckpoint, full: Int64, sparse: Int64) -> tuple[Bools, Bools]:
    """Match the answers of both test sets by question and answer.

    Returns the full instances whose question has a sparse answer, (n,), and among these the missing
    ones, (kept,). InputError for a sparse answer that the full ranks lack.
    """
    both = np.concatenate([full[:4], sparse[:4]], axis=1)
    answer, question = (
        np.unique(part, axis=1, return_inverse=True)[1].ravel() for part in (both, both[:3])
    )
    n = full.shape[1]
    lacking = ~np.isin(answer[n:], answer[:n])
    if lacking.any():
        raise InputError(
            f"{row.name}: {int(lacking.sum()):,} of {len(lacking):,} sparse test answers are not "
            "in the full ranks; the full test set must contain the sparse one of the same world"
        )
    kept = np.isin(question[:n], question[n:])
    return kept, ~np.isin(answer[:n], answer[n:])[kept]


def _check_world(row: RankedCheckpoint, full: Ranks, sparse: Ranks, world: _World) -> None:
    """Raise InputError if a checkpoint's questions, answers or candidates are not the world's."""
    for kind, ranks, keys, graph in zip(
        ("full", "sparse"), (full, sparse), world.keys, world.graphs, strict=True
    ):
        other_graph = None not in (graph, _graph(ranks)) and graph != _graph(ranks)
        if other_graph or not np.array_equal(_keys(ranks), keys):
            raise InputError(
                f"{world.name} and {row.name} are of different worlds: the questions, answers or "
                f"candidates of their {kind} ranks differ ({keys.shape[1]:,} and {len(ranks):,} "
                "answers); give another density or removal to checkpoints of another world"
            )


def _build_curve(
    model: str,
    points: Sequence[tuple[int, float, list[float], list[float]]],
    metrics: Sequence[str],
) -> Curve:
    """Build the curve of a model from its checkpoints, by step."""
    steps, rho, full, sparse = zip(*sorted(points, key=lambda point: point[0]), strict=True)
    values = np.array([full, sparse]).transpose(2, 0, 1)
    curves = dict(zip(metrics, values, strict=True))
    return Curve(model, np.array(steps, np.int64), curves, np.array(rho, np.float64))


def _expect(
    answers: Int64, sparsity: float, n_entities: int, metrics: Sequence[str]
) -> dict[str, Float64]:
    """Return full and sparse expectations of the paper's model, where it applies."""
    if int(answers.max()) >= n_entities - 1 or not sparsity < 1:
        return {}
    count, times = np.unique(answers, return_counts=True)
    worlds = [Mixture(beta, count, times / times.sum(), n_entities) for beta in (0.0, sparsity)]
    return {
        metric: np.array([world.curve(metric)[1] for world in worlds])
        for metric in metrics
        if metric not in TREC
    }
