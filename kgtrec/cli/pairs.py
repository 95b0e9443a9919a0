"""``kgtrec pairs``: rank the pairs of a relation among all pairs of heads and tails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.cli.rank.options import OF_FORMULAS, of_embeddings

if TYPE_CHECKING:
    from kgtrec import Graph
    from kgtrec._internal.table import Table
    from kgtrec.study.pairs.rank import PairRanks

RANK_TYPES = ("optimistic", "realistic", "pessimistic", "expected")
_OF_RANKING = (
    "graph",
    "scores",
    "best_file",
    "ranks_file",
    "k",
    "relations",
    "heads",
    "tails",
    "by",
    "metrics",
    "filters",
    "split",
    "model",
    "column_labels",
)

_OF_SCORES = (
    *(name for name in _OF_RANKING if name not in ("graph", "ranks_file", "by", "metrics")),
    "model_config",
    "lower_is_better",
    "keep_known",
    "unknown",
)


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE.tsv ...]", type=shared.READ)
@shared.graph("Folder with the splits train, valid and test (see `kgtrec formats`).")
@shared.option(
    "--scores",
    "Vectors of a model (with --model); or, for a single relation, a .npy matrix with one row per "
    "head and one column per tail, or an .npz with queries (one per head) and entities.",
    type=shared.SCORES,
    metavar="PATH",
)
@of_embeddings
@shared.COLUMN_LABELS
@shared.flag("--lower-is-better", "The scores are distances.")
@shared.reads("--heads", "Labels, one per line: pair only these heads. Default: all entities.")
@shared.reads("--tails", "Labels, one per line: pair only these tails. Default: all entities.")
@shared.reads("--relations", "Labels, one per line: rank only the pairs of these relations.")
@shared.choice(
    "--unknown",
    ["error", "skip"],
    "Treat a label that is not in the graph as an error, or ignore and count it.",
    default="error",
)
@shared.split("Split whose pairs are evaluated.")
@shared.option(
    "--filter filters",
    "Splits whose pairs are known: all, test, valid, raw, or names of splits, such as train,test.",
    default="all",
    metavar="NAME",
)
@shared.measures(
    "-m --measure metrics",
    "mrr, hits@100, amri, ... (micro); map, ndcg_cut_100, P_100, recall_1000, ... (macro: a "
    "relation is a query); auroc. Repeatable.",
)
@shared.choice("--ranks rank_type", RANK_TYPES, "Rank type of micro metrics.", default="realistic")
@shared.option("--by", "A row per `relation`, or per `category` of them.", metavar="GROUP")
@shared.option(
    "-k --best k",
    "Find so many best pairs of each relation (with --write-pairs).",
    type=shared.Count(1),
    metavar="K",
)
@shared.writes("--write-pairs best_file", "Write the -k best pairs of each relation as TSV.")
@shared.flag(
    "--keep-known", "Known pairs may be among the best. Column `known` marks them in any case."
)
@shared.writes("--write-ranks ranks_file", "Write the counts of each evaluated pair as TSV.")
@shared.flag("--stability", "Compare two files of --write-pairs: A.tsv B.tsv.")
@shared.option(
    "--k cutoffs",
    "With --stability: compare so many best pairs. Default: 10, 100, ... and all.",
    metavar="K,K,...",
)
@shared.THREADS
@shared.FORMAT
def command(files: tuple[str, ...], **options: Any) -> Report:
    """Rank each test pair (h, t) of a relation among all pairs: the question (?, r, ?), such as
    which drug treats which disease.

    Zhou et al. (2022, section 6.2) and Wang et al. (2019) evaluate models in this way. Candidates
    are all heads x tails, without pairs that a split of the filter knows; there may be billions.
    Micro metrics average over test pairs. For macro measures a relation is the query and all its
    test pairs are the answers. Column "by pairs" weighs relations by their test pairs (Wang's MAP),
    "by relation" is the plain mean. Ties are not broken: macro values are expectations over all
    their orders; least and greatest are the values in the worst and the best order.

    \b
    kgtrec pairs --graph FB15k-237 --scores distmult.npz --model distmult
    kgtrec pairs --graph Hetionet --scores m.npz --model transe --relations treats.txt \\
        --heads drugs.txt --tails diseases.txt -k 100 --write-pairs best.tsv
    kgtrec pairs --graph FB15k-237 part1.tsv part2.tsv --by category
    kgtrec pairs --stability best.tsv other-seed.tsv

    Relations may be ranked in several jobs (--relations and --write-ranks in each, or `pairs =
    true` in a job file of `kgtrec batch`). With --graph and their files, this prints the table of
    all their relations, which equals that of one run.
    """
    _check(files, options)
    if options["stability"]:
        return _stability(files, options)
    if files:
        return _merge(files, options)
    from kgtrec import read_graph
    from kgtrec.errors import about
    from kgtrec.questions.requests import parse_filter
    from kgtrec.study import rank_pairs
    from kgtrec.study.pairs.measures import parse_measures
    from kgtrec.study.pairs.questions import read_pair_labels

    measures = options["metrics"] or None
    parse_measures(measures)  # before hours of work
    graph = read_graph(options["graph"])
    paths = {name: options[name] for name in ("heads", "tails", "relations")}
    listed, notes = read_pair_labels(graph, paths, options["unknown"])
    scores = _load_scores(graph, options)
    with about(options["scores"]):
        ranks = rank_pairs(
            scores,
            graph,
            split=options["split"],
            filter=parse_filter(options["filters"]),
            k=options["k"] or 0,
            keep_known=options["keep_known"],
            higher_is_better=not options["lower_is_better"],
            threads=options["threads"],
            **listed,
        )
    table = _table(ranks, options)
    written = [(options["ranks_file"], ranks.write)]
    if ranks.best is not None:
        written.append((options["best_file"], ranks.best.write))
    return Report.from_table(table, notes=[*notes, *ranks.notes()], files=written)


def _table(ranks: PairRanks, options: dict[str, Any]) -> Table:
    """Return the table of measures that the options choose."""
    measures = options["metrics"] or None
    if options["by"]:
        return ranks.by(options["by"], measures, options["rank_type"])
    return ranks.table(measures, options["rank_type"])


def _merge(files: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Report the measures of ranks from several files."""
    from kgtrec import read_graph
    from kgtrec.study import merge_pair_ranks
    from kgtrec.study.pairs.measures import parse_measures

    parse_measures(options["metrics"] or None)
    ranks = merge_pair_ranks(files, read_graph(options["graph"]))
    written = [(options["ranks_file"], ranks.write)]
    return Report.from_table(_table(ranks, options), files=written)


def _check(files: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse options that are missing, contradict each other, or have no effect."""
    stability = options["stability"]
    shared.leave_out(
        (stability, _OF_RANKING, "--stability compares two files; leave out {}"),
        (not stability, ("cutoffs",), "{} needs --stability A.tsv B.tsv"),
        (
            bool(files) and not stability,
            _OF_SCORES,
            "files of --write-ranks are measured without scores; leave out {}",
        ),
    )
    embeddings = options["model"] is not None or options["model_config"] is not None
    shared.leave_out((not embeddings, OF_FORMULAS, "without --model, leave out {}"))
    shared.refuse(
        (
            stability and len(files) != 2,
            f"--stability compares two files of --write-pairs; got {len(files)}",
        ),
        (
            not stability and bool(files) and not options["graph"],
            "files of --write-ranks need --graph DIR; to compare files of --write-pairs, add "
            "--stability",
        ),
        (
            not stability and not files and not (options["graph"] and options["scores"]),
            "give --graph DIR and --scores PATH, or --stability A.tsv B.tsv",
        ),
        (
            (options["k"] is None) != (options["best_file"] is None),
            "-k K and --write-pairs FILE need each other; give both",
        ),
        (options["keep_known"] and options["k"] is None, "--keep-known needs -k K"),
        (
            embeddings and options["lower_is_better"],
            "--lower-is-better: scores of a --model are higher for likelier pairs; leave it out",
        ),
    )


def _load_scores(graph: Graph, options: dict[str, Any]) -> Any:
    """Load the scores: vectors of a model, a matrix of pairs, or `Factors`."""
    from kgtrec import Factors
    from kgtrec._internal.csr import inverse
    from kgtrec.cli.rank.options import has_embeddings
    from kgtrec.errors import UsageError
    from kgtrec.integrations.embeddings import load_pair_vectors
    from kgtrec.scores.files import load_matrix
    from kgtrec.scores.sources import load_scores
    from kgtrec.study.pairs.questions import read_vector_order

    path = options["scores"]
    columns = read_vector_order(graph, options["column_labels"])
    if has_embeddings(options | {"predictions": None}):
        names = (*OF_FORMULAS, "model_config")
        normalize = options["normalize"] if shared.on_command_line("normalize") else None
        how = {name: options[name] for name in names} | {"normalize": normalize}
        return load_pair_vectors(path, graph, options["model"], columns=columns, **how)
    if path.endswith(".npz"):
        loaded = load_scores(path)
        assert isinstance(loaded, Factors)
        if columns is None or loaded.shape[1] != graph.n_entities:
            return loaded
        return loaded.select_entities(inverse(columns))
    if columns is not None:
        raise UsageError(
            f"{path}: rows and columns of a matrix of pairs are in the order of --heads and "
            "--tails; name these lists, and leave --columns out"
        )
    return load_matrix(path)


def _stability(files: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Report how far two files of best pairs agree."""
    from kgtrec.study import pair_stability

    text = options["cutoffs"]
    cutoffs = None if text is None else shared.parse_counts("--k", text)
    result = pair_stability(files[0], files[1], cutoffs)
    return Report.from_table(result.table())
