"""The job file of a batch: models x graphs x protocols, as TOML, strictly checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from kgtrec._internal.locations import files_below, is_location, local_path, read_bytes
from kgtrec._internal.structured import parse_toml
from kgtrec._internal.urls import is_url, url_text
from kgtrec.cluster.inputs import AnswerRequest, QuestionRequest
from kgtrec.cluster.plan import memory_bytes
from kgtrec.errors import FileError, InputError, KgtrecError, PathName, choose
from kgtrec.graph.formats import split_format
from kgtrec.measures import parse_all
from kgtrec.ranking.settings import Settings

_GRAPH = "{graph}"


def models_by_pattern(
    pattern: str, folder: Path, graphs: Iterable[str]
) -> dict[str, str | dict[str, str]]:
    """Scores of every model that matches a pattern, by the model's name, sorted."""
    if _GRAPH not in pattern:
        return dict(_matching(pattern, folder))
    models: dict[str, str | dict[str, str]] = {}
    for graph in graphs:
        for name, path in _matching(pattern.replace(_GRAPH, graph), folder).items():
            by_graph = models.setdefault(name, {})
            assert isinstance(by_graph, dict)
            by_graph[graph] = path
    return dict(sorted(models.items()))


def _named(pattern: str, folder: Path) -> list[tuple[str, bool]]:
    """Files and folders that a pattern matches, and which are folders; sorted."""
    if is_location(folder / pattern) and not is_location(pattern):
        pattern = f"{url_text(str(folder))}/{pattern}"
    if is_location(pattern) and (local := local_path(pattern)) is not None:
        pattern = local
    if not is_location(pattern):
        paths = sorted(glob(pattern, root_dir=folder, recursive=True))
        return [(path, (folder / path).is_dir()) for path in paths]
    steps = pattern.split("/")
    fixed = next((n for n, step in enumerate(steps) if has_magic(step)), len(steps) - 1)
    base = "/".join(steps[:fixed])
    files = {tuple(name.split("/")) for name in files_below(base)}
    folders = {name[:n] for name in files for n in range(1, len(name))}
    matching = sorted(name for name in files | folders if _matches(name, tuple(steps[fixed:])))
    return [("/".join([base, *name]), name in folders) for name in matching]


def _matches(name: tuple[str, ...], steps: tuple[str, ...]) -> bool:
    """Whether the steps of a name match those of a pattern, as in `glob`."""
    if not steps or not name:
        return not name and all(step == "**" for step in steps)
    first = steps[0]
    hidden = name[0].startswith(".") and not first.startswith(".")
    if first == "**":
        return _matches(name, steps[1:]) or (not hidden and _matches(name[1:], steps))
    return not hidden and fnmatchcase(name[0], first) and _matches(name[1:], steps[1:])


def _matching(pattern: str, folder: Path) -> dict[str, str]:
    paths: dict[str, str] = {}
    for path, is_folder in _named(pattern, folder):
        name = Path(path).name if is_folder else Path(path).stem
        if name in paths:
            raise InputError(
                f"{paths[name]!r} and {path!r} would have the same model name {name!r}; list the "
                "models by name"
            )
        paths[name] = path
    if not paths:
        raise InputError(f"no file matches {pattern!r}; correct the pattern")
    return dict(sorted(paths.items()))


def read_toml(path: Path, kind: str = "a job file") -> dict[str, Any]:
    """Content of a TOML file in plain Python types; `kind` names the file in messages."""
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
        raise FileError(path, found=error.strerror or str(error), hint=hint) from None
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte {error.start})"
        raise FileError(path, found=problem, hint="save the file as UTF-8") from None
    except ValueError as error:
        raise FileError(path, found=f"not TOML: {error}", hint="correct that place") from None


MEASURES = (
    "realistic.micro.mr", "realistic.micro.mrr", "realistic.micro.hits@1", "realistic.micro.hits@3",
    "realistic.micro.hits@10", "realistic.micro.amri", "realistic.macro.mrr", "macro.map_cut_20",
    "macro.ndcg_cut_20"
)  # fmt: skip
"""Columns of the summary unless the file says otherwise."""

# A letter first: readers of a dataset take folders that look like numbers for numbers.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*")
_MOUNT = (
    "kgtrec reads URLs of s3, gs and file; for others, copy or mount the files and give their path"
)
_PLACE = re.compile(r"\{([^{}]*)\}")

_PROTOCOLS = {"test": {"split": "test"}}  # unless the file has some
_SIDES = ["head", "tail", "both", "relation", "qualifier"]
# Rows of keys: types, a list of choices, or `Settings`, which checks its fields.
_BATCH = {
    "output": str, "work": str, "graphs": Mapping, "models": (str, Mapping), "protocols": Mapping,
    "memory": str, "measures": list,
}  # fmt: skip
_GRAPH_KEYS = {
    "path": str, "columns": str, "questions": str, "candidates": str, "known_has_answers": bool,
    "qrels": str, "queries": str, "documents": str, "level": int,
}  # fmt: skip
_SOURCES = {
    "path": ("columns",),
    "questions": ("candidates", "known_has_answers"),
    "qrels": ("queries", "documents", "level"),
}
"""Sources of questions, and the keys of each."""
_MODEL = {"scores": (str, Mapping), "lower_is_better": bool, "graphs": list, "protocols": list}
_PROTOCOL = {
    "split": str, "sides": _SIDES, "filter": (str, list), "rows": Settings, "nan": Settings,
    "known": list, "entities": str, "relations": str, "type_constraints": str, "candidates": str,
    "columns": ["entities", "candidates"], "outside": ["error", "worst"],
    "unknown": ["error", "skip"], "context": ["time", "qualifiers"], "atol": Settings,
    "rtol": Settings,
}  # fmt: skip
_OF_ANSWERS = {"nan", "atol", "rtol"}  # keys of protocols for questions without a graph
_KINDS = {str: "a string", bool: "true or false", list: "a list", Mapping: "a table",
          int: "a whole number"}  # fmt: skip
FILE_KEYS = ("entities", "relations", "type_constraints", "questions", "qrels", "queries",
             "documents", "candidates", "column_labels")  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One evaluation: a model on a graph under a protocol.

    - model, graph, protocol: Names, as in the job file.
    - request: The questions to ask.
    - scores: File or folder with the model's scores.
    - settings: The protocol's keys as in the job file, its paths resolved.
    """

    model: str
    graph: str
    protocol: str
    request: QuestionRequest | AnswerRequest
    scores: str
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_graph(self) -> bool:
        """Whether the questions come from a graph."""
        return isinstance(self.request, QuestionRequest)

    @property
    def sides(self) -> str:
        """The sides that are asked, as spelt in keys of measures."""
        return self.settings.get("sides", "both") if self.of_graph else "all"

    def measure(self, key: str) -> str | None:
        """A measure for this job, by default of the asked sides; None if its side is not asked."""
        sided = with_side(key, self.sides)
        first = sided.partition(".")[0]
        return sided if first == self.sides or (self.sides == "both" and first != "all") else None

    def named(self, error: Exception) -> str:
        """A message, after the job file's key for the questions' file that it is about."""
        path, files = getattr(error, "path", None), getattr(self.request, "files", {})
        key = next((f"graphs.{self.graph}.{key}: " for key in files if files[key] == path), "")
        return f"{key}{error}"

    def scoring(self, run_depth: int) -> Settings:
        """Settings to rank its scores, with `run_depth` candidates kept per question."""
        own = {key: one for key, one in self.settings.items() if key in _OF_ANSWERS}
        return Settings.convert(
            run_depth=run_depth, higher_is_better=self.higher_is_better, threads=1, **own
        )

    @property
    def name(self) -> str:
        """``model on graph, protocol``, for people."""
        return f"{self.model} on {self.graph}, {self.protocol}"


@dataclass(frozen=True)
class JobBatch:
    """The content of a job file.

    - path, output: The file, and the folder for the results, which may be at a URL.
    - work: Folder of this machine for files that are needed until all jobs are done.
    - memory: Most that one task may use, such as "2GB".
    - measures: Columns of the summary; a key without a side covers all sides that a protocol
      asks.
    - jobs: Graph by graph, protocol by protocol, in the order of the file.
    """

    path: Path
    output: Path
    work: Path
    memory: str
    measures: tuple[str, ...]
    jobs: tuple[Job, ...]

    @property
    def place(self) -> str:
        """The output folder as a path or URL for messages and files."""
        path = str(self.output)
        return url_text(path) if is_location(path) else path


def with_side(key: str, side: str = "both") -> str:
    """A measure's key; a key without a side gets this one."""
    return key if key.partition(".")[0] in ("all", *_SIDES) else f"{side}.{key}"


def read_jobs(path: PathName) -> JobBatch:
    """Read and check a job file.

    Paths in it are relative to its folder. ``{model}``, ``{graph}``, ``{protocol}`` and ``{split}``
    in a path of scores are replaced by the names; also ``{graph}`` and ``{split}`` in a protocol's
    path. Models may be a pattern, see `kgtrec.cluster.batch.job_file`.
    """
    path = Path(path)
    return _Reader(path, read_toml(path)).batch()


class _Reader:
    """Collects all faults before it raises an error."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path, self.content, self.faults = path, content, list[str]()

    def batch(self) -> JobBatch:
        top = self._table("", self.content, _BATCH, ("output", "graphs", "models"))
        graphs = self._named("graphs", top.get("graphs", {}), _GRAPH_KEYS, "path")
        for name, source in graphs.items():
            self._check_source(f"graphs.{name}", source)
        models = self._named("models", self._models(top, graphs), _MODEL, "scores", ("scores",))
        protocols = self._named("protocols", top.get("protocols", _PROTOCOLS), _PROTOCOL)
        measures, memory = top.get("measures", MEASURES), top.get("memory", "2GB")
        self._tried("measures", parse_all, [with_side(key) for key in measures])
        self._tried("memory", memory_bytes, memory)
        self._complain()
        jobs = tuple(
            job
            for graph, source in graphs.items()
            for protocol, settings in protocols.items()
            for model, what in models.items()
            for job in self._job(model, what, graph, source, protocol, settings)
        )
        for graph, source in graphs.items():
            if "path" not in source and all(job.graph != graph for job in jobs):
                self._fault(
                    f"graphs.{graph}",
                    "no model and protocol belong to these questions; give a protocol for them, "
                    f"with no other keys than {', '.join(sorted(_OF_ANSWERS))}",
                )
        if not jobs and not self.faults:
            self._fault(
                "models",
                "no model belongs to any graph, so there is nothing to do; give one of the models "
                "a graph",
            )
        output = self._path("output", top["output"], {})
        work = self._work(output, top.get("work"))
        self._complain()
        columns = tuple(dict.fromkeys(measures))
        return JobBatch(self.path, Path(output), work, memory, columns, jobs)

    def _work(self, output: str, named: str | None) -> Path:
        """The folder for parts: in the output folder, unless that is at a URL."""
        work = output if named is None else self._path("work", named, {})
        if is_url(work):
            key = "output" if named is None else "work"
            self._fault(key, f"{url_text(work)!r} is a URL, but finished parts and the lock must "
                        'be in local files; add work = "FOLDER", a folder of this machine, '
                        "preferably one that the workers also see")  # fmt: skip
        return Path(work)

    def _models(self, top: Mapping[str, Any], graphs: Iterable[str]) -> Mapping[str, Any]:
        """The models by name, including those of a pattern."""
        models: str | Mapping[str, Any] = top.get("models", {})
        if not isinstance(models, str):
            return models
        if not self._is_readable("models", models):
            return {}
        found = self._tried("models", models_by_pattern, models, self.path.parent, graphs)
        return {name: {"scores": paths} for name, paths in (found or {}).items()}

    def _tried(self, key: str, check: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """The value of a function; None, and a fault of a key, if it raises an error."""
        try:
            return check(*args, **more)
        except KgtrecError as error:
            return self._fault(key, " ".join(str(error).splitlines()))

    def _fault(self, key: str, text: str) -> None:
        """Add a fault, once."""
        if f"{key}: {text}" not in self.faults:
            self.faults.append(f"{key}: {text}")

    def _complain(self) -> None:
        if self.faults:
            more = f"{len(self.faults)} faults: " if len(self.faults) > 1 else ""
            raise FileError(self.path, found=more + "; ".join(self.faults), hint="correct the keys")

    def _table(
        self, place: str, table: Any, schema: Mapping[str, Any], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The valid keys of one table; faults for the others."""
        right = {}
        prefix = f"{place}." if place else ""
        for key, value in table.items():
            kind, at, before = schema.get(key), f"{prefix}{key}", len(self.faults)
            if kind is None:
                self._tried(at, choose, "key", key, schema)
            elif isinstance(kind, list):
                self._tried(at, choose, key, value, kind)
            elif kind is Settings:
                self._tried(at, Settings, **{key: value})
            elif not isinstance(value, kind) or type(value) is bool is not kind:
                kinds = kind if isinstance(kind, tuple) else (kind,)
                self._fault(at, f"{value!r} is not {' or '.join(_KINDS[one] for one in kinds)}")
            elif value in ("", [], {}) and key != "protocols":
                self._fault(at, "empty")
            elif isinstance(value, list) and not all(isinstance(one, str) for one in value):
                self._fault(at, f"{value!r} is not a list of strings")
            if len(self.faults) == before:
                right[key] = value
        for key in needed:
            if key not in table:
                self._fault(f"{prefix}{key}", "missing")
        return right

    def _named(
        self, kind: str, entries: Any, schema: Mapping[str, Any], short: str = "",
        needed: tuple[str, ...] = (),
    ) -> dict[str, dict[str, Any]]:  # fmt: skip
        """The tables of graphs, models or protocols; a string is the value of the key `short`."""
        tables = {}
        for name, what in entries.items():
            place = f"{kind}.{name}"
            if not _NAME.fullmatch(name):
                by_pattern = kind == "models" and isinstance(self.content.get("models"), str)
                more = "; rename the file, or list the models by name" * by_pattern
                text = "a name must begin with a letter, then have only letters, digits and . _ + -"
                self._fault(place, text + more)
                continue
            if short and isinstance(what, str):
                what = {short: what}
            if isinstance(what, Mapping):
                tables[name] = self._table(place, what, schema, needed)
            else:
                self._fault(place, f"{what!r} is not a table")
        return tables

    def _check_source(self, place: str, source: dict[str, Any]) -> None:
        """Add a fault unless a table of graphs names one source of questions, with its own keys."""
        kinds = [key for key in _SOURCES if key in source]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            self._fault(place, f"found {found}; give exactly one of {', '.join(_SOURCES)}")
            return
        for key in source:
            if key not in (*kinds, *_SOURCES[kinds[0]]):
                self._fault(f"{place}.{key}", f"does not combine with {kinds[0]}; leave it out")
        if "qrels" in source and "documents" not in source:
            self._fault(f"{place}.documents", "missing; give the file with the documents' names, "
                        "in the order of the columns")  # fmt: skip

    def _job(
        self, model: str, what: dict[str, Any], graph: str, source: dict[str, Any], protocol: str,
        settings: dict[str, Any],
    ) -> list[Job]:  # fmt: skip
        """The job of one model, graph and protocol; none if they do not belong together."""
        place = f"models.{model}"
        for key, name in (("graphs", graph), ("protocols", protocol)):
            for other in what.get(key, []):
                known = self.content.get(key, _PROTOCOLS)
                self._tried(f"{place}.{key}", choose, key[:-1], other, known)
            if name not in what.get(key, [name]):
                return []
        scores = what["scores"]
        if isinstance(scores, Mapping):
            for other, path in scores.items():
                at = f"{place}.scores.{other}"
                self._tried(at, choose, "graph", other, self.content["graphs"])
                if not isinstance(path, str) or not path:
                    self._fault(at, f"{path!r} is not a path")
            scores = scores.get(graph)
            if not isinstance(scores, str):
                return []
        names = {"graph": graph, "split": settings.get("split", "test")}
        if "path" not in source:
            settings = settings if "protocols" in self.content else {}
            if not _OF_ANSWERS.issuperset(settings):
                return []
        resolved = self._resolved(f"protocols.{protocol}", settings, names)
        request: QuestionRequest | AnswerRequest
        if "path" in source:
            asked = {key: one for key, one in resolved.items() if _PROTOCOL[key] is not Settings}
            name = asked.pop("filter", "all")
            asked["filters"] = (tuple(name) if isinstance(name, list) else name,)
            form, folder = split_format(source["path"])
            folder = form + self._path(f"graphs.{graph}", folder, {})
            if "columns" in source:
                path = self._path(f"graphs.{graph}.columns", source["columns"], names)
                asked["column_labels"] = resolved["column_labels"] = path
            request = QuestionRequest(folder, progress=False, **asked)
        else:
            of_files = self._resolved(f"graphs.{graph}", source, names)
            request, resolved = AnswerRequest(**of_files), resolved | of_files
        path = self._path(f"{place}.scores", scores, names | {"model": model, "protocol": protocol})
        higher = not what.get("lower_is_better", False)
        return [Job(model, graph, protocol, request, path, higher, resolved)]

    def _resolved(
        self, place: str, table: Mapping[str, Any], names: Mapping[str, str]
    ) -> dict[str, Any]:
        """A table with the paths of its files."""
        resolved = dict(table)
        for key, value in table.items():
            if key in FILE_KEYS:
                resolved[key] = self._path(f"{place}.{key}", value, names)
            elif key == "known":
                resolved[key] = [self._path(f"{place}.{key}", one, names) for one in value]
        return resolved

    def _path(self, place: str, path: str, names: Mapping[str, str]) -> str:
        """A path of the file with names filled in, relative to the file's folder."""
        for name in _PLACE.findall(path):
            self._tried(place, choose, "name", name, names, f"of {path!r} is unknown")
        if "\0" in path:
            self._fault(place, f"{path!r} is not a path, because it contains a null character")
        filled = _PLACE.sub(lambda match: names.get(match.group(1), match.group()), path)
        self._is_readable(place, filled)
        if not is_url(filled):
            filled = str(self.path.parent / filled)
        return local_path(filled) or url_text(filled) if is_location(filled) else filled

    def _is_readable(self, place: str, path: str) -> bool:
        """Whether it is no URL of an unknown kind, which is a fault."""
        unknown = is_url(path) and not is_location(path)
        if unknown:
            self._fault(place, f"{path!r} is a URL; {_MOUNT}")
        return not unknown
