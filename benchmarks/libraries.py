"""Compare the evaluators of PyTorch Geometric, TorchKGE and OGB with kgtrec on their models.

    pip install torch torch-geometric torchkge ogb pandas
    python benchmarks/libraries.py [--triples 500] [--rounds 3] [--json FILE]

Each evaluation runs in its own process, theirs and ours in turn. It reports CPU seconds of the
evaluation alone, the rise of the process's peak memory, lines of user code, and the numbers of
both. The graph has FB15k-237's sizes. The models are untrained, because this does not change the
cost. (For PyKEEN, see E1 of `run.py`.)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ENTITIES, RELATIONS, TRAIN, DIM = 14_541, 237, 272_115, 64
NEGATIVES = 1000

# User code beyond the given model and data: (setup, theirs, ours). Each sets `numbers`, which are
# compared.
CODE = {
    "PyG, tails, raw": (
        "pyg",
        """
mean, mrr, hits = model.test(*test, batch_size=20000, k=10, log=False)
""",
        """
from kgtrec.integrations.pyg import evaluate
result = evaluate(model, test, known=None, sides="tail")
mean, mrr, hits = (result[f"tail.micro.{name}"] for name in ("mr", "mrr", "hits@10"))
""",
    ),
    "TorchKGE, both sides, filtered": (
        "torchkge",
        """
from torchkge.evaluation import LinkPredictionEvaluator
theirs = LinkPredictionEvaluator(model, kg)
theirs.evaluate(b_size=64, verbose=False)
mean, mrr, hits = (value[1] for value in (theirs.mean_rank(), theirs.mrr(), theirs.hit_at_k(10)))
""",
        """
from kgtrec.integrations.torchkge import evaluate
result = evaluate(model, kg, known=[])
mean, mrr, hits = (result[f"both.pessimistic.micro.{name}"] for name in ("mr", "mrr", "hits@10"))
""",
    ),
    "OGB, 1,000 negatives": (
        "ogb",
        """
from ogb.linkproppred import Evaluator
lists = Evaluator(name="ogbl-wikikg2").eval(predictions)
mean, mrr, hits = 0, lists["mrr_list"].mean().item(), lists["hits@10_list"].mean().item()
""",
        """
from kgtrec.integrations.ogb import evaluate
result = evaluate(predictions)
mean, mrr, hits = 0, result["tail.micro.mrr"], result["tail.micro.hits@10"]
""",
    ),
}


def scene(name: str, triples: int) -> dict[str, Any]:
    """The model and data of a library, before any evaluation."""
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, (ENTITIES, RELATIONS, ENTITIES), (triples, 3))
    if name == "pyg":
        from torch_geometric.nn.kge import DistMult

        model = DistMult(ENTITIES, RELATIONS, DIM).eval()
        return {"model": model, "test": tuple(torch.from_numpy(rows.T.copy()))}
    if name == "ogb":
        return {
            "predictions": {
                "y_pred_pos": torch.from_numpy(rng.normal(size=40 * triples).astype("f4")),
                "y_pred_neg": torch.from_numpy(
                    rng.normal(size=(40 * triples, NEGATIVES)).astype("f4")
                ),
            }
        }
    import pandas
    from torchkge.data_structures import KnowledgeGraph
    from torchkge.models import DistMultModel

    ids = {"ent2ix": {e: e for e in range(ENTITIES)}, "rel2ix": {r: r for r in range(RELATIONS)}}
    frame = pandas.DataFrame(rows, columns=["from", "rel", "to"])
    return {"model": DistMultModel(DIM, ENTITIES, RELATIONS), "kg": KnowledgeGraph(frame, **ids)}


def measure(name: str, ours: bool, triples: int) -> dict[str, Any]:
    """One evaluation, in this process."""
    warnings.simplefilter("ignore")
    setup, *codes = CODE[name]
    space = scene(setup, triples)
    if ours:
        import kgtrec

        _ = kgtrec.evaluate, kgtrec.rank  # imports are not measured
    code = compile(codes[ours], name, "exec")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    exec(code, space)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    numbers = [float(space[key]) for key in ("mean", "mrr", "hits")]
    numbers[0] += name.startswith("PyG") and not ours  # its ranks begin at 0
    return {"seconds": seconds, "megabytes": (peak - before) / 1024, "numbers": numbers}


def lines(code: str) -> int:
    """Lines of user code, without the one that only sets `numbers`."""
    return len(code.strip().splitlines()) - ("result =" in code or "lists =" in code)


def compared(name: str, triples: int, rounds: int) -> dict[str, Any]:
    """Run theirs and ours in turn; return medians."""
    runs: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for _ in range(rounds):
        for ours, done in runs.items():
            command = [sys.executable, __file__, "--one", name, str(int(ours)), str(triples)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            done.append(json.loads(out.splitlines()[-1]))
    theirs, ours = (
        {key: median(run[key] for run in runs[who]) for key in ("seconds", "megabytes")}
        for who in (False, True)
    )
    pairs = zip(runs[False][0]["numbers"], runs[True][0]["numbers"], strict=True)
    return {
        "name": name,
        "theirs": theirs | {"lines": lines(CODE[name][1])},
        "ours": ours | {"lines": lines(CODE[name][2])},
        "ratio": theirs["seconds"] / ours["seconds"],
        "difference": max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--triples", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, ours, triples = options.one
        print(json.dumps(measure(name, bool(int(ours)), int(triples))))
        return
    figures = []
    print(f"{'':32}{'theirs':>22}{'ours':>22}{'times':>8}{'lines':>9}{'apart':>9}")
    for name in CODE:
        figures.append(compared(name, options.triples, options.rounds))
        each = figures[-1]
        print(
            f"{name:32}"
            + "".join(
                f"{each[who]['seconds']:12.2f} s{each[who]['megabytes']:5.0f} MB"
                for who in ("theirs", "ours")
            )
            + f"{each['ratio']:9.1f}{each['theirs']['lines']:5} - {each['ours']['lines']}"
            f"{each['difference']:9.0e}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
