"""Memory of graphs like Freebase86m, measured and estimated: ``python benchmarks/large_graphs.py``.

It writes TSV files of graphs with 20, 50 and 100 million triples and with Freebase86m's numbers of
entities and relations. A separate process reads each and makes its questions. The memory is
compared with `Model`, which then gives the memory of all of Freebase86m. Prints Markdown; needs
Linux, 6 GB of memory and 6 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from memory import peak_bytes

Array = npt.NDArray[Any]

SEED = 20_261_122
MILLION, GB = 10**6, 10**9
N_ENTITIES, N_RELATIONS = 86_054_151, 14_824
N_TRIPLES = 338_586_276
SPLITS = {"train": 0.9, "valid": 0.05, "test": 0.05}
LABEL = b"/m/0000000"  # as long as those of Freebase's entities
DIGITS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
CHUNK = 1 << 20
TOLERANCE = 0.10
HEAP = 48 * MILLION  # gaps that the C library keeps from arrays below 32 MB


@dataclass(frozen=True)
class Model:
    """Memory at each step, in bytes, without the interpreter.

    ``questions``: of both sides of one split, with one answer each and hardly any known besides, as
    most questions of a graph of so many entities have.
    """

    triples: int
    largest_split: int
    entities: int
    questions: int

    @property
    def graph(self) -> int:
        """Three int32 per triple; per entity a label and its start (int64)."""
        return 12 * self.triples + (len(LABEL) + 8) * self.entities

    @property
    def reading(self) -> int:
        """The largest of three moments of `kgtrec.read_graph`."""
        rows, records = 12 * self.triples, (len(LABEL) + 8) * self.entities
        slots = 8 << int(np.ceil(np.log2(self.entities / 0.75)))
        # Labels are sorted by their first eight bytes, each with a pointer. Then they are written
        # in this order, and each gets its place (int32).
        in_order = records + 16 * self.entities + (len(LABEL) + 8 + 4) * self.entities
        # Hashes (int64) of a split find duplicate triples.
        distinct = records + 8 * self.largest_split
        return rows + max(records + slots, in_order, distinct)

    @property
    def question_bytes(self) -> int:
        """`Graph.questions`: side, what is given (8), the offsets of three lists (24), the answer
        (4, and 4 among the known), its question, its triple and the reverse (12)."""
        return 53 * self.questions

    @property
    def asking(self) -> int:
        """The larger of two moments: the questions of one side are made, with marks of the entities
        that it names; or the sides are joined, list by list."""
        return max(48 * self.questions + self.entities, 56 * self.questions)


def write_graph(folder: Path, n: int) -> None:
    """Write TSV files; all entities and all relations are equally likely."""
    rng = np.random.default_rng(SEED)
    names = np.array([b"/people/person/relation_%05d" % i for i in range(N_RELATIONS)])
    relations = names.view(np.uint8).reshape(N_RELATIONS, -1)
    for split, share in SPLITS.items():
        with open(folder / f"{split}.txt", "wb") as file:
            for start in range(0, round(share * n), CHUNK):
                size = min(CHUNK, round(share * n) - start)
                head, tail = rng.integers(0, N_ENTITIES, (2, size))
                relation = relations[rng.integers(0, N_RELATIONS, size)]
                tab, end = (np.full((size, 1), ord(text), np.uint8) for text in "\t\n")
                columns = [_labels(head), tab, relation, tab, _labels(tail), end]
                np.concatenate(columns, axis=1).tofile(file)


def _labels(ids: Array) -> Array:
    """Characters of labels, shape (n, 10)."""
    text = np.tile(np.frombuffer(LABEL, np.uint8), (len(ids), 1))
    for place in range(6):
        text[:, -1 - place] = DIGITS[ids >> (5 * place) & 31]
    return text


def measure(folder: Path) -> dict[str, Any]:
    """The sizes of a graph, and the memory to read it and make its questions, in bytes."""
    import pyarrow  # noqa: F401 - imports are not part of a graph's memory

    import kgtrec

    before = _mark()
    graph = kgtrec.read_graph(folder, progress=False)
    reading = peak_bytes() - before
    before = _mark()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        questions = graph.questions("test")
    sizes = [len(rows) for rows in graph.splits.values()]
    model = Model(sum(sizes), max(sizes), graph.n_entities, len(questions))
    return {"model": asdict(model), "reading": reading, "asking": peak_bytes() - before}


def _mark() -> int:
    """Reset the high-water mark; return the current memory."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--millions",
        type=float,
        nargs="+",
        default=[20, 50, 100],
        metavar="N",
        help="triples of the graphs; default 20 50 100",
    )
    parser.add_argument("--case", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case)))
        return 0
    print("| million triples | million entities | step | GB | on paper | ratio |")
    print("|---|---|---|---|---|---|")
    confirmed = [_compare(millions) for millions in options.millions]
    test = round(SPLITS["test"] * N_TRIPLES)
    whole = Model(N_TRIPLES, round(SPLITS["train"] * N_TRIPLES), N_ENTITIES, 2 * test)
    for step in ("reading", "asking"):
        _print_row(whole, step, None)
    sizes = (whole.graph / GB, whole.question_bytes / GB)
    print(f"\nKept: a graph of {sizes[0]:.2f} GB, questions of {sizes[1]:.2f} GB.")
    return 0 if all(confirmed) else 1


def _compare(millions: float) -> bool:
    """Print the rows of a graph; return whether its memory agrees with the model."""
    with tempfile.TemporaryDirectory() as folder:
        write_graph(Path(folder), round(millions * MILLION))
        command = [sys.executable, __file__, "--case", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    case = json.loads(done.stdout)
    model = Model(**case["model"])
    confirmed = True
    for step in ("reading", "asking"):
        _print_row(model, step, case[step])
        modelled = getattr(model, step)
        confirmed &= abs(case[step] - modelled) <= TOLERANCE * modelled + HEAP
    return confirmed


def _print_row(model: Model, step: str, measured: int | None) -> None:
    modelled = getattr(model, step)
    cells = [f"{model.triples / MILLION:,.0f}", f"{model.entities / MILLION:.1f}", step]
    cells += ["" if measured is None else f"{measured / GB:.2f}", f"{modelled / GB:.2f}"]
    cells += ["" if measured is None else f"{measured / modelled:.2f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
