"""Reports: the results of commands, and how they are shown in formats, files and figures.

A command reads its files, calls one function and returns a `Report`. The class `Command` does the
rest: it checks the files named on the command line first, and shows the report last.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.files import check_writable, is_stream, write_text, write_together
from kgtrec._internal.locations import is_folder, names_in, real_path
from kgtrec._internal.system import reason_of
from kgtrec._internal.text import LONGEST_MESSAGE, shorten, visible
from kgtrec.cli._types import PathType
from kgtrec.errors import KgtrecError, UsageError, suggestion

if TYPE_CHECKING:
    from kgtrec._internal.table import Table

FORMATS = ("table", "csv", "tsv", "markdown", "latex", "json")
Section = tuple[str, Sequence["Table"], str]
"""A heading, its tables, and a sentence about them."""
File = tuple[str | None, str | Callable[[str], object]]
"""A path (None if the file is not requested), and its text or a function that writes it."""


class FailedInPart(KgtrecError):
    """Part of the work failed; the other results are shown."""


@dataclass
class Report:
    """The results of a command: its output in every format, files, figures and notes.

    - text: Makes the text for people.
    - data: Makes the data for JSON; None if the command has no --format json.
    - rows: The table for CSV, TSV, Markdown and LaTeX.
    - forms: Functions that make the content of further formats, by format.
    - notes: Lines for standard error, after the results.
    - files: Files to write.
    - content: What these files contain, for a note.
    - figures: Functions that draw, by the parameter that names the file, such as "plot".
    - pages: Makes the text for a pager from the number of columns of the terminal.
    - code: The command's exit code.
    - error: Message about a part of the work that failed; the exit code is then 2.
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
    def from_table(cls, table: Table, text: Callable[[], str] | None = None, **more: Any) -> Report:
        """Make a report of a table; `text` may replace the table for people."""
        return cls(text or table.to_text, table.to_dict, table, **more)

    @classmethod
    def from_files(
        cls,
        tables: Mapping[str, Table],
        text: Callable[[], str] | None = None,
        named: str = "file",
        **more: Any,
    ) -> Report:
        """Make a report of a table per file: blocks of text, JSON by file, or the tables stacked.

        - named: Title of the column with the files' names in the stacked table.
        """
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
    def from_tables(cls, tables: Mapping[str, Table], **more: Any) -> Report:
        """Make a report of several tables: as text one below the other, as JSON one object."""
        return cls(
            lambda: "\n\n".join(table.to_text() for table in tables.values()),
            lambda: {name: table.to_dict() for name, table in tables.items()},
            **more,
        )

    @classmethod
    def from_sections(
        cls, sections: Sequence[Section], data: object, rows: Table, **more: Any
    ) -> Report:
        """Make a report of sections; `data` is for JSON and `rows` for CSV."""
        forms = {
            "markdown": lambda: _in_markdown(sections),
            "latex": lambda: _in_latex(sections),
        }
        return cls(lambda: _in_text(sections), lambda: data, rows, forms, **more)

    def has(self, form: str) -> bool:
        """Return True if the report prints something in this format."""
        if form == "table":
            return self.text is not None or form in self.forms
        return bool(self.data or self.rows or self.forms)

    def render(self, form: str) -> str | bytes:
        """Return the report in one of the formats of its command."""
        if form in self.forms:
            return self.forms[form]()
        if form == "table" and self.text is not None:
            return self.text()
        if form == "json" and self.data is not None:
            from kgtrec._internal.table import dump_json

            return dump_json(self.data())
        if self.rows is None:
            raise UsageError(f"--format {form} writes only one table; choose it with --show")
        return render(self.rows, form)

    def in_latex_table(self, caption: str | None, label: str | None) -> Report:
        """Return the report with all its LaTeX in a ``table`` that has this caption, if any."""
        from kgtrec._internal.latex import in_table

        if not caption:
            return self

        def latex() -> str:
            lines = str(self.render("latex")).splitlines()
            return "\n".join(in_table(lines, caption, label or "")) + "\n"

        return replace(self, forms={**self.forms, "latex": latex})

    def write(self) -> list[str]:
        """Write the files. Return a list with a line about them, empty if there are none."""
        written = []
        for path, content in self.files:
            if not path:
                continue
            written.append(visible(path))
            if isinstance(content, str):
                write_text(path, content)
            else:
                content(path)
        line = f"wrote {', '.join(written)}" + f": {self.content}" * bool(self.content)
        return [line] if written else []

    def figure(self, name: str) -> Any:
        """Draw a figure of the report; UsageError if it does not have this figure."""
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
        blocks += [
            f"**{heading}**" * bool(heading),
            *(table.to_markdown().rstrip() for table in tables),
            sentence,
        ]
    return "\n\n".join(filter(None, blocks))


def _in_latex(sections: Sequence[Section]) -> str:
    """Return the tables with their headings and sentences as comments, which print nothing."""
    blocks = []
    for heading, tables, sentence in sections:
        head, below = (f"% {' '.join(text.split())}\n" * bool(text) for text in (heading, sentence))
        blocks.append(head + "\n".join(table.to_latex() for table in tables) + below)
    return "\n".join(blocks)


def render(table: Table, form: str) -> str:
    """Return a table in one of `FORMATS`."""
    if form == "tsv":
        return table.to_csv("\t")
    text: str = getattr(table, "to_text" if form == "table" else f"to_{form}")()
    return text


def blocks(texts: Mapping[str, str]) -> str:
    """Join the texts of files under their names. The text of a single file has no name."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"== {visible(file)}\n{text}" for file, text in texts.items())


def single_or_all(data: Mapping[str, object]) -> object:
    """Return the data by file, or those of a single file alone."""
    return next(iter(data.values())) if len(data) == 1 else data


# -- The files of a call ---------------------------------------------------------------------------


READ, GRAPH_FOLDER, SCORES = map(PathType, ("an input", "the graph", "the scores"))
WRITE, DRAW, PRINT_TO, LATER = map(PathType, ("output", "figure", "text", "later"))
_CHECKED = {WRITE.role, DRAW.role, PRINT_TO.role}


def _paths(command: click.Command, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield role, option and path of every path of a call."""
    for parameter in command.params:
        value = values.get(parameter.name or "")
        if isinstance(parameter.type, PathType) and value is not None:
            option = next((name for name in parameter.opts if name.startswith("--")), "")
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
    """Refuse outputs that cannot be written, or would overwrite an input or another output.

    - outputs: Paths by option.
    - inputs: Role and path of inputs that are not options of the call.
    """
    ctx = click.get_current_context()
    paths = list(_paths(ctx.command, ctx.params))
    written = [(option, path) for role, option, path in paths if role in _CHECKED]
    read = [(role, path) for role, _, path in paths if role not in {*_CHECKED, LATER.role}]
    check_writable(*outputs.values())
    users: dict[str, str] = {}  # role or option by path
    for role, path in [*read, *inputs, *written]:
        for file in _list_files(role, path):
            users.setdefault(real_path(file), role)
    for option, output in outputs.items():
        if output is None or os.path.isdir(output) or is_stream(output):
            continue  # a pipe, /dev/null or /dev/stdout accepts several outputs
        other = users.setdefault(real_path(output), option)
        if other != option:
            raise UsageError(f"{option} {output} would overwrite {other}; give another file name")


def _list_files(role: str, path: str) -> Iterable[str]:
    """Return the files behind a path: those of a graph's folder or of scores in shards."""
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
        """Parse like click. If the call is refused, end --quiet, which would hide the message."""
        from kgtrec.cli._mistakes import refuse_extra_arguments, with_advice
        from kgtrec.cli._names import in_options

        ctx.allow_extra_args = True  # refused below, in other words
        try:
            with in_options(self), with_advice(ctx):
                super().parse_args(ctx, args)
                refuse_extra_arguments(ctx)
        except BaseException:
            ctx.close()
            raise
        return ctx.args

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
        # Only `_prepare` uses these.
        shown = {
            "form",
            *(parameter.name for parameter in self.params if parameter.type in (PRINT_TO, DRAW)),
        }
        values = {name: value for name, value in ctx.params.items() if name not in shown}
        assert self.callback is not None
        try:
            report: Report = ctx.invoke(self.callback, **values)
            with write_together():
                report.notes = [*report.write(), *idle, *report.notes]
                show = self._prepare(report, ctx)
        except OSError as error:
            if error.filename is not None or isinstance(error, BrokenPipeError):
                raise
            # Nothing has been printed yet, so standard output is not the cause.
            raise KgtrecError(
                f"the system stopped the work ({reason_of(error)}); check its limits "
                "(ulimit -a), its memory and its disks, and run again"
            ) from error
        show()
        if report.error:
            raise FailedInPart(report.error)
        if report.code:
            ctx.exit(report.code)
        return report

    def _prepare(self, report: Report, ctx: click.Context) -> Callable[[], None]:
        """Compute the output of a report and write its figures; return the function that prints."""
        from kgtrec.plots.style import save

        form, pages, text = ctx.params.get("form", "table"), None, None
        if report.pages is not None and sys.stdout.isatty():
            from shutil import get_terminal_size

            pages = report.pages(get_terminal_size().columns)
        elif report.has(form):
            text = report.render(form)
        outputs = [
            ctx.params[str(parameter.name)]
            for parameter in self.params
            if parameter.type is PRINT_TO
        ]
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
        from kgtrec.cli._names import group_options

        for heading, records in group_options(self.get_params(ctx), ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if self.commands:
            with formatter.section("Commands"):
                formatter.write_dl(
                    [(name, command.short_help or "") for name, command in self.commands.items()]
                )


def quiet_option(command: click.Command) -> click.Option:
    """Make the option --quiet; also -q, unless this has another meaning in the command."""
    used = {name for parameter in command.params for name in parameter.opts}
    names = ["--quiet"] if "-q" in used else ["-q", "--quiet"]
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
    """Print a line on standard error: about written or omitted data, or other useful facts.

    A very long line loses its middle. If it cannot be written (a full disk, a closed reader), the
    work and its exit code are unchanged. Marked arguments become the running command's options.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        from kgtrec.cli._names import option_spelling

        text = option_spelling(text, context.command)
    # Escape first: escapes make the text longer.
    escaped = visible(text, keep="\n\t")
    text = shorten(f"kgtrec: {escaped}", LONGEST_MESSAGE)
    with suppress(OSError):
        echo(text, err=True)


def warning(text: str) -> str:
    """Mark a note as a warning."""
    return f"warning: {text}"


def warn(text: str) -> None:
    """Print a warning at once."""
    note(warning(text))
