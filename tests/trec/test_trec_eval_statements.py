"""What trec_eval's manual shows, call by call, and its version 9 against pytrec_eval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.trec.measures.names import resolve

QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 a 0\n2 0 d 1\n3 0 e 1\n"
RUN = "".join(
    f"{q} Q0 {d} 0 {s} man\n"
    for q, d, s in [(1, "b", 4), (1, "a", 3), (1, "u", 2), (1, "c", 1), (2, "d", 2), (2, "a", 1)]
)


def printed(folder: Path, *arguments: str) -> dict[tuple[str, str], str]:
    (folder / "qrels").write_text(QRELS)
    (folder / "run").write_text(RUN)
    done = CliRunner().invoke(
        cli, ["eval", *arguments, str(folder / "qrels"), str(folder / "run")],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {(name.strip(), query): value for name, query, value in lines}


@pytest.mark.parametrize(
    ("call", "due"),
    [
        # -m measure, with parameters behind the first dot.
        ("-m P.5", {("P_5", "all"): "0.3000"}),
        ("-m P.5,10", {("P_5", "all"): "0.3000", ("P_10", "all"): "0.1500"}),
        ("-m P.10,5", {("P_5", "all"): "0.3000", ("P_10", "all"): "0.1500"}),
        ("-m map -m bpref", {("map", "all"): "0.7500", ("bpref", "all"): "0.5000"}),
        ("-m ndcg.1=3.5,2=9.0", {("ndcg_1=3.5,2=9.0", "all"): "0.7714"}),
        ("-m relstring.4 -q", {("relstring_4", "1"): "'01-2'", ("relstring_4", "2"): "'10'"}),
        ("-m set_F.0.5", {("set_F_0.5", "all"): "0.6000"}),
        ("-m utility.1,-1,0,0", {("utility_1,-1,0,0", "all"): "0.0000"}),
        ("-m utility.1,-1,0,.1 -N 10", {("utility_1,-1,0,.1", "all"): "0.7000"}),
        ("-m success.1", {("success_1", "all"): "0.5000"}),
        ("-m iprec_at_recall.0.5", {("iprec_at_recall_0.50", "all"): "0.7500"}),
        ("-m Rprec_mult.0.5,1", {("Rprec_mult_0.50", "all"): "0.5000",
                                 ("Rprec_mult_1.00", "all"): "0.7500"}),
        # Options.
        ("-m num_q -c", {("num_q", "all"): "3"}),
        ("-c -m map", {("map", "all"): "0.5000"}),
        ("-n -q -m map", {("map", "1"): "0.5000", ("map", "2"): "1.0000"}),
        ("-l 2 -m num_rel", {("num_rel", "all"): "1"}),
        ("-l2 -m recip_rank", {("recip_rank", "all"): "0.1250"}),
        ("-M 2 -m num_ret", {("num_ret", "all"): "4"}),
        ("-J -m num_ret", {("num_ret", "all"): "5"}),
        ("-qcn -m num_ret", {("num_ret", "1"): "4", ("num_ret", "2"): "2", ("num_ret", "3"): "0"}),
    ],
)  # fmt: skip
def test_examples(call: str, due: dict[tuple[str, str], str], tmp_path: Path) -> None:
    found = printed(tmp_path, *call.split())
    assert {key: found.get(key) for key in due} == due
    if "-n" in call.split() or "-qcn" in call:
        assert found == due


def test_version_9_is_pytrec_eval_in_every_shared_measure() -> None:
    """All 34 families, 282 values: version 10 differs in recall points, and only there."""
    rng = np.random.default_rng(4)
    qrels = {
        f"q{i}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.choice(40, 20, replace=False)}
        for i in range(3)
    }
    for one in qrels.values():
        one["d0"] = 1
    run = {
        q: {f"d{d}": float(rng.integers(0, 15)) for d in rng.choice(40, 25, replace=False)}
        for q in qrels
    }
    families = {*pytrec_eval.supported_nicknames["all_trec"]} - {"runid", "relstring"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, families).evaluate(run)
    names = [column.name for column in resolve(families)]
    nine, ten = (trec.evaluate(qrels, run, families, compat=c) for c in (9, 10))
    compared, elsewhere = 0, set()
    for q in qrels:
        for name in names:
            if name not in theirs[q] or name == "num_q":
                continue
            compared += 1
            assert nine[q][name] == pytest.approx(theirs[q][name], abs=1e-15), name
            if abs(ten[q][name] - theirs[q][name]) > 1e-15:
                elsewhere.add(name.partition("_0")[0].partition("_1.")[0])
    assert compared >= 270
    assert elsewhere <= {"iprec_at_recall", "11pt_avg"}
    assert elsewhere
