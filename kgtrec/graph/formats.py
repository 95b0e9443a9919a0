"""The formats of graphs: the table that `kgtrec formats` prints, and the format of a folder.

If its files identify the format, a folder is named alone; otherwise with its format:
``libkge:DIR``. If no file says the order of columns, that follows: ``dgl-ke,htr:DIR``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from kgtrec._internal.argument_names import argument
from kgtrec._internal.formats import Format, Formats
from kgtrec._internal.locations import files_below, is_location
from kgtrec.errors import PathName, UsageError, choose, refuse, refuse_url
from kgtrec.graph.tsv import find_split_files, has_splits

_READERS = "kgtrec.graph.readers"

GRAPHS = Formats(
    "graphs",
    "kgtrec.graph_formats",
    (
        Format(
            "tsv",
            "tab-separated labels",
            "train.txt, valid.txt (or dev.txt), test.txt, or .tsv: head<TAB>relation<TAB>tail",
            f"{_READERS}.text:read_tab_separated",
            "another order of columns: tsv,htr:DIR; tsv:DIR to read the splits alone",
        ),
        Format(
            "openke",
            "OpenKE",
            "train2id.txt, valid2id.txt, test2id.txt, entity2id.txt, relation2id.txt",
            "kgtrec.graph.openke:read_openke",
            "numbers in the order head, relation, tail: openke,hrt:DIR",
        ),
        Format(
            "libkge",
            "LibKGE",
            "dataset.yaml, train.del, valid.del, test.del, entity_ids.del, relation_ids.del",
            f"{_READERS}.folders:read_libkge",
        ),
        Format(
            "rotate",
            "RotatE, and DGL-KE's own datasets",
            "entities.dict, relations.dict (or entity2id.txt, ...); train.txt, valid.txt, test.txt "
            "with labels",
            f"{_READERS}.folders:read_rotate",
            "the format; another order of columns than hrt: rotate,htr:DIR",
        ),
        Format(
            "neural-lp",
            "Neural LP, DRUM, RED-GNN, AdaProp",
            "facts.txt and train.txt (together the split train), valid.txt, test.txt, "
            "entities.txt, relations.txt: labels in the order of their numbers",
            f"{_READERS}.folders:read_neural_lp",
        ),
        Format(
            "dgl-ke",
            "DGL-KE (udd)",
            "entities.dict (or .tsv), relations.dict; train.txt, valid.txt, test.txt with numbers",
            f"{_READERS}.folders:read_dgl_ke",
            "format and columns: dgl-ke,hrt:DIR",
        ),
        Format(
            "pykeen",
            "PyKEEN (Dataset.to_directory_binary)",
            "training, validation, testing, each with numeric_triples.tsv.gz, entity_to_id.tsv.gz, "
            "relation_to_id.tsv.gz",
            f"{_READERS}.folders:read_pykeen",
            columns="hrt",
        ),
        Format(
            "ogb",
            "OGB link prediction",
            "train.npz, valid.npz, test.npz with the arrays head, relation, tail",
            f"{_READERS}.folders:read_ogb",
            columns="hrt",
        ),
        Format(
            "arrow",
            "Parquet, Arrow, Feather",
            "train.parquet (or .arrow, .feather) and so on with columns head, relation, tail",
            f"{_READERS}.arrow:read_arrow_graph",
            columns="hrt",
        ),
        Format(
            "csv",
            "CSV",
            "train.csv, valid.csv, test.csv with a first line head,relation,tail in any order",
            f"{_READERS}.text:read_csv",
            "without a first line, the columns: csv,hrt:DIR",
        ),
        Format(
            "multihopkg",
            "MultiHopKG, MINERVA's relatives",
            "train.triples, dev.triples, test.triples: head<TAB>tail<TAB>relation",
            f"{_READERS}.text:read_multihopkg",
            "another order of columns: multihopkg,hrt:DIR",
        ),
        Format(
            "ntriples",
            "N-Triples",
            "train.nt, valid.nt, test.nt, without literals",
            f"{_READERS}.text:read_ntriples",
            columns="hrt",
        ),
        Format(
            "timed",
            "facts with a time (ICEWS, Wikidata)",
            "train.txt, valid.txt, test.txt: head, relation, tail and time, or since and until",
            f"{_READERS}.text:read_timed",
            "the format; another order: timed,htr:DIR",
        ),
        Format(
            "statements",
            "facts with qualifiers (WD50K, JF17K as in StarE)",
            "train.txt, valid.txt, test.txt: head,relation,tail,relation,value,relation,value,...; "
            "or with tabs, and a count in the first line (HyNT)",
            f"{_READERS}.text:read_statements",
            "the format: statements:DIR",
            columns="hrt",
        ),
        Format(
            "hype",
            "facts of several entities (HypE)",
            "train.txt, valid.txt, test.txt: relation and two or more entities, with tabs",
            f"{_READERS}.text:read_hype",
            "the format: hype:DIR",
            columns="rht",
        ),
        Format(
            "wikipeople",
            "facts with qualifiers (WikiPeople)",
            "n-ary_train.json, n-ary_valid.json, n-ary_test.json: JSON lines of roles and values, "
            "also in HINGE's form of JF17K",
            f"{_READERS}.text:read_wikipeople",
            columns="hrt",
        ),
        Format(
            "ilpc",
            "ILPC 2022 (inductive)",
            "train.txt, inference.txt, inference_validation.txt, inference_test.txt",
            f"{_READERS}.folders:read_ilpc",
            "the format; questions are about its inference graph",
            columns="hrt",
        ),
        Format(
            "ingram",
            "InGram (inductive)",
            "train.txt, msg.txt (the inference graph), valid.txt, test.txt",
            f"{_READERS}.folders:read_ingram",
            "the format; questions are about its inference graph",
            columns="hrt",
        ),
        Format(
            "grail",
            "GraIL (inductive)",
            "NAME/train.txt, and NAME_ind/ with train.txt, valid.txt, test.txt",
            f"{_READERS}.folders:read_grail",
            "the format; questions are about NAME_ind",
            columns="hrt",
        ),
        Format(
            "ultra",
            "ULTRA (inductive)",
            "transductive_train.txt, inference_graph.txt, inf_valid.txt, inf_test.txt; or "
            "train.txt and train_ind.txt, valid_ind.txt, test_ind.txt",
            f"{_READERS}.folders:read_ultra",
            "the format; questions are about its inference graph",
            columns="hrt",
        ),
    ),
)

NUMBERED_BESIDE = frozenset(
    {"tsv", "timed", "csv", "ntriples", "statements", "hype", "multihopkg", "arrow"}
)
"""Formats of labels; dictionaries in the folder may number these."""
LABELLED = frozenset({"tsv", "timed", "csv", "multihopkg", "rotate"})
"""Formats of labels whose order of columns users may declare."""
TEXTS = NUMBERED_BESIDE | {"rotate", "dgl-ke", "neural-lp"}
"""Formats of text files in one folder: other files with triples are reported."""
NUMBERED = frozenset({"openke", "libkge"})
"""Formats of triples by number, in text files of one folder."""
_DECLARED = re.compile(r"([a-z][a-z0-9_-]*)(?:,([a-z]+))?:(.*)", re.DOTALL)
_ORDERS = ("hrt", "htr", "rht", "rth", "thr", "trh")
_ENDINGS = {
    ".npz": "ogb",
    ".parquet": "arrow",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".nt": "ntriples",
    ".triples": "multihopkg",
}
_SPLIT = re.compile(r"(train|valid|dev|test)(\.[a-z]+)(\.gz|\.zst)?")
_PICKLES = (".pkl", ".pickle", ".pckl", ".pt", ".pth")
_UNPICKLED = (
    "kgtrec never unpickles, because a pickle can run any code; if you trust the file, load it "
    "(torch.load, pickle.load) and save its arrays head, relation and tail with "
    "numpy.savez('train.npz', head=..., relation=..., tail=...)"
)


class GraphPlace(NamedTuple):
    """The folder of a graph, and how to read it.

    - format: Name of a row of `GRAPHS`.
    - columns: Order of columns that the user has declared.
    - is_declared: The user declared the format; otherwise file names decided.
    """

    format: str
    columns: str | None
    folder: Path
    is_declared: bool = False

    @property
    def is_alone(self) -> bool:
        """True if the user declared that the splits are the whole graph: ``tsv:DIR``."""
        return self.is_declared and self.format == "tsv" and self.columns is None


def graph_place(
    folder: PathName, format: str | None = None, columns: str | None = None
) -> GraphPlace:
    """Parse a graph argument: ``DIR``, ``FORMAT:DIR`` or ``FORMAT,COLUMNS:DIR``."""
    location = os.fspath(folder)
    declared, path = split_format(location) if format is None else ("", location)
    if declared:
        format, _, order = declared[:-1].partition(",")
        columns, location = order or columns, path
    if columns is not None:
        choose("columns", columns, _ORDERS)
    if format is not None:
        row = GRAPHS.find_row(format)
        if row.columns and columns not in (None, row.columns):
            raise UsageError(
                f"{argument('columns', columns)} does not fit format {row.name}, whose columns are "
                "always "
                f"{row.columns!r}; leave the order out, or declare another format "
                "(`kgtrec formats` lists them)"
            )
        return GraphPlace(row.name, columns, Path(location), is_declared=True)
    if columns is not None:
        raise UsageError(
            f"{argument('columns', columns)} needs a format, such as {argument('format', 'csv')}"
        )
    return GraphPlace(_recognise_format(Path(location)), None, Path(location))


def label_columns(format: str, declared: str | None) -> str:
    """Return the order of columns in a format's lines of three labels, such as "hrt".

    Formats of numbers have no such lines; files of labels beside them are in the order hrt.
    """
    if format not in LABELLED:
        return "hrt"
    return declared or ("htr" if format == "multihopkg" else "hrt")


def split_format(folder: str) -> tuple[str, str]:
    """Split ``csv,hrt:data`` into format and path: ("csv,hrt:", "data"); ("", path) without format.

    The name of an existing path has no format, and neither has ``s3://...``.
    """
    match = _DECLARED.fullmatch(folder)
    if match is None or os.path.exists(folder) or match[3].startswith("//") or is_location(folder):
        return "", folder
    return folder[: match.start(3)], match[3]


def _recognise_format(folder: Path) -> str:
    """Return the format that the names of a folder's files fit; "tsv" if none does.

    OpenKE's folders are "tsv" here, too: `Graph.read` tells by `openke.is_numbered`.
    """
    if folder.suffix in _PICKLES and folder.is_file():
        refuse(folder, None, "a pickle, not a folder of splits", _UNPICKLED)
    try:
        names = set(os.listdir(folder))
    except OSError:  # the reader will report it
        return "tsv"
    if {"entities.dict", "relations.dict"} <= names:
        from kgtrec.graph.readers.folders import DECLARE

        refuse(folder, None, "entities.dict and relations.dict fit two formats", DECLARE)
    if "dataset.yaml" in names and any(name.endswith(".del") for name in names):
        return "libkge"
    if "numeric_triples.tsv.gz" in names or (folder / "training/numeric_triples.tsv.gz").exists():
        return "pykeen"
    if {"facts.txt", "train.txt", "entities.txt", "relations.txt"} <= names:
        return "neural-lp"
    if has_splits(names):
        return "tsv"
    if any(name.startswith("n-ary_") for name in names):
        return "wikipeople"
    endings = {match[2] for name in names if (match := _SPLIT.fullmatch(name))}
    formats = sorted({_ENDINGS[ending] for ending in endings if ending in _ENDINGS})
    if len(formats) > 1:
        problem = f"the splits are in several formats: {' and '.join(formats)}"
        refuse(folder, None, problem, f"declare one of them, as in {formats[0]}:DIR")
    pickled = sorted(n for n in names if (s := _SPLIT.fullmatch(n)) and s[2] in _PICKLES)
    if pickled and not formats:
        refuse(folder / pickled[0], None, "a pickle", _UNPICKLED)
    return formats[0] if formats else "tsv"


def graph_files(folder: PathName) -> dict[str, Any]:
    """Return the files of a graph by name.

    Of TSV and OpenKE these are the splits and dictionaries; of other formats and at URLs, all
    files.
    """
    from kgtrec.graph.readers.dictionaries import dictionary_files

    url = split_format(os.fspath(folder))[1]
    if is_location(url):
        names = files_below(url) or refuse(url, None, "the folder does not exist", "check the name")
        return {name: f"{url.rstrip('/')}/{name}" for name in names}
    parsed = graph_place(folder)
    refuse_url(parsed.folder)
    if parsed.format in ("tsv", "openke"):
        files = find_split_files(parsed.folder)
        return files if parsed.is_alone else files | dictionary_files(parsed.folder)
    homes = [parsed.folder]
    if parsed.format == "grail":
        inference = parsed.folder.resolve()
        base = inference.name.removesuffix("_ind")
        homes = [inference.with_name(base), inference.with_name(f"{base}_ind")]
    paths = (path for home in homes for pattern in ("*", "*/*") for path in home.glob(pattern))
    return {str(path): path for path in sorted(paths) if path.is_file()}
