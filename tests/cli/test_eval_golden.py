"""``kgtrec eval`` against golden files, which a slow script makes from definitions.

The script, tests/golden/make.py, is compared with pytrec_eval for the measures that it has.
"""

from __future__ import annotations

import random
import shlex
import warnings

import make
import pytest
import slow_measures

from kgtrec.cli import main

CASES = make.cases()


@pytest.mark.parametrize("name", CASES)
def test_output_is_that_of_the_golden_file(
    name: str, monkeypatch: pytest.MonkeyPatch, capfdbinary
) -> None:
    monkeypatch.chdir(make.HERE)
    monkeypatch.setattr("sys.argv", ["kgtrec", "eval", *shlex.split(CASES[name])])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main() replaces it
    with pytest.raises(SystemExit) as end:
        main()
    printed = capfdbinary.readouterr()
    assert end.value.code == 0, printed.err
    expected = (make.HERE / f"{name}.out").read_bytes()
    assert printed.out.splitlines() == expected.splitlines()
    assert printed.out == expected


@pytest.mark.parametrize("name", CASES)
def test_golden_files_are_what_the_script_makes(name: str) -> None:
    assert (make.HERE / f"{name}.out").read_bytes() == make.expected(CASES[name])


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in make.HERE.glob("*.out")} == set(CASES)
    assert len(CASES) >= 30


# -- The script itself -------------------------------------------------------------------------

PARAMETERS = {
    "P": [1, 3, 7], "recall": [1, 3, 7], "ndcg_cut": [1, 3, 7], "map_cut": [1, 3, 7],
    "relative_P": [1, 3, 7], "success": [1, 3, 7], "Rprec_mult": [0.2, 0.5, 1.5],
    "iprec_at_recall": [0.0, 0.3, 0.7, 1.0],
}  # fmt: skip
THEIRS = slow_measures.words(
    "num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank infAP gm_bpref utility 11pt_avg "
    "binG G ndcg ndcg_rel Rndcg set_P set_relative_P set_recall set_map set_F num_nonrel_judged_ret"
)


@pytest.mark.parametrize("level", [1, 2])
def test_the_script_agrees_with_pytrec_eval(level: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    draw = random.Random(7)
    qrels, run, queries = {}, {}, {}
    options = make.Options(["--compat", "9", "-l", str(level)])
    for number in range(300):
        # Levels up to the threshold are among the judgements: trec_eval looks them up unchecked.
        pool = [draw.choice([-1, 0, 0, 1, 2, 3]) for _ in range(draw.randint(1, 9))] + [level]
        listed = [draw.choice([None, *range(len(pool))]) for _ in range(draw.randint(1, 14))]
        places = [at for place, at in enumerate(listed) if at is None or at not in listed[:place]]
        qrels[str(number)] = {f"d{place}": grade for place, grade in enumerate(pool)}
        run[str(number)] = {
            f"x{rank}" if at is None else f"d{at}": float(-rank) for rank, at in enumerate(places)
        }
        ranked = [make.worth(None if at is None else pool[at]) for at in places]
        queries[str(number)] = slow_measures.Query(ranked, pool, options)
    names = {
        *THEIRS,
        *(f"{family}.{','.join(map(str, cuts))}" for family, cuts in PARAMETERS.items()),
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, names, relevance_level=level)
    for query, row in evaluator.evaluate(run).items():
        for family in THEIRS:
            assert slow_measures.PLAIN[family](queries[query]) == pytest.approx(row[family]), family
        for family, cuts in PARAMETERS.items():
            for cut in cuts:
                name = f"{family}_{cut}" if isinstance(cut, int) else f"{family}_{cut:.2f}"
                assert slow_measures.AT[family](queries[query], cut) == pytest.approx(row[name]), (
                    name
                )


def test_a_wrong_definition_would_be_found() -> None:
    """The comparisons above can fail: a list out of order has other values."""
    options = make.Options([])
    right = slow_measures.Query([1, 0, 2], [2, 1, 0, 1], options)
    wrong = slow_measures.Query([0, 1, 2], [2, 1, 0, 1], options)
    differing = {
        family
        for family in THEIRS
        if slow_measures.PLAIN[family](right) != slow_measures.PLAIN[family](wrong)
    }
    ordered = {"map", "gm_map", "bpref", "recip_rank", "infAP", "gm_bpref", "11pt_avg"}
    assert differing >= ordered | {"binG", "G", "ndcg", "ndcg_rel", "Rndcg"}
