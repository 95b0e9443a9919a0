"""The command line: ``kgtrec COMMAND``. Each command has a module; nothing is computed here.

A command is imported when it is called, so that it does not load other commands' libraries.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any, NamedTuple

import click

from kgtrec._internal.system import expand_wildcards, reason_of
from kgtrec._internal.text import visible
from kgtrec._internal.threads import MORE_THREADS, NO_THREAD
from kgtrec._version import __version__
from kgtrec.cli._mistakes import with_advice
from kgtrec.cli._process import (
    LeaveAtExit,
    Terminated,
    exit_at_once,
    give_up_stdout,
    keep_blas_single,
    open_closed_streams,
    pyarrow_alone,
    signals_as_exceptions,
)
from kgtrec.cli._report import note, quiet_option, warn
from kgtrec.errors import FormatNote, KgtrecError, KgtrecWarning, UsageError, suggestion


class _Entry(NamedTuple):
    summary: str
    guide: str
    module: str | None = None  # MODULE:FUNCTION; by default `command` of the module of this name


# In the order in which --help lists them.
COMMANDS = {
    "demo": _Entry(
        "Evaluate three baselines on an embedded graph, and learn to read the table.",
        "first-evaluation",
        "about:demo",
    ),
    "rank": _Entry(
        "Rank the scores of a model; print metrics, write ranks and TREC files.",
        "first-evaluation",
        "rank.command:rank",
    ),
    "merge": _Entry(
        "Merge shards of `kgtrec rank --shard` into ranks and TREC files.",
        "clusters",
        "rank.command:merge",
    ),
    "batch": _Entry("Rank many models x graphs x protocols from one file, on Dask.", "clusters"),
    "pairs": _Entry("Rank the pairs of a relation among all pairs: (?, r, ?).", "pairs"),
    "align": _Entry("Rank entity alignments by embeddings or similarities.", "adjusted-metrics"),
    "classify": _Entry(
        "Classify triples as true or false: metrics and calibration.", "classification"
    ),
    "sets": _Entry("Which candidates a model names: precision, sizes, coverage.", "sets"),
    "semantics": _Entry("Sem@k: how many of the best candidates fit the relation.", "semantics"),
    "estimate": _Entry(
        "Estimate full-ranking metrics from drawn candidates, with intervals.", "sampled-candidates"
    ),
    "report": _Entry(
        "Print the standard results table of saved ranks, or a page.",
        "reading-the-report",
    ),
    "plot": _Entry("Draw figures of saved ranks, for print.", "reading-the-report"),
    "compare": _Entry(
        "Which system is better? Intervals, paired tests, effect sizes.",
        "significance",
        "compare.command:command",
    ),
    "gate": _Entry("Is a new model worse than a base? Pass, fail or undecided.", "gate"),
    "suite": _Entry("Compare many models on many graphs: means, places, tests.", "many-graphs"),
    "changes": _Entry("Which answers change from one model or seed to another.", "changes"),
    "audit": _Entry(
        "Can published numbers be true together, and by which protocol?", "published-numbers"
    ),
    "stratify": _Entry("Stratify metrics by popularity: beta curves and grids.", "slices"),
    "openworld": _Entry("Do two models differ if answers are missing?", "open-world"),
    "stats": _Entry("Describe a graph: popularity, categories, leaks.", "slices"),
    "sample": _Entry("Draw seed triples from a test split.", "sparse-labels", "pool:sample"),
    "pool": _Entry(
        "Pool the best candidates of several runs, for judging.", "sparse-labels", "pool:pool"
    ),
    "judge": _Entry("Judge triples: sheets, a local page, agreement.", "sparse-labels"),
    "complete": _Entry(
        "Turn judgements of a pool into qrels and a complete test split.",
        "sparse-labels",
        "pool:complete",
    ),
    "convert": _Entry("Write a graph's questions and answers as TREC files.", "runs-and-qrels"),
    "eval": _Entry("Evaluate runs like trec_eval.", "runs-and-qrels"),
    "formats": _Entry("List the formats of graphs and predictions.", "formats", "about:formats"),
    "measures": _Entry("List all measures, or explain one.", "numbers", "about:measures"),
    "guide": _Entry("Show the guides that come with kgtrec.", ""),
}

INTERRUPTED = 130


class _Commands(click.Group):
    """The group of all commands. It loads a command's module on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if not ctx.resilient_parsing:
                hint = suggestion(cmd_name, COMMANDS, "`kgtrec --help` lists all commands")
                ctx.fail(f"no command {cmd_name!r}; {hint}")
            return None
        entry = COMMANDS[cmd_name]
        module, _, name = (entry.module or f"{cmd_name}:command").partition(":")
        command: click.Command = getattr(import_module(f"kgtrec.cli.{module}"), name)
        command.name, command.short_help = cmd_name, entry.summary
        if entry.guide:
            _name_guide(command, entry.guide)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with with_advice(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Replace trec_eval's exit codes, which errors about runs have, except in `kgtrec eval`."""
        try:
            return super().invoke(ctx)
        except KgtrecError as error:
            if ctx.invoked_subcommand != "eval":
                error.exit_code = 1 if isinstance(error, UsageError) else 2
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _name_guide(command: click.Command, guide: str) -> None:
    """Add the guide as the last line of a command's help, and of its subcommands' help."""
    command.epilog = f"Guide: kgtrec guide {guide}"
    for subcommand in getattr(command, "commands", {}).values():
        _name_guide(subcommand, guide)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kgtrec")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Evaluate knowledge-graph completion: filtered ranks with their ties, micro and macro metrics,
    TREC runs and qrels.

    \b
    Start with:  kgtrec demo
    Then:        kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks.parquet
    Find out:    kgtrec guide
    Completion:  eval "$(_KGTREC_COMPLETE=bash_source kgtrec)", in ~/.bashrc (zsh_source,
                 fish_source in other shells)

    Exit codes: 0 done; 1 wrong call; 2 unreadable, malformed or unsuitable input, or an unwritable
    output; 130 interrupted (143, 129: ended by a signal). Results: `kgtrec audit` 3 impossible;
    `kgtrec gate` 20 fail, 21 undecided. `kgtrec eval` has trec_eval's codes.
    """
    if ctx.invoked_subcommand is None:
        if ctx.meta.get("quiet"):
            raise click.UsageError("no command after --quiet", ctx)
        click.echo(ctx.get_help(), err=True)
        ctx.exit(1)


cli.params.append(quiet_option(cli))


def run() -> None:
    """Run `main` as the process ``kgtrec``, and end without delay."""
    end = LeaveAtExit()
    keep_blas_single()
    try:
        main()
    except SystemExit as leaving:
        end.code = leaving.code if isinstance(leaving.code, int) else 0
        raise


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **_more: Any) -> None:
    """Print a warning of the library on standard error, with the command's options.

    A warning that only says how a file was read becomes a note.
    """
    text = message.marked if isinstance(message, KgtrecWarning) else str(message)
    (note if issubclass(category, FormatNote) else warn)(text)


def main() -> None:
    """Run the command line. A user's mistake prints a sentence, never a traceback."""
    open_closed_streams()
    warnings.showwarning = _show_warning
    Terminated.came = None
    with signals_as_exceptions(), pyarrow_alone():
        try:
            code = _run()
        except Exception:
            # A signal may have interrupted the import of a library, which then fails.
            if Terminated.came is None:
                raise
            code = _say_interrupted(Terminated.came)
        if Terminated.came is not None:
            code = 128 + Terminated.came.signal
    if code > 128:
        exit_at_once(code)
    sys.exit(code)


def _run() -> int:
    """Run the command. Print a sentence for known errors; return the exit code."""
    try:
        code = cli.main(
            expand_wildcards(sys.argv[1:]),
            prog_name="kgtrec",
            standalone_mode=False,
            windows_expand_args=False,
        )
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _say_interrupted(error if isinstance(error, Terminated) else error.__cause__)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "kgtrec"
        message = error.format_message().replace("\n\t", " ")  # a list of choices
        return _say(f"{visible(message)}\nTry '{path} --help'.", 1)
    except KgtrecError as error:
        return _say(str(error), error.exit_code)
    except MemoryError as error:
        hint = "allow more memory, pass fewer rows at a time, or rank from Factors"
        return _say(f"out of memory ({error}); {hint}", 2)
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        return _say(f"the system starts no more threads; {MORE_THREADS}", 2)
    except (BrokenPipeError, SystemExit):  # click turns the former into the latter
        # The reader of our output has closed it (`| head`): not an error, and no message needed.
        give_up_stdout()
        return 0
    except OSError as error:
        if error.filename is None:
            give_up_stdout()
        file, reason = error.filename or "standard output", reason_of(error)
        return _say(f"{visible(str(file))}: {reason}; free space or choose another place", 2)
    return code if isinstance(code, int) else 0


def _say_interrupted(cause: BaseException | None) -> int:
    """Print that the command was interrupted, by a signal or by Ctrl-C; return the exit code."""
    if isinstance(cause, Terminated):
        return _say(f"{cause}; nothing half-written is left behind", 128 + cause.signal)
    return _say("interrupted; nothing half-written is left behind", INTERRUPTED)


def _say(message: str, code: int) -> int:
    """Print a message on standard error, and return `code`."""
    note(message)
    return code
