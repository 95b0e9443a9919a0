"""The job file of a batch: models x graphs x protocols, as TOML, strictly checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from kgtrec._internal.locations import is_location, local_path, read_bytes
from kgtrec._internal.structured import parse_toml
from kgtrec._internal.system import reason_of
from kgtrec._internal.text import group_equal, join_names
from kgtrec._internal.urls import is_url, url_text
from kgtrec.cluster.batch.jobs import (
    FILE_KEYS,
    PAIRS_ONLY,
    SETTING_KEYS,
    SIDES,
    Job,
    JobBatch,
    complete_key,
)
from kgtrec.cluster.batch.pair_jobs import PAIR_KEYS, PairRequest
from kgtrec.cluster.batch.patterns import models_by_pattern
from kgtrec.cluster.plan import memory_bytes
from kgtrec.errors import FileError, KgtrecError, PathName, choose
from kgtrec.graph.formats import split_format
from kgtrec.measures import parse_all
from kgtrec.questions.requests import AnswerRequest, QuestionRequest
from kgtrec.ranking.settings import Settings
from kgtrec.scores.formulas import NORMALIZED, check_model
from kgtrec.study.pairs import measures as pair_measures

NamesModel = Callable[[str], bool]


def _is_pattern_with_keys(models: Any) -> bool:
    """Return whether a table is a pattern of scores with keys for all models that it matches.

    Any other table has an entry per model, which may have the name of a key.
    """
    return (
        isinstance(models, Mapping)
        and isinstance(models.get("scores"), str)
        and len(models) > 1
        and {*models} <= {*_MODEL_KEYS}
    )


def read_toml(path: Path, kind: str = "a job file") -> dict[str, Any]:
    """Read a TOML file as plain Python types; `kind` is what messages call the file."""
    if path.suffix != ".toml":
        problem = (
            f"{kind} with the suffix {path.suffix}" if path.suffix else f"{kind} without suffix"
        )
        raise FileError(path, found=problem, hint="write it as TOML, with the suffix .toml")
    try:
        return parse_toml(read_bytes(path))
    except FileError:
        raise
    except OSError as error:
        hint = "check the name and the working folder"
        raise FileError(path, found=reason_of(error), hint=hint) from None
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte {error.start})"
        raise FileError(path, found=problem, hint="save the file as UTF-8") from None
    except ValueError as error:
        raise FileError(path, found=f"not TOML: {error}", hint="correct that place") from None


MEASURES = (
    "realistic.micro.mr",
    "realistic.micro.mrr",
    "realistic.micro.hits@1",
    "realistic.micro.hits@3",
    "realistic.micro.hits@10",
    "realistic.micro.amri",
    "realistic.macro.mrr",
    "macro.map_cut_20",
    "macro.ndcg_cut_20",
)
"""Measures in the summary, unless the job file lists others."""

# A letter first: readers of a dataset take folders that look like numbers for numbers.
_VALID_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*")
_MOUNT = (
    "kgtrec reads URLs of s3, gs and file; for others, copy or mount the files and give their path"
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

_PROTOCOLS = {"test": {"split": "test"}}  # if the job file has none
# Valid values by key: types, a list of choices, or `Settings`, which checks its fields.
_BATCH_KEYS = {
    "output": str,
    "work": str,
    "graphs": Mapping,
    "models": (str, Mapping),
    "protocols": Mapping,
    "memory": str,
    "measures": list,
}
_GRAPH_KEYS = {
    "path": str,
    "columns": str,
    "questions": str,
    "candidates": str,
    "known_has_answers": bool,
    "qrels": str,
    "queries": str,
    "documents": str,
    "level": int,
    "exclude_query_document": bool,
}
_SOURCE_KEYS = {
    "path": ("columns",),
    "questions": ("candidates", "known_has_answers"),
    "qrels": ("queries", "documents", "level", "exclude_query_document"),
}
"""Keys that combine with each source of questions."""
_VECTOR_KEYS = {
    "model": str,
    "model_config": str,
    "inverse": ["none", "offset", "interleaved"],
    "norm": ["l2", "l1"],
    "normalize": [*NORMALIZED],
    "phases": (str, float, int),
    "phase_weight": (float, int),
    "modulus_weight": (float, int),
}
"""Keys of the formula that scores a model's vectors."""
_NAMING_KEYS = ("model", "model_config")
"""Keys of which vectors need one, unless their files name the model."""
_MODEL_KEYS = {
    "scores": (str, Mapping),
    "columns": str,
    "lower_is_better": bool,
    "graphs": list,
    "protocols": list,
    **_VECTOR_KEYS,
}
_PROTOCOL_KEYS = {
    "pairs": bool,
    "heads": str,
    "tails": str,
    "split": str,
    "sides": SIDES,
    "filter": (str, list),
    "rows": Settings,
    "nan": Settings,
    "known": list,
    "entities": str,
    "relations": str,
    "type_constraints": str,
    "candidates": str,
    "columns": ["entities", "candidates"],
    "outside": ["error", "worst"],
    "unknown": ["error", "skip"],
    "context": ["time", "qualifiers"],
    "min_answers": int,
    "atol": Settings,
    "rtol": Settings,
}
_OPTION_NAMES = {
    "graphs": {"relevance_level": "level"},
    "protocols": {"score_columns": "columns"},
}
"""Names of options of `kgtrec rank` whose keys have another name, by section."""
_KEYS_WITHOUT_GRAPH = {*SETTING_KEYS, "min_answers"}  # for questions without a graph
_TYPE_NAMES = {
    str: "a string",
    bool: "true or false",
    list: "a list",
    Mapping: "a table",
    int: "a whole number",
    float: "a number",
}


def read_jobs(path: PathName, names_model: NamesModel = lambda path: False) -> JobBatch:
    """Read and check a job file.

    - names_model: Returns True if the file or folder of scores at a path has vectors of a model
      that it names (`kgtrec.integrations.embeddings.is_saved_model`).

    Paths in it are relative to its folder. ``{model}``, ``{graph}``, ``{protocol}`` and ``{split}``
    in a path of scores are replaced by the names; also ``{graph}`` and ``{split}`` in a protocol's
    path. Models may be a pattern (`models_by_pattern`).
    """
    path = Path(path)
    return _Reader(path, read_toml(path), names_model).read_batch()


@dataclass(frozen=True)
class _NamedTable:
    """A graph, a model or a protocol of a job file.

    - section: "graphs", "models" or "protocols".
    - name: Its name in the section.
    - table: Its valid keys and their values.
    """

    section: str
    name: str
    table: Mapping[str, Any]

    def full_key(self, key: str) -> str:
        """Return the full name of a key, such as ``models.transe.scores``."""
        return f"{self.section}.{self.name}.{key}"

    @property
    def of_graph(self) -> bool:
        """True if a section of graphs has a folder of triples; False for other questions."""
        return "path" in self.table

    @property
    def of_pairs(self) -> bool:
        """True if a protocol ranks pairs."""
        return bool(self.table.get("pairs", False))


class _Reader:
    """Reads a job file and collects all its faults, so that one error reports them together."""

    def __init__(self, path: Path, content: dict[str, Any], names_model: NamesModel) -> None:
        self.path, self.content, self.faults = path, content, list[tuple[str, str]]()
        self.names_model = names_model

    def read_batch(self) -> JobBatch:
        """Return the content of the file; FileError that lists all its faults."""
        top = self._parse_table("", self.content, _BATCH_KEYS, ("output", "graphs", "models"))
        graphs = self._parse_tables("graphs", top.get("graphs", {}), _GRAPH_KEYS, "path")
        for graph in graphs:
            self._check_source(graph)
        models = self._parse_tables(
            "models", self._find_models(top, graphs), _MODEL_KEYS, "scores", ("scores",)
        )
        protocols = self._parse_tables(
            "protocols", top.get("protocols", _PROTOCOLS), _PROTOCOL_KEYS
        )
        measures, memory = self._read_measures(top, protocols), top.get("memory", "2GB")
        self._try("memory", memory_bytes, memory)
        self._raise_faults()
        combinations = product(graphs, protocols, models)
        built = [self._build_job(model, graph, protocol) for graph, protocol, model in combinations]
        jobs = tuple(job for job in built if job is not None)
        self._check_protocols(protocols)
        self._check_jobs(jobs, graphs)
        output = self._resolve_path("output", top["output"], {})
        work = self._work_folder(output, top.get("work"))
        self._raise_faults()
        return JobBatch(self.path, Path(output), work, memory, measures, jobs)

    def _read_measures(
        self, top: Mapping[str, Any], protocols: Sequence[_NamedTable]
    ) -> tuple[str, ...]:
        """Return the measures of the summary, without repeats; add a fault for unknown ones."""
        of_pairs = [protocol.of_pairs for protocol in protocols]
        defaults = pair_measures.DEFAULTS if of_pairs and all(of_pairs) else MEASURES
        measures = top.get("measures", defaults)
        of_entities = [key for key in measures if not (any(of_pairs) and key in PAIRS_ONLY)]
        self._try("measures", parse_all, [complete_key(key) for key in of_entities])
        return tuple(dict.fromkeys(measures))

    def _check_protocols(self, protocols: Iterable[_NamedTable]) -> None:
        """Add faults for keys that only protocols of pairs have."""
        for protocol in protocols:
            for key in () if protocol.of_pairs else ("heads", "tails"):
                if key in protocol.table:
                    self._add_fault(protocol.full_key(key), "needs pairs = true; add it")

    def _check_jobs(self, jobs: Sequence[Job], graphs: Iterable[_NamedTable]) -> None:
        """Add faults for questions without a job, and for a file without jobs."""
        with_jobs = {job.graph for job in jobs}
        for graph in graphs:
            if not graph.of_graph and graph.name not in with_jobs:
                self._add_fault(
                    f"graphs.{graph.name}",
                    "no model and protocol belong to these questions; give a protocol for them, "
                    f"with no other keys than {', '.join(sorted(_KEYS_WITHOUT_GRAPH))}",
                )
        if not jobs and not self.faults:
            self._add_fault(
                "models",
                "no model belongs to any graph, so there is nothing to do; give one of the models "
                "a graph",
            )

    def _work_folder(self, output: str, folder: str | None) -> Path:
        """Return the folder for parts, by default the output folder; add a fault for a URL."""
        work = output if folder is None else self._resolve_path("work", folder, {})
        if is_url(work):
            key = "output" if folder is None else "work"
            self._add_fault(
                key,
                f"{url_text(work)!r} is a URL, but finished parts and the lock must "
                'be in local files; add work = "FOLDER", a folder of this machine, '
                "preferably one that the workers also see",
            )
        return Path(work)

    def _find_models(
        self, top: Mapping[str, Any], graphs: Iterable[_NamedTable]
    ) -> Mapping[str, Any]:
        """Return the entries of the models by name, including models that a pattern matches."""
        models: str | Mapping[str, Any] = top.get("models", {})
        if isinstance(models, str):
            models = {"scores": models}
        elif not _is_pattern_with_keys(models):
            return models
        n_faults = len(self.faults)
        keys = self._parse_table("models", models, _MODEL_KEYS)  # faults once, not per model
        pattern = models["scores"]
        if not self._check_url("models", pattern) or len(self.faults) > n_faults:
            return {}
        names = [graph.name for graph in graphs]
        paths_by_name = self._try("models", models_by_pattern, pattern, self.path.parent, names)
        return {name: {**keys, "scores": paths} for name, paths in (paths_by_name or {}).items()}

    def _try(self, key: str, check: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return what a function returns; if it raises an error, add a fault and return None."""
        try:
            return check(*args, **options)
        except KgtrecError as error:
            return self._add_fault(key, " ".join(str(error).splitlines()))

    def _add_fault(self, key: str, text: str) -> None:
        """Add a fault of a key, unless it was added before."""
        if (key, text) not in self.faults:
            self.faults.append((key, text))

    def _raise_faults(self) -> None:
        """Raise one FileError with all faults, if there are any."""
        if self.faults:
            count = f"{len(self.faults)} faults: " if len(self.faults) > 1 else ""
            texts = [
                f"{join_names(keys)}: {text}" for text, keys in group_equal(self.faults).items()
            ]
            raise FileError(self.path, found=count + "; ".join(texts), hint="correct the keys")

    def _parse_table(
        self, section: str, table: Any, schema: Mapping[str, Any], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the valid entries of a table; add faults for all others."""
        valid = {}
        prefix = f"{section}." if section else ""
        full_names = _OPTION_NAMES.get(section.partition(".")[0], {})
        for name, value in table.items():
            key = full_names.get(name, name)
            n_faults = len(self.faults)
            if key != name and key in table:
                self._add_fault(f"{prefix}{name}", f"means {key}; give one of them")
            elif key not in schema:
                self._try(f"{prefix}{key}", choose, "key", key, schema)
            else:
                self._check_value(f"{prefix}{key}", key, value, schema[key])
            if len(self.faults) == n_faults:
                valid[key] = value
        for key in needed:
            if key not in table:
                self._add_fault(f"{prefix}{key}", "missing")
        return valid

    def _check_value(self, full_key: str, key: str, value: Any, allowed: Any) -> None:
        """Add a fault unless a value is `allowed`: types, a list of choices, or `Settings`."""
        if isinstance(allowed, list):
            self._try(full_key, choose, key, value, allowed)
        elif allowed is Settings:
            self._try(full_key, Settings, **{key: value})
        elif not isinstance(value, allowed) or type(value) is bool is not allowed:
            types = allowed if isinstance(allowed, tuple) else (allowed,)
            names = " or ".join(_TYPE_NAMES[type_] for type_ in types)
            self._add_fault(full_key, f"{value!r} is not {names}")
        elif value in ("", [], {}) and key != "protocols":
            self._add_fault(full_key, "empty")
        elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
            self._add_fault(full_key, f"{value!r} is not a list of strings")

    def _parse_tables(
        self,
        section: str,
        tables: Mapping[str, Any],
        schema: Mapping[str, Any],
        key_of_string: str = "",
        needed: tuple[str, ...] = (),
    ) -> list[_NamedTable]:
        """Return the entries of a section: graphs, models or protocols.

        An entry that is a string is the value of the key `key_of_string`.
        """
        entries = []
        for name, table in tables.items():
            full_name = f"{section}.{name}"
            if not _VALID_NAME.fullmatch(name):
                self._add_name_fault(section, full_name)
                continue
            if key_of_string and isinstance(table, str):
                table = {key_of_string: table}
            if isinstance(table, Mapping):
                valid = self._parse_table(full_name, table, schema, needed)
                entries.append(_NamedTable(section, name, valid))
            else:
                self._add_fault(full_name, f"{table!r} is not a table")
        return entries

    def _add_name_fault(self, section: str, full_name: str) -> None:
        """Add the fault of a name that cannot be the name of a folder of ranks."""
        models = self.content.get("models")
        by_pattern = section == "models" and (
            isinstance(models, str) or _is_pattern_with_keys(models)
        )
        text = "a name must begin with a letter, then have only letters, digits and . _ + -"
        advice = "; rename the file, or list the models by name" if by_pattern else ""
        self._add_fault(full_name, text + advice)

    def _check_source(self, graph: _NamedTable) -> None:
        """Add faults unless a graph has exactly one source of questions, and only keys of it."""
        sources = [key for key in _SOURCE_KEYS if key in graph.table]
        if len(sources) != 1:
            problem = " and ".join(sources) or "none"
            self._add_fault(
                f"graphs.{graph.name}",
                f"found {problem}; give exactly one of {', '.join(_SOURCE_KEYS)}",
            )
            return
        source = sources[0]
        for key in graph.table:
            if key not in (source, *_SOURCE_KEYS[source]):
                self._add_fault(
                    graph.full_key(key), f"does not combine with {source}; leave it out"
                )
        if "qrels" in graph.table and "documents" not in graph.table:
            self._add_fault(
                graph.full_key("documents"),
                "missing; give the file with the documents' names, in the order of the columns",
            )

    def _build_job(
        self, model: _NamedTable, graph: _NamedTable, protocol: _NamedTable
    ) -> Job | None:
        """Return the job of a model, a graph and a protocol; None if they do not combine."""
        if not (self._combines(model, graph) and self._combines(model, protocol)):
            return None
        scores = self._find_scores(model, graph)
        fitted = self._fit_protocol(protocol, graph)
        if scores is None or fitted is None:
            return None
        if "columns" in model.table:
            if not graph.of_graph:
                self._add_fault(model.full_key("columns"), "needs a graph; leave it out")
                return None
            graph = replace(graph, table={**graph.table, "columns": model.table["columns"]})
        names = {"graph": graph.name, "split": fitted.table.get("split", "test")}
        request, settings = self._build_request(graph, fitted, names)
        in_scores = names | {"model": model.name, "protocol": protocol.name}
        path = self._resolve_path(model.full_key("scores"), scores, in_scores)
        vectors = self._read_vectors(model, names)
        job = Job(model.name, graph.name, protocol.name, request, path, settings=settings)
        if fitted.of_pairs:
            self._check_pairs(model, fitted)
            settings = settings | {"vectors": vectors}
            pairs = self._build_pair_request(request, settings, path)
            return replace(job, request=pairs, settings=settings)
        of_vectors = self._check_vectors(model, graph, vectors, path)
        higher_is_better = not model.table.get("lower_is_better", False)
        return replace(
            job, higher_is_better=higher_is_better, vectors=vectors if of_vectors else None
        )

    def _combines(self, model: _NamedTable, entry: _NamedTable) -> bool:
        """Return whether a model is evaluated on a graph, or under a protocol: by default, on all.

        Adds faults for unknown names in the model's list.
        """
        key = entry.section
        for name in model.table.get(key, []):
            known = self.content.get(key, _PROTOCOLS)
            self._try(model.full_key(key), choose, key[:-1], name, known)
        return entry.name in model.table.get(key, [entry.name])

    def _find_scores(self, model: _NamedTable, graph: _NamedTable) -> str | None:
        """Return the path of a model's scores, unresolved; None if it has none for the graph."""
        scores = model.table["scores"]
        if not isinstance(scores, Mapping):
            return scores
        for name, path in scores.items():
            full_key = model.full_key(f"scores.{name}")
            self._try(full_key, choose, "graph", name, self.content["graphs"])
            if not isinstance(path, str) or not path:
                self._add_fault(full_key, f"{path!r} is not a path")
        path = scores.get(graph.name)
        return path if isinstance(path, str) else None

    def _fit_protocol(self, protocol: _NamedTable, graph: _NamedTable) -> _NamedTable | None:
        """Return the protocol for the questions of a graph; None if it does not apply to them.

        Questions without a graph have no split and no filter, so the protocol that applies if the
        job file has none loses its split.
        """
        if graph.of_graph:
            return protocol
        if "protocols" not in self.content:
            return replace(protocol, table={})
        return protocol if _KEYS_WITHOUT_GRAPH.issuperset(protocol.table) else None

    def _read_vectors(self, model: _NamedTable, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the keys that say how vectors are scored; add faults for unknown models."""
        vectors = {key: model.table[key] for key in _VECTOR_KEYS if key in model.table}
        if "model" in vectors:
            self._try(model.full_key("model"), check_model, vectors["model"])
        if "model_config" in vectors:
            full_key = model.full_key("model_config")
            vectors["model_config"] = self._resolve_path(full_key, vectors["model_config"], names)
        return vectors

    def _check_vectors(
        self, model: _NamedTable, graph: _NamedTable, vectors: Mapping[str, Any], path: str
    ) -> bool:
        """Return whether scores are vectors of a model; add faults for keys without effect."""
        is_named = any(key in vectors for key in _NAMING_KEYS)
        of_vectors = is_named or (graph.of_graph and self.names_model(path))
        if of_vectors and not graph.of_graph:
            self._add_fault(
                model.full_key(next(iter(vectors))),
                "vectors of a model answer only questions to a graph; list its graphs = [...]",
            )
        for key in vectors if not of_vectors else ():
            self._add_fault(model.full_key(key), "has no effect without model; leave it out")
        if of_vectors and "lower_is_better" in model.table:
            self._add_fault(
                model.full_key("lower_is_better"),
                "has no effect on vectors of a model, whose formula decides; leave it out",
            )
        return of_vectors

    def _check_pairs(self, model: _NamedTable, protocol: _NamedTable) -> None:
        """Add faults for keys that do not combine with pairs."""
        keys = [protocol.full_key(key) for key in protocol.table if key not in PAIR_KEYS]
        if "lower_is_better" in model.table:
            keys.append(model.full_key("lower_is_better"))
        for key in keys:
            self._add_fault(key, "does not combine with pairs = true; leave it out")

    def _build_pair_request(
        self, request: QuestionRequest | AnswerRequest, resolved: dict[str, Any], scores: str
    ) -> PairRequest:
        """Return the request of a job of pairs, from resolved settings."""
        assert isinstance(request, QuestionRequest)
        labels = tuple(
            (key, resolved[key]) for key in ("heads", "tails", "relations") if key in resolved
        )
        return PairRequest(
            graph=request.graph,
            split=resolved.get("split", "test"),
            filter=request.filters[0],
            labels=labels,
            unknown=resolved.get("unknown", "error"),
            columns=request.column_labels,
            vectors=tuple(sorted(resolved["vectors"].items())),
            scores=scores,
        )

    def _build_request(
        self, graph: _NamedTable, protocol: _NamedTable, names: Mapping[str, str]
    ) -> tuple[QuestionRequest | AnswerRequest, dict[str, Any]]:
        """Return the request for the questions of a graph, and all settings with resolved paths."""
        settings = self._resolve(protocol, names)
        if graph.of_graph:
            return self._build_question_request(graph, settings, names)
        file_options = self._resolve(graph, names)
        least = {key: settings[key] for key in ("min_answers",) if key in settings}
        return AnswerRequest(**file_options, **least), settings | file_options

    def _build_question_request(
        self, graph: _NamedTable, settings: dict[str, Any], names: Mapping[str, str]
    ) -> tuple[QuestionRequest, dict[str, Any]]:
        """Return the request for a split of a graph, and the settings with its order of columns."""
        options = {
            key: value
            for key, value in settings.items()
            if _PROTOCOL_KEYS[key] is not Settings and key not in ("pairs", "heads", "tails")
        }
        splits = options.pop("filter", "all")
        options["filters"] = (tuple(splits) if isinstance(splits, list) else splits,)
        form, folder = split_format(graph.table["path"])
        folder = form + self._resolve_path(f"graphs.{graph.name}", folder, {})
        if "columns" in graph.table:
            path = self._resolve_path(graph.full_key("columns"), graph.table["columns"], names)
            options["column_labels"] = path
            settings = settings | {"column_labels": path}
        return QuestionRequest(folder, progress=False, **options), settings

    def _resolve(self, entry: _NamedTable, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the keys of an entry, with resolved paths of files."""
        resolved = dict(entry.table)
        for key, value in entry.table.items():
            full_key = entry.full_key(key)
            if key in FILE_KEYS:
                resolved[key] = self._resolve_path(full_key, value, names)
            elif key == "known":
                resolved[key] = [self._resolve_path(full_key, path, names) for path in value]
        return resolved

    def _resolve_path(self, key: str, path: str, names: Mapping[str, str]) -> str:
        """Return a path of the job file with names filled in, relative to the job file's folder."""
        for name in _PLACEHOLDER.findall(path):
            self._try(key, choose, "name", name, names, f"of {path!r} is unknown")
        if "\0" in path:
            self._add_fault(key, f"{path!r} is not a path, because it contains a null character")
        filled = _PLACEHOLDER.sub(lambda match: names.get(match.group(1), match.group()), path)
        self._check_url(key, filled)
        if not is_url(filled):
            filled = str(self.path.parent / filled)
        return local_path(filled) or url_text(filled) if is_location(filled) else filled

    def _check_url(self, key: str, path: str) -> bool:
        """Return whether kgtrec can open a path; add a fault for a URL of an unknown kind."""
        unknown = is_url(path) and not is_location(path)
        if unknown:
            self._add_fault(key, f"{path!r} is a URL; {_MOUNT}")
        return not unknown
