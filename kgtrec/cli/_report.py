"""A command's results, and the one place that shows them: formats, files, figures and notes.

A command reads its files, calls one function and returns a `Report`. The class `Command` does the
rest: it checks the files named on the command line first, and shows the report last.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.files import check_writable, is_stream, write_text, write_together
from kgtrec._internal.locations import is_folder, names_in, real_path
from kgtrec._internal.text import LONGEST_MESSAGE, shorten, visible
from kgtrec.cli._types import PathType
from kgtrec.errors import KgtrecError, UsageError, suggestion

if TYPE_CHECKING:
    from kgtrec._internal.table import Table

FORMATS = ("table", "csv", "tsv", "markdown", "latex", "json")
Section = tuple[str, Sequence["Table"], str]
"""A heading, its tables, and a sentence on them."""
File = tuple[str | None, str | Callable[[str], object]]


class FailedInPart(KgtrecError):
    """Part of the work failed; the other results are shown."""


@dataclass
class Report:
    """Results in every format, with notes and figures.

    - text: For people.
    - data: For JSON; None if the command has no --format json.
    - rows: One table for CSV, TSV, Markdown and LaTeX.
    - forms: Formats with their own content.
    - notes: Lines for standard error, after the results.
    - files: Paths, None if a file is not asked for, each with its text or with what writes it.
    - content: What these files contain.
    - figures: What draws each figure, by the parameter that names the file, such as "plot".
    - pages: The text for a terminal of some columns, which shows it page by page.
    - code: The command's exit code.
    - error: The failure in spite of these results; the exit code is then 2.
    """

    text: Callable[[], str] | None = None
    data: Callable[[], object] | None = None
    rows: Table | None = None
    forms: Mapping[str, Callable[[], str | bytes]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: Sequence[File] = ()
    content: str = ""
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    pages: Callable[[int], str] | None = None
    code: int = 0
    error: str = ""

    @classmethod
    def of_table(cls, table: Table, text: Callable[[], str] | None = None, **more: Any) -> Report:
        """A report of one table; `text` may replace the table for people."""
        return cls(text or table.to_text, table.to_dict, table, **more)

    @classmethod
    def of_files(
        cls,
        tables: Mapping[str, Table],
        text: Callable[[], str] | None = None,
        named: str = "file",
        **more: Any,
    ) -> Report:
        """One table per file: blocks of text, JSON by file, or one table with the files' names."""
        if len(tables) > 1:
            from kgtrec._internal.table import stack_tables

            rows = stack_tables(tables, named)
        else:
            rows = next(iter(tables.values()))
        return cls(
            text or (lambda: blocks({file: table.to_text() for file, table in tables.items()})),
            lambda: single_or_all({file: table.to_dict() for file, table in tables.items()}),
            rows,
            **more,
        )

    @classmethod
    def of_tables(cls, tables: Mapping[str, Table], **more: Any) -> Report:
        """Several tables one after another, or one JSON object."""
        return cls(
            lambda: "\n\n".join(table.to_text() for table in tables.values()),
            lambda: {name: table.to_dict() for name, table in tables.items()},
            **more,
        )

    @classmethod
    def of_sections(
        cls, sections: Sequence[Section], data: object, rows: Table, **more: Any
    ) -> Report:
        """Headings, each with its tables and a sentence on them."""
        tables = [table for _, tables, _ in sections for table in tables]
        forms = {
            "markdown": lambda: _in_markdown(sections),
            "latex": lambda: "\n".join(table.to_latex() for table in tables),
        }
        return cls(lambda: _in_text(sections), lambda: data, rows, forms, **more)

    def has(self, form: str) -> bool:
        """Whether there is something to print."""
        if form == "table":
            return self.text is not None or form in self.forms
        return bool(self.data or self.rows or self.forms)

    def rendered(self, form: str) -> str | bytes:
        """The report in one of the formats of its command."""
        if form in self.forms:
            return self.forms[form]()
        if form == "table" and self.text is not None:
            return self.text()
        if form == "json" and self.data is not None:
            from kgtrec._internal.table import dump_json

            return dump_json(self.data())
        if self.rows is None:
            raise UsageError(f"--format {form} writes only one table; choose it with --show")
        return rendered(self.rows, form)

    def write(self) -> list[str]:
        """Write the files; returns a line about them, if there are any."""
        written = []
        for path, content in self.files:
            if not path:
                continue
            written.append(visible(path))
            if isinstance(content, str):
                write_text(path, content)
            else:
                content(path)
        said = f"wrote {', '.join(written)}" + f": {self.content}" * bool(self.content)
        return [said] if written else []

    def figure(self, name: str) -> Any:
        """One of the figures of the report."""
        if name not in self.figures:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: this report does not have this figure; leave it out")
        return self.figures[name]()


def _in_text(sections: Sequence[Section]) -> str:
    from textwrap import fill

    blocks: list[str] = []
    for heading, tables, sentence in sections:
        blocks += [fill(heading, 80), *(table.to_text() for table in tables)]
        blocks.append(fill(sentence, 80, break_on_hyphens=False, break_long_words=False))
    return "\n\n".join(filter(None, blocks))


def _in_markdown(sections: Sequence[Section]) -> str:
    blocks: list[str] = []
    for heading, tables, sentence in sections:
        blocks += [f"**{heading}**", *(table.to_markdown().rstrip() for table in tables), sentence]
    return "\n\n".join(filter(None, blocks))


def rendered(table: Table, form: str) -> str:
    """The table in one of `FORMATS`."""
    if form == "tsv":
        return table.to_csv("\t")
    text: str = getattr(table, "to_text" if form == "table" else f"to_{form}")()
    return text


def blocks(texts: Mapping[str, str]) -> str:
    """Texts of files under their names; the text of a single file has no name."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"== {visible(file)}\n{text}" for file, text in texts.items())


def single_or_all(data: Mapping[str, object]) -> object:
    """JSON of several files by file; that of a single file unchanged."""
    return next(iter(data.values())) if len(data) == 1 else data


# -- The files of a call ---------------------------------------------------------------------------


READ, GRAPH_FOLDER, SCORES = map(PathType, ("an input", "the graph", "the scores"))
WRITE, DRAW, PRINT_TO, LATER = map(PathType, ("output", "figure", "text", "later"))
_CHECKED = {WRITE.role, DRAW.role, PRINT_TO.role}


def _paths(command: click.Command, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Role, option and path of every path of a call."""
    for parameter in command.params:
        value = values.get(parameter.name or "")
        if isinstance(parameter.type, PathType) and value is not None:
            option = next((one for one in parameter.opts if one.startswith("--")), "")
            for path in value if isinstance(value, (list, tuple)) else [value]:
                yield parameter.type.role, option, path


def check_paths(command: click.Command, values: Mapping[str, Any]) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or each other."""
    from kgtrec.plots.style import check_plot

    outputs = {}
    for role, option, path in _paths(command, values):
        if role in _CHECKED:
            outputs[option] = path
        if role == DRAW.role:
            check_plot(path)
    if outputs:
        check_outputs(outputs)


def check_outputs(
    outputs: Mapping[str, str | None], inputs: Iterable[tuple[str, str]] = ()
) -> None:
    """Refuse outputs, by option, that cannot be written, or are a path of the call or an input."""
    ctx = click.get_current_context()
    paths = list(_paths(ctx.command, ctx.params))
    written = [(option, path) for role, option, path in paths if role in _CHECKED]
    read = [(role, path) for role, _, path in paths if role not in {*_CHECKED, LATER.role}]
    check_writable(*outputs.values())
    taken: dict[str, str] = {}
    for role, path in [*read, *inputs, *written]:
        for file in _files_of(role, path):
            taken.setdefault(real_path(file), role)
    for option, output in outputs.items():
        if output is None or os.path.isdir(output) or is_stream(output):
            continue  # a pipe, /dev/null or /dev/stdout accepts several outputs
        other = taken.setdefault(real_path(output), option)
        if other != option:
            raise UsageError(f"{option} {output} would overwrite {other}; give another file name")


def _files_of(role: str, path: str) -> Iterable[str]:
    from kgtrec.graph.formats import graph_files

    if role == GRAPH_FOLDER.role:
        with warnings.catch_warnings():  # reading the graph repeats them
            warnings.simplefilter("ignore")
            return list(graph_files(path).values())
    if role == SCORES.role and is_folder(path):
        return [f"{path}/{name}" for name in names_in(path) or () if name.endswith(".npy")]
    return [path]


# -- Commands --------------------------------------------------------------------------------------


class Command(click.Command):
    """A command that returns a `Report`; checks its files before, and shows the report after.

    - commands: Subcommands by name. Without a subcommand's name, the command itself runs.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.commands: dict[str, click.Command] = {}
        if not any(parameter.name == "quiet" for parameter in self.params):
            self.params.append(quiet_option(self))

    def add(self, *commands: click.Command) -> None:
        """Add subcommands."""
        self.commands |= {str(command.name): command for command in commands}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args and args[0] in self.commands:
            command = self.commands[args[0]]
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        if args and not os.path.exists(args[0]) and args[0].isalpha():
            near = suggestion(args[0], self.commands)
            if near:
                raise UsageError(f"{info_name} {args[0]}: neither a subcommand nor a file; {near}")
        return super().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        names = [name for name in self.commands if name.startswith(incomplete)]
        return [*map(CompletionItem, names), *super().shell_complete(ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; a refused call ends --quiet, which would hide the message."""
        from kgtrec.cli._names import in_options

        try:
            with in_options(self):
                return super().parse_args(ctx, args)
        except BaseException:
            ctx.close()
            raise

    def invoke(self, ctx: click.Context) -> Any:
        from kgtrec.cli._names import in_options

        if ctx.command is not self:  # a subcommand, if this one is the whole program
            return ctx.command.invoke(ctx)
        with in_options(self):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Report:
        from kgtrec.cli._needs import check_needs

        idle = check_needs(ctx)
        check_paths(self, ctx.params)
        # Only `_show` uses these.
        endings = {"form", *(one.name for one in self.params if one.type in (PRINT_TO, DRAW))}
        values = {name: value for name, value in ctx.params.items() if name not in endings}
        assert self.callback is not None
        try:
            report: Report = ctx.invoke(self.callback, **values)
            with write_together():
                report.notes = [*report.write(), *idle, *report.notes]
                show = self._shown(report, ctx)  # also computes what is printed
        except OSError as error:
            if error.filename is not None or isinstance(error, BrokenPipeError):
                raise
            # Nothing has been printed yet, so standard output is not the cause.
            raise KgtrecError(
                f"the system stopped the work ({error.strerror or error}); check its limits "
                "(ulimit -a), its memory and its disks, and run again"
            ) from error
        show()
        if report.error:
            raise FailedInPart(report.error)
        if report.code:
            ctx.exit(report.code)
        return report

    def _shown(self, report: Report, ctx: click.Context) -> Callable[[], None]:
        """Compute what the report prints, and write its figures; returns what prints it."""
        from kgtrec.plots.style import save

        form, pages, text = ctx.params.get("form", "table"), None, None
        if report.pages is not None and sys.stdout.isatty():
            from shutil import get_terminal_size

            pages = report.pages(get_terminal_size().columns)
        elif report.has(form):
            text = report.rendered(form)
        outputs = [ctx.params[str(one.name)] for one in self.params if one.type is PRINT_TO]
        output = outputs[0] if outputs and isinstance(text, str) else None
        if isinstance(text, str) and output is not None:
            write_text(output, f"{text.rstrip()}\n")
        drawn = []
        for parameter in self.params:
            path = ctx.params.get(parameter.name or "")
            if parameter.type is DRAW and path is not None:
                save(report.figure(str(parameter.name)), path)
                drawn.append(path)

        def show() -> None:
            for line in report.notes:
                note(line)
            if pages is not None:
                click.echo_via_pager(pages)
            elif text is not None and output is not None:
                note(f"wrote {visible(output)}")
            elif text is not None:
                _print(text)
            for path in drawn:
                note(f"figure written to {visible(path)}")

        return show

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print long lists of options under headings, from `_names`."""
        from kgtrec.cli._names import by_heading

        for heading, records in by_heading(self.get_params(ctx), ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if self.commands:
            with formatter.section("Commands"):
                formatter.write_dl(
                    [(name, command.short_help or "") for name, command in self.commands.items()]
                )


def quiet_option(command: click.Command) -> click.Option:
    """--quiet of every command; also -q, unless it has another meaning in the command."""
    taken = {name for parameter in command.params for name in parameter.opts}
    names = ["--quiet"] if "-q" in taken else ["-q", "--quiet"]
    return click.Option(
        names,
        is_flag=True,
        expose_value=False,
        callback=_be_quiet,
        help="Print results and errors only: no notes, warnings and progress.",
    )


def _be_quiet(ctx: click.Context, _parameter: click.Parameter, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing:
        # Discard standard error until the command ends; errors are printed after that.
        ctx.meta["quiet"] = True
        nowhere = ctx.with_resource(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        ctx.with_resource(redirect_stderr(nowhere))


# -- Printing --------------------------------------------------------------------------------------


def _print(text: str | bytes) -> None:
    if isinstance(text, bytes):
        if sys.stdout.isatty():  # other programs get the bytes of ids unchanged
            text = visible(text.decode("utf-8", "surrogateescape"), keep="\n\t").encode()
        click.echo(text, nl=False)
    else:
        echo(text)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text and a newline. Characters that a terminal would obey are escaped."""
    click.echo(visible(text.rstrip("\n"), keep="\n\t").encode(), err=err)


def note(text: str) -> None:
    """Print a line on standard error: on written or omitted data, or other useful facts.

    A very long one loses its middle. If it cannot be written (a full disk, a closed reader), the
    work and its exit code are unchanged. Marked arguments become the running command's options.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        from kgtrec.cli._names import option_spelling

        text = option_spelling(text, context.command)
    # Escaped first: an escape takes more characters than what it stands for.
    escaped = visible(text, keep="\n\t")
    text = shorten(f"kgtrec: {escaped}", LONGEST_MESSAGE)
    with suppress(OSError):
        echo(text, err=True)


def warning(text: str) -> str:
    """A note that must not be missed."""
    return f"warning: {text}"


def warn(text: str) -> None:
    """Print a warning at once."""
    note(warning(text))
