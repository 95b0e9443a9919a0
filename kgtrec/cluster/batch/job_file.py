"""The job file of a batch: models x graphs x protocols, as TOML, strictly checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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


class _Reader:
    """Reads a job file and collects all its faults, so that one error reports them together."""

    def __init__(self, path: Path, content: dict[str, Any], names_model: NamesModel) -> None:
        self.path, self.content, self.faults = path, content, list[tuple[str, str]]()
        self.names_model = names_model

    def read_batch(self) -> JobBatch:
        """Return the content of the file; FileError that lists all its faults."""
        top = self._parse_table("", self.content, _BATCH_KEYS, ("output", "graphs", "models"))
        graphs = self._parse_tables("graphs", top.get("graphs", {}), _GRAPH_KEYS, "path")
        for name, source in graphs.items():
            self._check_source(f"graphs.{name}", source)
        models = self._parse_tables(
            "models", self._find_models(top, graphs), _MODEL_KEYS, "scores", ("scores",)
        )
        protocols = self._parse_tables(
            "protocols", top.get("protocols", _PROTOCOLS), _PROTOCOL_KEYS
        )
        of_pairs = [settings.get("pairs", False) for settings in protocols.values()]
        defaults = pair_measures.DEFAULTS if of_pairs and all(of_pairs) else MEASURES
        measures, memory = top.get("measures", defaults), top.get("memory", "2GB")
        usual = [key for key in measures if not (any(of_pairs) and key in PAIRS_ONLY)]
        self._try("measures", parse_all, [complete_key(key) for key in usual])
        self._try("memory", memory_bytes, memory)
        self._raise_faults()
        jobs = tuple(
            job
            for graph, source in graphs.items()
            for protocol, settings in protocols.items()
            for model, model_table in models.items()
            for job in self._build_jobs(model, model_table, graph, source, protocol, settings)
        )
        for protocol, settings in protocols.items():
            for key in () if settings.get("pairs") else ("heads", "tails"):
                if key in settings:
                    self._add_fault(f"protocols.{protocol}.{key}", "needs pairs = true; add it")
        for graph, source in graphs.items():
            if "path" not in source and all(job.graph != graph for job in jobs):
                self._add_fault(
                    f"graphs.{graph}",
                    "no model and protocol belong to these questions; give a protocol for them, "
                    f"with no other keys than {', '.join(sorted(_KEYS_WITHOUT_GRAPH))}",
                )
        if not jobs and not self.faults:
            self._add_fault(
                "models",
                "no model belongs to any graph, so there is nothing to do; give one of the models "
                "a graph",
            )
        output = self._resolve_path("output", top["output"], {})
        work = self._work_folder(output, top.get("work"))
        self._raise_faults()
        columns = tuple(dict.fromkeys(measures))
        return JobBatch(self.path, Path(output), work, memory, columns, jobs)

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

    def _find_models(self, top: Mapping[str, Any], graphs: Iterable[str]) -> Mapping[str, Any]:
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
        paths_by_name = self._try("models", models_by_pattern, pattern, self.path.parent, graphs)
        return {name: {**keys, "scores": paths} for name, paths in (paths_by_name or {}).items()}

    def _try(self, key: str, check: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Return what a function returns; if it raises an error, add a fault and return None."""
        try:
            return check(*args, **more)
        except KgtrecError as error:
            return self._add_fault(key, " ".join(str(error).splitlines()))

    def _add_fault(self, key: str, text: str) -> None:
        """Add a fault of a key, unless it was added before."""
        if (key, text) not in self.faults:
            self.faults.append((key, text))

    def _raise_faults(self) -> None:
        """Raise one FileError with all faults, if there are any."""
        if self.faults:
            more = f"{len(self.faults)} faults: " if len(self.faults) > 1 else ""
            texts = [
                f"{join_names(keys)}: {text}" for text, keys in group_equal(self.faults).items()
            ]
            raise FileError(self.path, found=more + "; ".join(texts), hint="correct the keys")

    def _parse_table(
        self, section: str, table: Any, schema: Mapping[str, Any], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the valid entries of a table; add faults for all others."""
        valid = {}
        prefix = f"{section}." if section else ""
        aliases = _OPTION_NAMES.get(section.partition(".")[0], {})
        for key, value in table.items():
            if aliases.get(key, key) != key:
                if aliases[key] in table:
                    self._add_fault(f"{prefix}{key}", f"means {aliases[key]}; give one of them")
                    continue
                key = aliases[key]
            kind, full_key, n_faults = schema.get(key), f"{prefix}{key}", len(self.faults)
            if kind is None:
                self._try(full_key, choose, "key", key, schema)
            elif isinstance(kind, list):
                self._try(full_key, choose, key, value, kind)
            elif kind is Settings:
                self._try(full_key, Settings, **{key: value})
            elif not isinstance(value, kind) or type(value) is bool is not kind:
                kinds = kind if isinstance(kind, tuple) else (kind,)
                self._add_fault(
                    full_key,
                    f"{value!r} is not {' or '.join(_TYPE_NAMES[type_] for type_ in kinds)}",
                )
            elif value in ("", [], {}) and key != "protocols":
                self._add_fault(full_key, "empty")
            elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
                self._add_fault(full_key, f"{value!r} is not a list of strings")
            if len(self.faults) == n_faults:
                valid[key] = value
        for key in needed:
            if key not in table:
                self._add_fault(f"{prefix}{key}", "missing")
        return valid

    def _parse_tables(
        self,
        kind: str,
        entries: Any,
        schema: Mapping[str, Any],
        short: str = "",
        needed: tuple[str, ...] = (),
    ) -> dict[str, dict[str, Any]]:
        """Return the tables of graphs, models or protocols by name.

        An entry that is a string is the value of the key `short`.
        """
        tables = {}
        for name, entry in entries.items():
            section = f"{kind}.{name}"
            if not _VALID_NAME.fullmatch(name):
                models = self.content.get("models")
                by_pattern = kind == "models" and (
                    isinstance(models, str) or _is_pattern_with_keys(models)
                )
                more = "; rename the file, or list the models by name" * by_pattern
                text = "a name must begin with a letter, then have only letters, digits and . _ + -"
                self._add_fault(section, text + more)
                continue
            if short and isinstance(entry, str):
                entry = {short: entry}
            if isinstance(entry, Mapping):
                tables[name] = self._parse_table(section, entry, schema, needed)
            else:
                self._add_fault(section, f"{entry!r} is not a table")
        return tables

    def _check_source(self, section: str, source: dict[str, Any]) -> None:
        """Add faults unless a graph has exactly one source of questions, and only keys of it."""
        kinds = [key for key in _SOURCE_KEYS if key in source]
        if len(kinds) != 1:
            problem = " and ".join(kinds) or "none"
            self._add_fault(
                section, f"found {problem}; give exactly one of {', '.join(_SOURCE_KEYS)}"
            )
            return
        for key in source:
            if key not in (*kinds, *_SOURCE_KEYS[kinds[0]]):
                self._add_fault(
                    f"{section}.{key}", f"does not combine with {kinds[0]}; leave it out"
                )
        if "qrels" in source and "documents" not in source:
            self._add_fault(
                f"{section}.documents",
                "missing; give the file with the documents' names, in the order of the columns",
            )

    def _build_jobs(
        self,
        model: str,
        model_table: dict[str, Any],
        graph: str,
        source: dict[str, Any],
        protocol: str,
        settings: dict[str, Any],
    ) -> list[Job]:
        """Return the job of a model, a graph and a protocol, as a list.

        The list is empty if the job file does not combine them.
        """
        section = f"models.{model}"
        for key, name in (("graphs", graph), ("protocols", protocol)):
            for other in model_table.get(key, []):
                known = self.content.get(key, _PROTOCOLS)
                self._try(f"{section}.{key}", choose, key[:-1], other, known)
            if name not in model_table.get(key, [name]):
                return []
        scores = model_table["scores"]
        if isinstance(scores, Mapping):
            for other, path in scores.items():
                full_key = f"{section}.scores.{other}"
                self._try(full_key, choose, "graph", other, self.content["graphs"])
                if not isinstance(path, str) or not path:
                    self._add_fault(full_key, f"{path!r} is not a path")
            scores = scores.get(graph)
            if not isinstance(scores, str):
                return []
        names = {"graph": graph, "split": settings.get("split", "test")}
        of_pairs = settings.get("pairs", False)
        if of_pairs and "path" not in source:
            return []
        if "path" not in source:
            settings = settings if "protocols" in self.content else {}
            if not _KEYS_WITHOUT_GRAPH.issuperset(settings):
                return []
        if "columns" in model_table:
            if "path" not in source:
                self._add_fault(f"{section}.columns", "needs a graph; leave it out")
                return []
            source = source | {"columns": model_table["columns"]}
        request, resolved = self._build_request(graph, source, protocol, settings, names)
        path = self._resolve_path(
            f"{section}.scores", scores, names | {"model": model, "protocol": protocol}
        )
        vectors = {key: model_table[key] for key in _VECTOR_KEYS if key in model_table}
        if "model" in vectors:
            self._try(f"{section}.model", check_model, vectors["model"])
        if "model_config" in vectors:
            key = f"{section}.model_config"
            vectors["model_config"] = self._resolve_path(key, vectors["model_config"], names)
        if of_pairs:
            self._check_pairs(model, model_table, protocol, settings)
            resolved["vectors"] = vectors
            pairs = self._build_pair_request(request, resolved, path)
            return [Job(model, graph, protocol, pairs, path, True, resolved)]
        of_vectors = self._check_vectors(section, model_table, vectors, path, source)
        higher = not model_table.get("lower_is_better", False)
        return [
            Job(
                model,
                graph,
                protocol,
                request,
                path,
                higher,
                resolved,
                vectors if of_vectors else None,
            )
        ]

    def _check_vectors(
        self,
        section: str,
        model_table: Mapping[str, Any],
        vectors: Mapping[str, Any],
        path: str,
        source: Mapping[str, Any],
    ) -> bool:
        """Return whether scores are vectors of a model; add faults for keys without effect."""
        named = any(key in vectors for key in _NAMING_KEYS)
        of_vectors = named or ("path" in source and self.names_model(path))
        if of_vectors and "path" not in source:
            self._add_fault(
                f"{section}.{next(iter(vectors))}",
                "vectors of a model answer only questions to a graph; list its graphs = [...]",
            )
        for key in vectors if not of_vectors else ():
            self._add_fault(f"{section}.{key}", "has no effect without model; leave it out")
        if of_vectors and "lower_is_better" in model_table:
            self._add_fault(
                f"{section}.lower_is_better",
                "has no effect on vectors of a model, whose formula decides; leave it out",
            )
        return of_vectors

    def _check_pairs(
        self,
        model: str,
        model_table: dict[str, Any],
        protocol: str,
        settings: dict[str, Any],
    ) -> None:
        """Add faults for keys that do not combine with pairs."""
        keys = [f"protocols.{protocol}.{key}" for key in settings if key not in PAIR_KEYS]
        if "lower_is_better" in model_table:
            keys.append(f"models.{model}.lower_is_better")
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
        self,
        graph: str,
        source: dict[str, Any],
        protocol: str,
        settings: dict[str, Any],
        names: Mapping[str, str],
    ) -> tuple[QuestionRequest | AnswerRequest, dict[str, Any]]:
        """Return the request for the questions of a graph, and all settings with resolved paths."""
        resolved = self._resolve(f"protocols.{protocol}", settings, names)
        if "path" in source:
            options = {
                key: value
                for key, value in resolved.items()
                if _PROTOCOL_KEYS[key] is not Settings and key not in ("pairs", "heads", "tails")
            }
            name = options.pop("filter", "all")
            options["filters"] = (tuple(name) if isinstance(name, list) else name,)
            form, folder = split_format(source["path"])
            folder = form + self._resolve_path(f"graphs.{graph}", folder, {})
            if "columns" in source:
                path = self._resolve_path(f"graphs.{graph}.columns", source["columns"], names)
                options["column_labels"] = resolved["column_labels"] = path
            return QuestionRequest(folder, progress=False, **options), resolved
        file_options = self._resolve(f"graphs.{graph}", source, names)
        least = {key: resolved[key] for key in ("min_answers",) if key in resolved}
        return AnswerRequest(**file_options, **least), resolved | file_options

    def _resolve(
        self, section: str, table: Mapping[str, Any], names: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return a table in which the paths of files are resolved."""
        resolved = dict(table)
        for key, value in table.items():
            if key in FILE_KEYS:
                resolved[key] = self._resolve_path(f"{section}.{key}", value, names)
            elif key == "known":
                resolved[key] = [
                    self._resolve_path(f"{section}.{key}", path, names) for path in value
                ]
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
