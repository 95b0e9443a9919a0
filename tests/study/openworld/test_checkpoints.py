"""Sparse against full values of checkpoints: values, misordered pairs, refusals, figures."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import plots
from kgtrec.cli.openworld import command
from kgtrec.errors import InputError, UsageError
from kgtrec.study import openworld as ow
from kgtrec.study.openworld.results import Curve, Panel

pytestmark = pytest.mark.filterwarnings("ignore:.*no triple names:kgtrec.errors.GraphWarning")


def run(*arguments: object) -> str:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def triples(path: Path) -> set[tuple[str, str, str]]:
    return {tuple(line.split("\t")) for line in path.read_text().splitlines()}


GAINS = {
    "mrr": lambda rank: 1 / rank,
    "hits@10": lambda rank: float(rank <= 10),
    "log_mrr": lambda rank: 1 / math.log2(rank + 1),
    "p_mrr@0.5": lambda rank: rank**-0.5,
}


class World:
    """A family tree with hidden facts, and the scores of models that know the truth with noise."""

    def __init__(self, folder: Path, people: int, density: float, n_questions: int) -> None:
        self.folder, self.density = folder, density
        run("--family-tree", folder / "family", "--families", 2, "--people", people)
        hide = ("--hide", folder / "family", "--n-questions", n_questions)
        run(*hide, "--density", density, "-o", folder / "worlds")
        self.world = folder / "worlds" / f"d{density:g}"
        self.closed = set()
        for name in ("train", "valid", "test"):
            self.closed |= triples(folder / "family" / f"{name}.txt")
        self.graphs = {name: kgtrec.read_graph(self.world / name) for name in ("full", "sparse")}
        self.values: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}

    def score(self, h: str, r: str, model: str, step: int) -> dict[str, float]:
        """Score every entity as the tail of a question."""
        seed = [ord(letter) for letter in f"{h} {r} {model}"]
        noise = np.random.default_rng(seed).random(len(self.graphs["full"].entities)).tolist()
        power = step / 10 if model == "A" else step / 10 + 0.05
        return {
            t: power * ((h, r, t) in self.closed) + value
            for t, value in zip(self.graphs["full"].entities, noise, strict=True)
        }

    def rank(self, model: str, step: int, *, plainly: bool = True) -> tuple[Path, Path]:
        """Rank a model on both graphs; compute its values in plain Python, too."""
        paths = []
        for name, graph in self.graphs.items():
            questions = graph.questions(sides="tail")
            pairs = [
                (graph.entities[h], graph.relations[r])
                for h, r in zip(questions.entity, questions.relation, strict=True)
            ]
            scores = [list(self.score(h, r, model, step).values()) for h, r in pairs]
            paths.append(self.folder / f"{model}{step}.{name}.parquet")
            kgtrec.rank(np.array(scores), questions, progress=False)[0].save(paths[-1])
        if plainly:
            sides = [self.plain_ranks(name, model, step) for name in self.graphs]
            self.values[model, step] = {
                metric: tuple(
                    sum(sum(map(gain, ranks)) / len(ranks) for ranks in side) / len(side)
                    for side in sides
                )
                for metric, gain in GAINS.items()
            }
        return paths[0], paths[1]

    def plain_ranks(self, name: str, model: str, step: int) -> list[list[int]]:
        """Ranks of the answers of every question with a sparse answer, by comparing scores."""
        known = triples(self.world / "full/train.txt") | triples(self.world / "full/valid.txt")
        test = triples(self.world / name / "test.txt")
        of_questions = []
        for h, r in sorted({fact[:2] for fact in triples(self.world / "sparse/test.txt")}):
            scores = self.score(h, r, model, step)
            false = [score for t, score in scores.items() if (h, r, t) not in known | test]
            answers = [t for x, y, t in test if (x, y) == (h, r)]
            of_questions.append([1 + sum(s > scores[t] for s in false) for t in answers])
        return of_questions


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    made = World(tmp_path_factory.mktemp("checkpoints"), 60, 0.7, 12)
    rows = []
    for model, steps in (("A", (1, 4, 7, 10)), ("B", (2, 4, 6, 9))):
        for step in steps:
            full, sparse = made.rank(model, step)
            rows.append(f"{model}\t{step}\t0.7\t{full.name}\t{sparse.name}\n")
    (made.folder / "list.tsv").write_text("".join(rows))
    return made


def misordered(points: list[tuple[str, float, float]]) -> tuple[int, list]:
    """Count the pairs of different models without a tie, and list the misordered ones."""
    pairs = [(a, b) for a, b in combinations(points, 2) if a[0][0] != b[0][0]]
    pairs = [(a, b) for a, b in pairs if a[1] != b[1] and a[2] != b[2]]
    return len(pairs), [(a, b) for a, b in pairs if (a[1] < b[1]) != (a[2] < b[2])]


def test_values_and_pairs_are_those_of_plain_loops(world):
    study = ow.compare_checkpoints(ow.read_checkpoints(world.folder / "list.tsv"))
    (panel,) = study.panels
    for metric in GAINS:
        for curve in panel.curves:
            for step, *values in zip(curve.steps, *curve.values[metric], strict=True):
                expected = world.values[curve.model, int(step)][metric]
                assert values == pytest.approx(expected, abs=1e-12)
        points = [(f"{m} {s}", *by[metric]) for (m, s), by in world.values.items()]
        count, wrong = misordered(points)
        assert panel.count_pairs(metric) == count
        rows = study.overtaking(metric).rows
        names = {(strong, weak) for _, strong, weak, *_ in rows}
        assert names == {(a[0], b[0]) if a[1] > b[1] else (b[0], a[0]) for a, b in wrong}
        gaps = [row[-1] for row in rows]
        assert gaps == sorted(gaps, reverse=True)
        assert gaps == pytest.approx([row[3] - row[4] for row in rows], abs=1e-15)
        assert all(row[3] > row[4] and row[5] < row[6] for row in rows)
    full, sparse = (triples(world.world / name / "test.txt") for name in ("full", "sparse"))
    assert panel.sparsity == pytest.approx(1 - len(sparse) / len(full))
    assert panel.n_questions == 12
    assert panel.full_answers == pytest.approx(len(full) / 12)


def test_questions_without_a_sparse_answer_do_not_count(world):
    rows = []
    for row in ow.read_checkpoints(world.folder / "list.tsv")[:2]:
        full, sparse = kgtrec.Ranks.load(row.full), kgtrec.Ranks.load(row.sparse)
        few = sparse.subset(np.flatnonzero(sparse.question < 5))
        rows.append(row._replace(full=full, sparse=few))
    (panel,) = ow.compare_checkpoints(rows, ["mrr"]).panels
    assert panel.n_questions == 5
    asked = set(zip(few.given.tolist(), few.relation.tolist(), strict=True))
    by_question: dict[tuple[int, int], list[float]] = {}
    for h, r, rank in zip(full.given.tolist(), full.relation.tolist(), full.rank(), strict=True):
        by_question.setdefault((h, r), []).append(1 / rank)
    means = [sum(gains) / len(gains) for key, gains in by_question.items() if key in asked]
    assert panel.curves[0].values["mrr"][0][1] == pytest.approx(sum(means) / 5)


def test_the_command_prints_tables_and_draws(world, tmp_path):
    path = world.folder / "list.tsv"
    figures = ("--plot", tmp_path / "f.svg", "--plot-pairs", tmp_path / "g.svg")
    text = run("--checkpoints", path, *figures)
    assert "d=70% independent: 8 checkpoints of 2 models, 12 questions" in text
    assert max(map(len, text.splitlines())) <= 80
    assert (tmp_path / "f.svg").stat().st_size > 1000 < (tmp_path / "g.svg").stat().st_size
    rows = list(csv.DictReader(io.StringIO(run("--checkpoints", path, "--format", "csv"))))
    assert len(rows) == 8
    assert float(rows[0]["full.mrr"]) == pytest.approx(world.values["A", 1]["mrr"][0])
    data = json.loads(run("--checkpoints", path, "--format", "json", "-m", "hits@10"))
    assert list(data["overtaking"]) == ["hits@10"]
    assert len(data["checkpoints"]) == 8


def panel_of(points: list[tuple[int, float, float]]) -> Panel:
    curves = []
    for model in sorted({point[0] for point in points}):
        full, sparse = zip(*(point[1:] for point in points if point[0] == model), strict=True)
        steps = np.arange(len(full))
        curves.append(Curve(str(model), steps, {"mrr": np.array([full, sparse])}, steps + 0.0))
    return Panel(0.75, "independent", 0.5, 9, 2.0, 1.0, tuple(curves), {})


VALUES = st.integers(0, 4).map(lambda value: value / 4)


@given(st.lists(st.tuples(st.integers(0, 2), VALUES, VALUES), min_size=2, max_size=9))
def test_misordered_pairs_of_any_points(points):
    points.sort(key=lambda point: point[0])
    panel = panel_of(points)
    count, wrong = misordered([(str(m), full, sparse) for m, full, sparse in points])
    assert panel.count_pairs("mrr") == count
    assert len(panel.overtaking("mrr")) == len(wrong)
    for weak, strong in panel.overtaking("mrr").tolist():
        assert points[weak][1] < points[strong][1]
        assert points[weak][2] > points[strong][2]
        assert points[weak][0] != points[strong][0]
    share = panel.inconsistency("mrr")
    assert share == len(wrong) / count if count else math.isnan(share)


def test_figure_4_shows_the_two_models_and_who_overtakes():
    # Model 2 overtakes M, the second checkpoint of model 1, twice; model 0 misorders one pair.
    points = [(0, 0.1, 0.11), (0, 0.2, 0.31), (1, 0.3, 0.3), (1, 0.4, 0.6)]
    points += [(2, 0.5, 0.4), (2, 0.6, 0.5), (2, 0.9, 0.9)]
    (axes,) = plots.overtaking(panel_of(points)).axes
    lines = {line.get_label(): np.column_stack(line.get_data()) for line in axes.get_lines()}
    assert set(lines) == {"1", "2", "M", "stronger than M, lower sparse value"}
    assert lines["M"].tolist() == [[0.4, 0.6]]
    red = lines["stronger than M, lower sparse value"]
    assert red.tolist() == [[0.5, 0.4], [0.6, 0.5]]
    (axes,) = plots.overtaking(panel_of(points[:1] + points[-1:])).axes
    assert len(axes.get_lines()) == 2
    with pytest.raises(UsageError, match="no panels"):
        plots.overtaking([])


def test_checkpoints_of_different_worlds_are_refused(world, tmp_path):
    rows = ow.read_checkpoints(world.folder / "list.tsv")
    full, sparse = (kgtrec.Ranks.load(path) for path in (rows[0].full, rows[0].sparse))
    fewer = full.subset(np.arange(len(full) - 1))
    swapped = ow.RankedCheckpoint("C", 1, 0.5, sparse, full)
    with pytest.raises(InputError, match=r"list.tsv:1 and checkpoint 2 are of different worlds"):
        ow.compare_checkpoints([rows[0], ow.RankedCheckpoint("C", 1, 0.7, fewer, sparse)])
    with pytest.raises(InputError, match=r"of different worlds.* sparse ranks differ"):
        ow.compare_checkpoints([rows[0], ow.RankedCheckpoint("C", 1, 0.7, full, full)])
    with pytest.raises(InputError, match="sparse test answers are not in the full ranks"):
        ow.compare_checkpoints([swapped, swapped._replace(step=2)])
    with pytest.raises(InputError, match="are the same step 1 of 'A'"):
        ow.compare_checkpoints([rows[0], rows[0]._replace(name="again")])
    with pytest.raises(UsageError, match="checkpoint 1 is the only checkpoint"):
        ow.compare_checkpoints([rows[0]._replace(name="")])
    # Another density is another panel, whose questions may differ.
    others = [row._replace(density=0.8, full=row.sparse) for row in rows]
    assert len(ow.compare_checkpoints([*rows, *others], ["mrr"]).panels) == 2


def test_curves_are_in_the_order_of_steps(world):
    rows = ow.read_checkpoints(world.folder / "list.tsv")
    plain, turned = (ow.compare_checkpoints(each, ["mrr"]).panels[0] for each in (rows, rows[::-1]))
    for curve in plain.curves:
        (same,) = (other for other in turned.curves if other.model == curve.model)
        assert same.steps.tolist() == curve.steps.tolist() == sorted(curve.steps)
        assert same.values["mrr"].tolist() == curve.values["mrr"].tolist()


def test_removals_of_a_density_are_separate_panels(world):
    rows = ow.read_checkpoints(world.folder / "list.tsv")
    others = [row._replace(removal="correlated") for row in rows[:3]]
    panels = ow.compare_checkpoints([*rows, *others], ["mrr"]).panels
    assert [panel.removal for panel in panels] == ["independent", "correlated"]
    assert [sum(len(c.steps) for c in panel.curves) for panel in panels] == [len(rows), 3]


def test_ranks_of_another_graph_are_refused(world):
    """The questions and answers may be those of the world, but of entities with other names."""
    first, second, *_ = ow.read_checkpoints(world.folder / "list.tsv")
    ranks = kgtrec.Ranks.load(second.full)
    questions = {**ranks.manifest["questions"], "graph_hash": "0" * 16}
    renamed = kgtrec.Ranks(
        ranks.columns(),
        {**ranks.manifest, "questions": questions},
        ranks.relation_labels,
        ranks.entity_labels,
    )
    assert renamed.provenance.graph_hash == "0" * 16
    with pytest.raises(InputError, match="of different worlds"):
        ow.compare_checkpoints([first, second._replace(full=renamed)], ["mrr"])


def test_less_top_heavy_metrics_flatten_less(tmp_path):
    """Sections 6.1 and 6.3, by models that know the truth with noise of their own."""
    world = World(tmp_path, 120, 0.65, 60)
    rows = []
    for model in "AB":
        for step in range(2, 21, 2):
            full, sparse = world.rank(model, step, plainly=False)
            rows.append(ow.RankedCheckpoint(model, step, 0.65, full, sparse))
    (panel,) = ow.compare_checkpoints(rows).panels
    assert panel.flattening("mrr") < panel.flattening("p_mrr@0.5") < 1
    assert panel.flattening("mrr") < panel.flattening("log_mrr")
    assert panel.reach("mrr") < panel.reach("log_mrr")
