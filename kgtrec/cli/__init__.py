"""The command line: ``kgtrec COMMAND``, one file per command, no arithmetic here.

Commands are imported when they are called, so that one does not pay for the libraries of another.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module

from kgtrec._version import __version__
from kgtrec.cli._process import (
    Terminated,
    end_quickly,
    exit_at_once,
    give_up_stdout,
    open_closed_streams,
    pandas_out_of_sight,
    signals_as_exceptions,
    without_collector,
)
from kgtrec.errors import KgtrecError

with without_collector():
    import click

__all__ = ["cli", "main"]

# Where a command stands if not in the module of its name.
_MODULES = {
    "compare": "compare.command",
    "eval": "eval.command",
    "rank": "rank.command",
    "merge": "rank.merge",
    "report": "report.command",
}
# In the order in which --help lists them.
COMMANDS = {
    "demo": "Evaluate three baselines on an embedded graph, and learn to read the table.",
    "rank": "Scores of a model to ranks, metrics and TREC files.",
    "merge": "Shards of `kgtrec rank --shard` to ranks, metrics and TREC files.",
    "batch": "Many models x graphs x protocols from one file, on Dask.",
    "align": "Entity alignment: embeddings or similarities to ranks and metrics.",
    "report": "The published table of saved ranks.",
    "plot": "Figures of saved ranks, for print.",
    "compare": "Which system is better? Intervals, paired tests, effect sizes.",
    "stratify": "Metrics by popularity: beta curves and grids of saved ranks.",
    "openworld": "Can two models be told apart where answers are missing?",
    "stats": "A graph at a glance: popularity, categories, leaks.",
    "sample": "Draw seed triples from a test split.",
    "pool": "The best candidates of several runs, to be judged.",
    "judge": "Sheets, a local page and agreement for people who judge triples.",
    "complete": "Judgements of a pool to qrels and a complete test split.",
    "convert": "A graph's questions and answers as TREC files.",
    "eval": "trec_eval's measures of a run file.",
    "measures": "What can be measured: the list, or one measure explained.",
}

INTERRUPTED = 130


class _Commands(click.Group):
    """Loads a command's module on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with without_collector():
            module = import_module(f"kgtrec.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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

    Exit codes: 0 done; 1 wrong call; 2 unreadable, malformed or unfitting input, or an unwritable
    output; 130 interrupted (143, 129: ended by a signal). `kgtrec eval` keeps trec_eval's own.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(1)


def main() -> None:
    """Entry point: one sentence for a user's mistake, never a traceback."""
    open_closed_streams()
    end_quickly()
    warnings.showwarning = _show_warning
    Terminated.came = None
    with signals_as_exceptions(), pandas_out_of_sight():
        try:
            code = _run()
        except Exception:
            # A library that was interrupted while it was loaded, say.
            if Terminated.came is None:
                raise
            code = _say_interrupted(Terminated.came)
        if Terminated.came is not None:
            code = 128 + Terminated.came.signal
    if code > 128:
        exit_at_once(code)
    sys.exit(code)


def _run() -> int:
    try:
        code = cli.main(prog_name="kgtrec", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _say_interrupted(error if isinstance(error, Terminated) else error.__cause__)
    except click.ClickException as error:
        return _say_usage(error)
    except KgtrecError as error:
        return _say(str(error), error.exit_code)
    except MemoryError as error:
        return _say(f"out of memory ({error}); rank fewer rows at a time, or use Factors", 2)
    except (BrokenPipeError, SystemExit):  # the latter is what click makes of the former
        # The reader of our output has gone (`| head`): not an error, and nothing left to say.
        give_up_stdout()
        return 0
    except OSError as error:
        give_up_stdout()
        place, reason = error.filename or "standard output", error.strerror or error
        return _say(f"{place}: {reason}; make room or choose another place", 2)
    return code if isinstance(code, int) else 0


def _say_interrupted(cause: BaseException | None) -> int:
    if isinstance(cause, Terminated):
        return _say(f"{cause}; nothing half-written is left behind", 128 + cause.signal)
    return _say("interrupted; nothing half-written is left behind", INTERRUPTED)


def _say(message: str, code: int) -> int:
    click.echo(f"kgtrec: {message}".encode("utf-8", "surrogateescape"), err=True)
    return code


def _say_usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "kgtrec"
    click.echo(f"kgtrec: {error.format_message()}\nTry '{path} --help'.", err=True)
    return 1


def _show_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    click.echo(f"kgtrec: warning: {message}", err=True)
