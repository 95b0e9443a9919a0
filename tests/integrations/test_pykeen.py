"""PyKEEN: its evaluator and kgtrec's agree on every key, wherever PyKEEN calls them."""

from __future__ import annotations

import logging
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pykeen")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyKEEN's and its dependencies' own

import torch  # noqa: E402
from pykeen.datasets import Nations  # noqa: E402
from pykeen.datasets.base import EagerDataset  # noqa: E402
from pykeen.evaluation import LCWAEvaluationLoop, RankBasedEvaluator  # noqa: E402
from pykeen.evaluation import evaluator as pykeen_evaluator  # noqa: E402
from pykeen.hpo import hpo_pipeline  # noqa: E402
from pykeen.metrics.ranking import MedianAbsoluteDeviation  # noqa: E402
from pykeen.pipeline import pipeline  # noqa: E402
from pykeen.trackers import PythonResultTracker  # noqa: E402
from pykeen.triples import TriplesFactory  # noqa: E402

from kgtrec.errors import InputError, UsageError  # noqa: E402
from kgtrec.integrations.pykeen import KgtrecEvaluator, evaluate, graph_of  # noqa: E402
from kgtrec.measures.rank_metrics import TO_DEVIATION  # noqa: E402

SHARED = {
    "arithmetic_mean_rank": "mr",
    "inverse_harmonic_mean_rank": "mrr",
    "median_rank": "median",
    "geometric_mean_rank": "gmr",
    "inverse_geometric_mean_rank": "igmr",
    "hits_at_1": "hits@1",
    "hits_at_3": "hits@3",
    "hits_at_5": "hits@5",
    "hits_at_10": "hits@10",
    "adjusted_arithmetic_mean_rank": "amr",
    "adjusted_arithmetic_mean_rank_index": "amri",
}


@pytest.fixture(scope="module")
def dataset() -> Any:
    return Nations()


def trained(dataset: Any, model: str = "TransE", **more: Any) -> Any:
    logging.disable(logging.WARNING)
    options = {
        "training_kwargs": {"num_epochs": 3, "use_tqdm": False},
        "random_seed": 1,
        "evaluation_kwargs": {"use_tqdm": False},
    }
    return pipeline(dataset=dataset, model=model, **(options | more))


@pytest.fixture(scope="module")
def model(dataset: Any) -> Any:
    return trained(dataset).model


def known(dataset: Any) -> list[Any]:
    return [dataset.training.mapped_triples, dataset.validation.mapped_triples]


def both(dataset: Any, model: Any, **more: Any) -> tuple[Any, Any, KgtrecEvaluator]:
    """Results of PyKEEN's evaluator and of ours, and our evaluator itself."""
    options = {"additional_filter_triples": known(dataset), "use_tqdm": False, "batch_size": 32}
    ours = KgtrecEvaluator()
    triples = dataset.testing.mapped_triples
    theirs = RankBasedEvaluator(clear_on_finalize=False)
    rough = theirs.evaluate(model, triples, **(options | more)).to_flat_dict()
    # PyKEEN's ranks, and so its sums, are float32: compute them again in float64.
    for key, parts in theirs.ranks.items():
        theirs.ranks[key] = [part.astype(np.float64) for part in parts]
    due = theirs.finalize()
    for name, value in due.to_flat_dict().items():
        assert rough[name] == pytest.approx(value, rel=1e-5, abs=1e-5, nan_ok=True), name
    return due, ours.evaluate(model, triples, **(options | more)), ours


def assert_agree(due: Any, got: Any, tolerance: float = 1e-9) -> None:
    one, other = due.to_flat_dict(), got.to_flat_dict()
    assert set(one) == set(other)
    for key, value in one.items():
        assert other[key] == pytest.approx(value, rel=tolerance, abs=tolerance, nan_ok=True), key


def test_every_key_agrees(dataset: Any, model: Any) -> None:
    due, got, ours = both(dataset, model)
    values = due.to_flat_dict()
    assert len(values) >= 225
    assert_agree(due, got)
    sides, kinds = ("head", "tail", "both"), ("optimistic", "realistic", "pessimistic")
    for side, kind, theirs in product(sides, kinds, SHARED):
        value = ours.result[f"{side}.{kind}.micro.{SHARED[theirs]}"]
        assert value == pytest.approx(values[f"{side}.{kind}.{theirs}"], rel=1e-9), theirs


def test_in_the_pipeline_with_its_early_stopper(dataset: Any) -> None:
    stopper = {
        "stopper": "early",
        "stopper_kwargs": {
            "frequency": 1,
            "patience": 2,
            "relative_delta": 0.01,
            "metric": "both.realistic.inverse_harmonic_mean_rank",
        },
    }
    due = trained(dataset, **stopper)
    got = trained(dataset, evaluator=KgtrecEvaluator, **stopper)
    np.testing.assert_allclose(got.stopper.results, due.stopper.results, rtol=1e-6)
    assert len(got.stopper.results) >= 2
    assert_agree(due.metric_results, got.metric_results, 1e-5)


def test_in_the_search_for_hyperparameters(dataset: Any) -> None:
    """The same trials have the same values, so validation chooses the same one."""
    logging.disable(logging.WARNING)
    studies = [
        hpo_pipeline(
            dataset=dataset,
            model="DistMult",
            n_trials=3,
            sampler="random",
            sampler_kwargs={"seed": 1},
            model_kwargs={"random_seed": 1},
            training_kwargs={"num_epochs": 2, "use_tqdm": False},
            evaluation_kwargs={"use_tqdm": False},
            evaluator=evaluator,
            metric="both.realistic.inverse_harmonic_mean_rank",
            device="cpu",
        ).study
        for evaluator in (RankBasedEvaluator, KgtrecEvaluator)
    ]
    theirs, ours = ([trial.value for trial in study.trials] for study in studies)
    assert len({round(value, 6) for value in ours}) == 3
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert studies[0].best_trial.number == studies[1].best_trial.number
    assert studies[1].best_value == max(ours)


@pytest.mark.parametrize(
    "how",
    [
        {"batch_size": 7},
        {"batch_size": 1},
        {"batch_size": None},
        {"slice_size": 5},
        {"slice_size": 1, "batch_size": 9},
        {"targets": ("tail",)},
        {"targets": ("head",)},
        {"targets": ("tail", "head")},
        {"additional_filter_triples": None},
        {"restrict_entities_to": list(range(9)), "pre_filtered_triples": False},
        {"restrict_relations_to": [0, 3, 5, 9, 11, 20], "pre_filtered_triples": False},
        {
            "restrict_entities_to": [8, 2, 5, 1, 0, 9, 7],
            "restrict_relations_to": set(range(30)),
            "pre_filtered_triples": False,
        },
    ],
    ids=str,
)
def test_however_it_is_called(dataset: Any, model: Any, how: dict[str, Any]) -> None:
    due, got, _ = both(dataset, model, **how)
    assert_agree(due, got)


def test_inverse_triples() -> None:
    dataset = Nations(create_inverse_triples=True)
    model = trained(dataset, "DistMult").model
    assert model.use_inverse_triples
    assert_agree(*both(dataset, model)[:2])


def test_ties(dataset: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = type(model).predict

    def coarse(self: Any, *args: Any, **kwargs: Any) -> Any:
        return predict(self, *args, **kwargs).round(decimals=0)

    monkeypatch.setattr(type(model), "predict", coarse)
    due, got, ours = both(dataset, model)
    assert ours.kgtrec_ranks is not None
    assert ours.kgtrec_ranks.tie_report()["tied_share"] > 0.5
    assert_agree(due, got)


def test_unfiltered_means_unfiltered(dataset: Any, model: Any) -> None:
    """PyKEEN's own evaluator raises with filtered=False, so count ranks directly."""
    ours = KgtrecEvaluator(filtered=False)
    triples = dataset.testing.mapped_triples
    got = ours.evaluate(model, triples, use_tqdm=False, batch_size=50)
    ranks = []
    with torch.inference_mode():
        for target, column in (("head", 0), ("tail", 2)):
            scores = model.predict(hrt_batch=triples, target=target).tolist()
            for row, answer in zip(scores, triples[:, column].tolist(), strict=True):
                above = sum(score > row[answer] for score in row)
                ties = sum(score == row[answer] for score in row) - 1
                ranks.append(above + 1 + ties / 2)
    assert got.get_metric("arithmetic_mean_rank") == pytest.approx(np.mean(ranks), rel=1e-12)
    assert got.get_metric("mrr") == pytest.approx(np.mean([1 / r for r in ranks]), rel=1e-12)
    in_pipeline = trained(dataset, evaluator=KgtrecEvaluator, evaluator_kwargs={"filtered": False})
    filtered = trained(dataset, evaluator=KgtrecEvaluator)
    low, high = (run.metric_results.get_metric("mrr") for run in (in_pipeline, filtered))
    assert low < 0.9 * high  # the filter is not lost silently


def test_a_smaller_batch_after_running_out_of_memory(
    dataset: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyKEEN halves the batch and starts again: it calls clear(), and rows come again."""
    tries = []
    evaluate_batch = pykeen_evaluator._evaluate_batch

    def short_of_memory(batch: Any, **kwargs: Any) -> Any:
        tries.append(len(batch))
        if len(batch) > 20 and len(tries) > 2:
            raise torch.cuda.OutOfMemoryError
        return evaluate_batch(batch=batch, **kwargs)

    due, _, _ = both(dataset, model)
    monkeypatch.setattr(pykeen_evaluator, "_evaluate_batch", short_of_memory)
    ours = KgtrecEvaluator()
    got = ours.evaluate(
        model,
        dataset.testing.mapped_triples,
        batch_size=100,
        use_tqdm=False,
        additional_filter_triples=known(dataset),
    )
    assert max(tries) > 20 >= tries[-1]
    assert_agree(due, got)


def test_the_attribute_is_as_it_was(dataset: Any, model: Any) -> None:
    ours = KgtrecEvaluator(clear_on_finalize=False)
    triples = dataset.testing.mapped_triples.clone()
    with pytest.raises(InputError, match=r"pass pre_filtered_triples=False to drop them"):
        ours.evaluate(model, triples, use_tqdm=False, restrict_entities_to=[0, 1, 2])
    assert ours.filtered
    with pytest.raises(UsageError, match="nothing was evaluated yet"):
        ours.result  # noqa: B018
    ours.evaluate(model, triples, use_tqdm=False, batch_size=64)
    assert ours.filtered
    assert torch.equal(triples, dataset.testing.mapped_triples)
    means = ours.finalize_with_confidence(n_boot=3)  # PyKEEN's bootstrap
    assert "both.realistic.inverse_harmonic_mean_rank" in means


def in_loop(model: Any, evaluator: Any, dataset: Any, **more: Any) -> Any:
    loop = LCWAEvaluationLoop(
        triples_factory=dataset.testing,
        evaluator=evaluator,
        model=model,
        additional_filter_triples=[dataset.training, dataset.validation],
        **more,
    )
    return loop.evaluate(batch_size=37, use_tqdm=False, pin_memory=False)


COLUMNS = (
    "triple",
    "question",
    "side",
    "given",
    "relation",
    "answer",
    "greater",
    "equal",
    "tied_ahead",
    "candidates",
    "macro_greater",
    "macro_equal",
    "macro_tied_ahead",
    "macro_candidates",
)


@pytest.mark.parametrize("targets", [("head", "tail"), ("tail",), ("head",)], ids=str)
@pytest.mark.parametrize("coarse", [False, True], ids=["as_they_are", "rounded"])
def test_in_an_evaluation_loop(
    dataset: Any, model: Any, targets: Any, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = type(model).predict

    def exact(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The last bits of scores differ between batch sizes.
        return predict(self, *args, **kwargs).round(decimals=0 if coarse else 3)

    monkeypatch.setattr(type(model), "predict", exact)
    evaluator = KgtrecEvaluator()
    got = in_loop(model, evaluator, dataset, targets=targets)
    due, _, ours = both(dataset, model, targets=targets)
    assert_agree(due, got)
    assert_agree(in_loop(model, RankBasedEvaluator(), dataset, targets=targets), got, 1e-5)
    for name in COLUMNS:
        assert np.array_equal(
            getattr(evaluator.kgtrec_ranks, name), getattr(ours.kgtrec_ranks, name)
        ), name
    side = "both" if len(targets) == 2 else targets[0]
    for key in ("macro.map_cut_20", "realistic.macro.mrr", "ordinal.micro.mrr"):
        assert evaluator.result[f"{side}.{key}"] == ours.result[f"{side}.{key}"]


def test_loops_and_evaluate_take_turns(dataset: Any, model: Any) -> None:
    evaluator = KgtrecEvaluator(clear_on_finalize=False)
    with pytest.raises(UsageError, match="nothing was evaluated yet"):
        evaluator.finalize()
    triples = dataset.testing.mapped_triples
    for _ in range(2):
        one = in_loop(model, evaluator, dataset)
        assert_agree(one, evaluator.finalize())
        other = evaluator.evaluate(
            model, triples, use_tqdm=False, additional_filter_triples=known(dataset)
        )
        assert_agree(one, other, 1e-4)
        assert_agree(other, evaluator.finalize())


def filtered_scores(dataset: Any, model: Any, target: str) -> torch.Tensor:
    """Scores of the test triples' questions; NaN: known, and not the triple's own answer."""
    column = {"head": 0, "tail": 2}[target]
    triples = dataset.testing.mapped_triples
    with torch.inference_mode():
        scores = model.predict(hrt_batch=triples, target=target)
    scores = torch.tensor(scores.tolist())
    for fact in {tuple(row) for part in (*known(dataset), triples) for row in part.tolist()}:
        for row, triple in enumerate(triples.tolist()):
            others = [i for i in range(3) if i != column]
            if all(triple[i] == fact[i] for i in others) and triple[column] != fact[column]:
                scores[row, fact[column]] = float("nan")
    return scores


def test_a_loop_that_begins_again_and_distances(dataset: Any, model: Any) -> None:
    """PyKEEN begins again after running out of memory, and does not call clear()."""
    evaluator, turned = KgtrecEvaluator(), KgtrecEvaluator(higher_is_better=False)
    triples = dataset.testing.mapped_triples
    for target in ("head", "tail"):
        scores = filtered_scores(dataset, model, target)
        turned.process_scores_(triples, target, -scores)
        evaluator.process_scores_(triples[:9], target, scores[:9] * -2)
        evaluator.process_scores_(triples, target, scores)
    got = evaluator.finalize()
    assert_agree(got, turned.finalize())
    assert_agree(both(dataset, model)[0], got, 1e-4)


def test_an_unfiltered_loop(dataset: Any, model: Any) -> None:
    evaluator = KgtrecEvaluator(filtered=False)
    loop = LCWAEvaluationLoop(triples_factory=dataset.testing, evaluator=evaluator, model=model)
    got = loop.evaluate(batch_size=37, use_tqdm=False, pin_memory=False)
    due = KgtrecEvaluator(filtered=False).evaluate(
        model, dataset.testing.mapped_triples, use_tqdm=False, batch_size=37
    )
    assert_agree(due, got, 1e-6)


def test_as_the_callback_of_training(dataset: Any) -> None:
    results = {}
    for name in (RankBasedEvaluator, KgtrecEvaluator):
        tracker = PythonResultTracker()
        pipeline(
            dataset=dataset,
            model="TransE",
            random_seed=1,
            epochs=3,
            evaluation_kwargs={"use_tqdm": False},
            result_tracker=tracker,
            training_kwargs={
                "use_tqdm": False,
                "callbacks": "evaluation-loop",
                "callbacks_kwargs": {
                    "factory": dataset.validation,
                    "prefix": "valid",
                    "evaluator": name,
                    "additional_filter_triples": dataset.training,
                    "use_tqdm": False,
                    "pin_memory": False,
                    "batch_size": 64,
                },
            },
        )
        key = "valid.both.realistic.inverse_harmonic_mean_rank"
        results[name] = [step[key] for step in tracker.metrics.values() if key in step]
    ours = results[KgtrecEvaluator]
    assert len(ours) >= 2
    assert ours == pytest.approx(results[RankBasedEvaluator], rel=1e-6)


def test_scores_that_are_nan_in_a_loop(dataset: Any, model: Any) -> None:
    triples = dataset.testing.mapped_triples
    scores = filtered_scores(dataset, model, "tail")
    evaluator = KgtrecEvaluator()
    with pytest.raises(InputError, match="NaN for the tail of triple"):
        KgtrecEvaluator(filtered=False).process_scores_(triples, "tail", scores)
    bad = scores.clone()
    bad[3, triples[3, 2]] = float("nan")
    with pytest.raises(InputError, match=r"NaN for the tail of triple \(.*\); fix the model"):
        evaluator.process_scores_(triples, "tail", bad)
    with pytest.raises(UsageError, match="relation"):
        evaluator.process_scores_(triples, "relation", scores)
    evaluator.process_scores_(triples[:4], "tail", scores[:4])
    evaluator.process_scores_(triples[:3], "head", scores[:3].nan_to_num())
    with pytest.raises(UsageError, match="has no row of scores; pass every triple for both sides"):
        evaluator.finalize()
    evaluator.process_scores_(triples, "head", scores.nan_to_num())  # raw, other than the tails
    evaluator.process_scores_(triples, "tail", scores)
    with pytest.raises(InputError, match="pass the same filter triples for both sides"):
        evaluator.finalize()


def test_the_factor_of_the_median_deviation() -> None:
    """What `kgtrec measures mad` says of PyKEEN 1.11.1."""
    mad = MedianAbsoluteDeviation()
    ranks = np.array([1.0, 2.0, 5.0, 9.0, 30.0])
    assert mad(ranks) == pytest.approx(TO_DEVIATION * mad(ranks, weights=np.ones(5)))


# -- evaluate(model, dataset) ------------------------------------------------------------------


@pytest.mark.parametrize(("split", "name"), [("test", "testing"), ("valid", "validation")])
def test_one_call(dataset: Any, model: Any, split: str, name: str) -> None:
    triples = getattr(dataset, name).mapped_triples
    others = [*known(dataset), dataset.testing.mapped_triples]
    due = RankBasedEvaluator().evaluate(
        model, triples, additional_filter_triples=others, use_tqdm=False, batch_size=32
    )
    result = evaluate(model, dataset, split, batch_size=10, slice_size=6)
    for mine, theirs in (
        ("both.realistic.micro.mrr", "mrr"),
        ("tail.realistic.micro.hits@3", "tail.hits@3"),
    ):
        assert result[mine] == pytest.approx(due.get_metric(theirs), rel=1e-6)
    assert "embassy" in result.slice("relation").to_csv()
    assert np.isfinite(result["both.macro.map_cut_20"])


def test_the_graph_has_the_numbers_of_pykeen(dataset: Any) -> None:
    graph = graph_of(dataset)
    assert list(graph.entities) == sorted(dataset.entity_to_id, key=dataset.entity_to_id.get)
    assert graph.splits["test"].tolist() == dataset.testing.mapped_triples.tolist()
    assert graph.name == "Nations"
    assert graph_of(EagerDataset(dataset.training, dataset.testing)).name is None


def test_another_data_set_is_refused(model: Any) -> None:
    triples = np.array([["a", "r", "b"], ["b", "r", "c"]])
    other = TriplesFactory.from_labeled_triples(triples)
    with pytest.raises(InputError, match="the model has 14 entities and the data set 3"):
        evaluate(model, EagerDataset(other, other))


def test_one_call_for_some_entities_and_relations(dataset: Any, model: Any) -> None:
    """The entities restrict triples and candidates, as in our evaluator; labels are numbers."""
    entities, relations = list(range(2, 12)), [0, 3, 5, 9, 20, 30]
    _, _, evaluator = both(
        dataset,
        model,
        restrict_entities_to=entities,
        restrict_relations_to=relations,
        pre_filtered_triples=False,
    )
    result = evaluate(model, dataset, entities=entities, relations=relations, progress=False)
    due = evaluator.result
    for key in ("both.micro.mrr", "head.micro.mr", "tail.micro.hits@3", "both.micro.amri"):
        assert result[key] == due[key]
    assert result.ranks.candidates.max() <= len(entities)
    graph = graph_of(dataset)
    named = evaluate(
        model,
        dataset,
        entities=graph.entities[entities],
        relations=graph.relations[relations],
        progress=False,
    )
    assert named["both.micro.mrr"] == due["both.micro.mrr"]
    with pytest.raises(InputError, match="99"):
        evaluate(model, dataset, entities=[99], progress=False)


def test_whitelists_of_the_pipeline(dataset: Any) -> None:
    """PyKEEN's whitelists restrict only the triples."""
    names = ["embassy", "treaties", "exports3"]
    ours, theirs = (
        trained(dataset, evaluator=one, evaluation_relation_whitelist=names)
        for one in (KgtrecEvaluator, RankBasedEvaluator)
    )
    for key in ("both.realistic.inverse_harmonic_mean_rank", "both.realistic.hits_at_10"):
        assert ours.metric_results.get_metric(key) == pytest.approx(
            theirs.metric_results.get_metric(key)
        )
