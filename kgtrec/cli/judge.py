"""``kgtrec judge``: people judge which pooled triples are true."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.table import WIDTH
from kgtrec.cli import _options as shared
from kgtrec.cli._mistakes import with_advice
from kgtrec.cli._report import Command, Report, check_outputs, note, warning
from kgtrec.errors import UsageError, must_be

if TYPE_CHECKING:
    from kgtrec.study.judging import questions as asking
    from kgtrec.study.judging import sheets as sheet_files


class Group(click.Group):
    """Subcommands that return reports."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with with_advice(ctx):
            return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and not ctx.resilient_parsing:
            ctx.fail(f"no command {cmd_name!r}; {must_be(cmd_name, self.commands)}")
        return super().get_command(ctx, cmd_name)


BLANK = shared.choice(
    "--blank",
    ["open", "N", "?"],
    "Meaning of a blank label; in the published annotations of Zhou et al. it is N.",
    default="open",
)


@click.group(cls=Group)
def command() -> None:
    """Have people judge which pooled triples are true.

    \b
    kgtrec judge templates pool.tsv -o templates.tsv         questions: read and edit them
    kgtrec judge sheets pool.tsv --templates templates.tsv --names names.tsv \\
        --annotators anna,ben --batch 500 -o sheets          a sheet for each annotator
    kgtrec judge serve sheets/anna.batch1.tsv                Yes, No, Can't tell, in the browser
    kgtrec judge agreement sheets/*.judged.tsv --by-relation
    kgtrec judge merge sheets/*.judged.tsv --conflicts carla.tsv -o judged.tsv
    kgtrec judge serve carla.tsv                             the adjudicator decides
    kgtrec judge merge sheets/*.judged.tsv --adjudicated carla.judged.tsv -o judged.tsv

    Labels are Y (true), N (false) and ? (cannot tell). Sheets are TSV files, so you can also use a
    spreadsheet program instead of the page; then `kgtrec judge check` lists mistakes.
    """


# --- Before judging -------------------------------------------------------------------------------


@command.command(short_help="Editable questions for the relations of a pool.")
@click.argument("pool", type=shared.READ)
@shared.output("TSV: relation, template.")
def templates(pool: str, output: str) -> Report:
    """Write a question for each relation of POOL, made from the label of the relation.

    Read the questions, and rewrite unclear ones: {head} and {tail} become the names of the
    entities.

    \b
    kgtrec judge templates pool.tsv -o templates.tsv
    """
    from kgtrec.study.judging import questions as asking
    from kgtrec.study.judging import sheets as sheet_files

    relations = {triple.relation for triple in sheet_files.read_pooled(pool)}
    questions = asking.generate_templates(sorted(relations))
    return Report(
        files=[(output, lambda path: asking.write_templates(path, questions))],
        content=f"{len(questions.by_relation):,} templates",
    )


@command.command(short_help="A sheet of questions for each annotator.")
@click.argument("pool", type=shared.READ)
@shared.option(
    "-o --output", "Folder of the sheets.", required=True, type=shared.LATER, metavar="FOLDER"
)
@shared.option(
    "--annotators",
    "Who judges; also the names of the files.",
    required=True,
    metavar="NAME,NAME,...",
)
@shared.reads(
    "--templates template_file",
    "Questions from `kgtrec judge templates`; made from labels by default.",
)
@shared.reads("--names name_file", "Names of entities, lines id<TAB>name.")
@shared.option(
    "--overlap",
    "Share of the triples that two annotators judge.",
    type=shared.Number(0, 1),
    default=1.0,
    metavar="SHARE",
)
@shared.option("--batch", "Triples per sheet, at most.", type=shared.Count(), metavar="N")
@shared.option("--depth", "Only triples pooled at depth K.", type=shared.Count(), metavar="K")
@shared.QUESTION_SAMPLE
@shared.reads("--done", "Omit triples that have a label in this file; repeatable.", multiple=True)
@shared.flag("--by-rule", "Include triples that a rule has labelled.")
@shared.flag("--in-relation-order by_relation", "One relation after another: quicker to judge.")
@shared.seed("Seed of the order.")
def sheets(pool: str, output: str, done: tuple[str, ...], **options: Any) -> Report:
    """Make judgement sheets from POOL: a pool file, or any TSV of head, relation and tail.

    Sheets ask about triples in random order, and reveal neither systems nor depths. If the pool has
    a sample (kgtrec pool --sample), they ask only about it; with --sample, only about the pools of
    the questions in a file of kgtrec pool --write-sample. Existing files are never overwritten.

    \b
    kgtrec judge sheets pool.tsv --annotators anna,ben -o sheets
    kgtrec judge sheets pool.tsv --annotators anna,ben,carla --overlap 0.2 --batch 500 -o sheets
    kgtrec judge sheets pool.tsv --annotators anna --depth 5 --names mid2name.txt -o pilot
    kgtrec judge sheets pool.tsv --annotators anna --sample drawn.tsv -o sheets
    """
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging import questions as asking
    from kgtrec.study.judging import sheets as sheet_files

    pooled = sheet_files.read_pooled(pool)
    drawn = None
    if options["sample_file"] is not None:
        from kgtrec.study.judged.draw import read_drawn_names

        drawn = read_drawn_names(options["sample_file"])
    known = {
        item.triple
        for file in done
        for item in journals.read_judged_sheet(file).items
        if item.label
    }
    triples = sheet_files.select_triples_to_judge(
        pooled, options["depth"], known, options["by_rule"], drawn
    )
    if not triples:
        raise UsageError(f"{pool}: none of {len(pooled):,} triples is left to judge")
    names = asking.read_names(options["name_file"]) if options["name_file"] else {}
    questions = asking.generate_templates(sorted({triple.relation for triple in triples}))
    if options["template_file"]:
        questions = asking.read_templates(options["template_file"])
    people = [name.strip() for name in options["annotators"].split(",")]
    batches = sheet_files.make_batches(
        triples,
        questions,
        names,
        annotators=people,
        overlap=options["overlap"],
        size=options["batch"],
        seed=options["seed"],
        by_relation=options["by_relation"],
    )
    first, *_, last = [*batches, *batches]
    left = len(pooled) - len(triples)
    notes = [
        f"{len(triples):,} triples to judge, {left:,} left out (rule, sample, depth, judged "
        f"before); {len(batches):,} sheets with {sum(map(len, batches.values())):,} questions"
    ]
    entities = dict.fromkeys(end for triple in triples for end in (triple.head, triple.tail))
    nameless = [entity for entity in entities if entity not in names]
    if options["name_file"] and nameless:
        missing = f"{len(nameless):,} entities have no name, the first is {nameless[0]!r}"
        notes.append(warning(missing))
    return Report(
        files=[(output, lambda folder: sheet_files.write_new_sheets(folder, batches))],
        content=f"{len(batches):,} sheets, {first} to {last}",
        notes=notes,
    )


# --- Judging --------------------------------------------------------------------------------------


@command.command(short_help="The page on which an annotator answers.")
@click.argument("sheet", type=shared.READ)
@shared.option(
    "--port",
    "0 for any free one. Default: 8765, or any free one if 8765 is in use.",
    type=shared.Count(0, 65535),
    metavar="N",
)
@shared.flag("--no-browser", "Only print the address.")
@shared.writes("-o --output", "The sheet with its labels. Default: NAME.judged.tsv beside it.")
@shared.option(
    "--link",
    "Link each entity to a page about it, such as https://www.wikidata.org/wiki/{label}.",
    metavar="URL",
)
@shared.graph("Show a few facts of its train split about both entities.")
@shared.option(
    "--facts",
    "With --graph: how many per entity.",
    type=shared.Count(1, 50),
    default=5,
    metavar="N",
)
@shared.reads("--names name_file", "With --graph: names of entities in facts, lines id<TAB>name.")
def serve(
    sheet: str, port: int | None, no_browser: bool, output: str | None, **options: Any
) -> Report:
    """Judge the triples of SHEET in the browser, by keyboard: Y, N, ?; U is undo.

    The page is only for this machine and for you: its address ends in a token that no other user
    has. Every answer is on the disk, in SHEET.journal, before the next question shows. If anything
    is killed, start again and continue. Ctrl-C ends, and writes the sheet with its current labels.
    On another machine: run ssh -L 8765:localhost:8765 THERE, and open the address that is printed
    there.

    \b
    kgtrec judge serve sheets/anna.tsv
    kgtrec judge serve sheets/anna.tsv --port 9000 --no-browser
    kgtrec judge serve sheets/anna.tsv --link 'https://www.wikidata.org/wiki/{label}'
    kgtrec judge serve sheets/anna.tsv --graph FB15k-237 --names mid2name.txt
    """
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging.server import JudgeServer

    context = _context(*(options[name] for name in ("link", "graph", "facts", "name_file")))
    with journals.Journal(sheet) as journal:
        server = JudgeServer(
            journal, output or str(journals.path_of_judged_sheet(sheet)), port, context
        )
        note(f"{_progress(journal)}; the page is at {server.url}")
        note(f"answers are kept in {journal.path}; {_how_to_end()}")
        try:
            with nullcontext() if no_browser else _browser(server.url):
                server.serve()
        except BaseException:
            note(_end_note(journal, server.output))
            raise
        return Report(notes=[_end_note(journal, server.output)])


def _how_to_end() -> str:
    """Return how to end the server. Background processes may ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return (
            f"this process is in the background and ignores Ctrl-C: end it with kill {os.getpid()}"
        )
    return "Ctrl-C ends"


def _context(
    link: str | None, graph: str | None, facts: int, name_file: str | None
) -> asking.Context:
    """Read what the page shows about entities: a link, and facts of a graph."""
    from kgtrec import read_graph
    from kgtrec.study.judging import questions as asking

    if graph is None and (name_file or shared.on_command_line("facts")):
        raise UsageError("--facts and --names are for facts of a graph; add --graph DIR")
    if link is not None:
        asking.check_link(link)
    if graph is None:
        return asking.Context(link)
    names = asking.read_names(name_file) if name_file else {}
    return asking.Context(link, read_graph(graph), names, facts)


def _progress(journal: Any) -> str:
    """Say how many triples of a sheet are judged."""
    total = len(journal)
    return f"{journal.sheet.path}: {total - journal.counts()['']:,} of {total:,} judged"


def _end_note(journal: Any, output: str) -> str:
    """Return the progress, and the file of the labels if there are any."""
    written = journal.counts()[""] < len(journal)
    return _progress(journal) + f"; the labels are in {output}" * written


@contextmanager
def _browser(url: str) -> Iterator[None]:
    """Open a browser at an address that other users must not see.

    They can read the commands of all processes, so the browser opens a private file that leads to
    the address.
    """
    import tempfile
    import threading
    import webbrowser
    from pathlib import Path

    # It has the mode 0700, and is deleted with the context.
    with tempfile.TemporaryDirectory(prefix="kgtrec-judge-") as folder:
        page = Path(folder, "page.html")
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">\n', "ascii"
        )
        there = page.as_uri()
        # Some browsers block the caller.
        threading.Thread(target=webbrowser.open, args=(there,), daemon=True).start()
        yield


@command.command(short_help="A sheet with its current labels.")
@click.argument("sheet", type=shared.READ)
@shared.writes("-o --output", "Default: NAME.judged.tsv beside the sheet.")
def export(sheet: str, output: str | None) -> Report:
    """Write SHEET with the answers of its journal; the page may stay open.

    \b
    kgtrec judge export sheets/anna.tsv
    kgtrec judge export sheets/anna.tsv -o anna-so-far.tsv
    """
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging import sheets as sheet_files

    target = output or str(journals.path_of_judged_sheet(sheet))
    _keep_sheets([sheet], {"--output": target})
    if output is None:  # a default name must not overwrite a foreign file
        journals.check_earlier_state(target, sheet)
    judged = journals.read_judged_sheet(sheet)
    return Report(
        files=[(target, lambda path: sheet_files.write_sheet(path, judged.items))],
        content=_count_text(judged),
    )


# --- After judging --------------------------------------------------------------------------------


@command.command(short_help="List everything that is wrong with sheets, by line.")
@shared.files("files", "SHEET...")
@shared.choice(
    "--evidence",
    ["optional", "required"],
    "required: every answer Y needs a link (http or https) as evidence.",
    default="optional",
)
@shared.reads("--sources", "Verified sources, a host per line: report links to other hosts.")
@shared.ASKED
def check(files: tuple[str, ...], evidence: str, sources: str | None, asked: str | None) -> Report:
    """List unknown labels, duplicates, contradictions and malformed lines; exit code 2 if any.

    Spreadsheet programs lose and change lines. --asked compares each SHEET with the one that
    `kgtrec judge sheets` wrote, in any order of lines.

    --evidence and --sources check the links as Zhou et al. do (2022, section 3.1). A source covers
    its subdomains: wikipedia.org allows en.wikipedia.org.

    \b
    kgtrec judge check sheets/*.judged.tsv
    kgtrec judge check returned/*.tsv --asked sheets
    kgtrec judge check sheets/*.judged.tsv --evidence required --sources sources.txt
    """
    from kgtrec.study.judging import evidence as links
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging import sheets as sheet_files

    hosts = links.read_sources(sources) if sources else None
    n_faults, faulty, lines = 0, [], []
    for file in files:
        sheet, faults = sheet_files.scan_sheet(file)
        if not faults:
            sheet = journals.read_judged_sheet(file)
            faults = links.find_missing_evidence(sheet.items, evidence == "required", hosts)
            if asked:
                faults += sheet_files.find_changes(sheet, sheet_files.read_asked(asked, file))
                faults.sort()
        lines += [f"{file}:{fault.line}: {fault.problem}; {fault.hint}" for fault in faults]
        if faults:
            n_faults += len(faults)
            faulty.append(str(file))
        word = "fault" if len(faults) == 1 else "faults"
        lines.append(f"{file}: {_count_text(sheet)}, {len(faults):,} {word}")
    error = ""
    if faulty:
        word = "fault" if n_faults == 1 else "faults"
        others = f" and {len(faulty) - 1:,} more files" if len(faulty) > 1 else ""
        error = f"{n_faults:,} {word} in {faulty[0]}{others}; correct the lines above"
    return Report(lambda: "\n".join(lines), error=error)


@command.command(short_help="Agreement of annotators: share, kappa, alpha and AC1.")
@shared.files("files", "SHEET...")
@shared.flag("--by-relation", "Also for each relation.")
@BLANK
@shared.intervals("triples", 2_000)
@shared.FORMAT
def agreement(files: tuple[str, ...], by_relation: bool, blank: str, **options: Any) -> Report:
    """Compare any number of annotators on the triples that they share; "?" counts as a third label
    if it occurs (Zhou et al. 2022, section 3.1).

    Files are named after annotators: anna.batch1.judged.tsv and anna.batch2.judged.tsv are both
    anna's. Cohen's kappa of every pair has a large-sample standard error (Fleiss, Cohen and
    Everitt, 1969). Kappa is nan if both always say the same word, and 0 with the error 0 if one of
    them does. Krippendorff's alpha (nominal) and Gwet's AC1 are for pairs and for all annotators
    together; triples with one label are left out.

    If nearly all labels are N, kappa and alpha are low although annotators agree, and a sentence
    says so: report AC1 and the share, too.

    \b
    kgtrec judge agreement anna.judged.tsv ben.judged.tsv
    kgtrec judge agreement sheets/*.judged.tsv --by-relation --format csv
    """
    from kgtrec.study.judging import agreement as agreeing

    judged = agreeing.read_annotators(files, _blank(blank))
    if len(judged) < 2:
        raise UsageError(f"one annotator, {next(iter(judged))}; give the sheets of two or more")
    agreements = agreeing.compute_agreements(judged, by_relation)
    table = agreeing.tabulate_agreements(agreements, shared.resampling(options))
    # Programs at the end of a pipe need whole names.
    width = WIDTH if sys.stdout.isatty() else sys.maxsize
    return Report.from_table(table, lambda: agreeing.describe_agreements(agreements, table, width))


@command.command(short_help="Merge the labels of several annotators.")
@shared.files("files", "SHEET...")
@shared.output("Final labels.")
@shared.writes("--conflicts", "A sheet of the conflicts, for an adjudicator.")
@shared.reads("--adjudicated", "That sheet, with the adjudicator's labels.")
@shared.ASKED
@shared.seed("Seed of the order of conflicts.")
@BLANK
def merge(
    files: tuple[str, ...],
    output: str,
    conflicts: str | None,
    adjudicated: str | None,
    asked: str | None,
    seed: int,
    blank: str,
) -> Report:
    """Merge labels that annotators agree on, and those that an adjudicator has decided.

    The output omits open conflicts. The sheet of conflicts does not show who said what. --asked
    compares each SHEET with the one that `kgtrec judge sheets` wrote: a lost line would silently
    leave its triple to fewer annotators.

    \b
    kgtrec judge merge returned/*.tsv --asked sheets -o judged.tsv
    kgtrec judge merge anna.judged.tsv ben.judged.tsv --conflicts carla.tsv -o judged.tsv
    kgtrec judge merge anna.judged.tsv ben.judged.tsv --adjudicated carla.judged.tsv -o judged.tsv
    """
    from kgtrec.study.judging import agreement as agreeing
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging import sheets as sheet_files

    _keep_sheets(files, {"--output": output, "--conflicts": conflicts})
    if asked:
        sheet_files.refuse_changes(files, asked)
    decided = journals.read_judged_sheet(adjudicated) if adjudicated else None
    merged = agreeing.merge_sheets(agreeing.read_annotators(files, _blank(blank)), decided, seed)
    notes, new = [], conflicts if merged.conflicts else None
    if merged.conflicts and not conflicts:
        left = f"{len(merged.conflicts):,} conflicts are left out"
        notes.append(warning(f"{left}; --conflicts FILE makes a sheet of them"))
    return Report(
        merged.table().to_text,
        notes=notes,
        files=[
            (new, lambda path: sheet_files.write_new_sheet(path, merged.conflicts)),
            (output, lambda path: sheet_files.write_sheet(path, merged.final)),
        ],
    )


@command.command(short_help="A balanced sample of merged labels, for a second judgement.")
@click.argument("sheet", type=shared.READ)
@shared.option(
    "-n --size", "Triples: half of them true, half false.", type=shared.Count(2), default=100
)
@shared.output("The sheet, without labels.")
@shared.seed("Seed of the draw.")
def audit(sheet: str, size: int, output: str, seed: int) -> Report:
    """Draw as many true as false triples of SHEET, blank and in random order, for an expert.

    `kgtrec judge agreement` then compares the labels of the expert with those of SHEET.

    \b
    kgtrec judge audit judged.tsv -n 100 -o expert.tsv
    kgtrec judge serve expert.tsv
    kgtrec judge agreement judged.tsv expert.judged.tsv
    """
    from kgtrec.study.judging import agreement as agreeing
    from kgtrec.study.judging import journal as journals
    from kgtrec.study.judging import sheets as sheet_files

    _keep_sheets([sheet], {"--output": output})
    drawn = agreeing.draw_audit(journals.read_judged_sheet(sheet).items, size, seed)
    return Report(
        files=[(output, lambda path: sheet_files.write_new_sheet(path, drawn))],
        content=f"{len(drawn):,} triples, half of them labelled Y in {sheet}",
    )


def _keep_sheets(sheets: Sequence[str], outputs: dict[str, str | None]) -> None:
    """Refuse outputs that would overwrite a sheet or its journal."""
    from kgtrec.study.judging import journal as journals

    check_outputs(outputs, [("an input", str(journals.journal_path(sheet))) for sheet in sheets])


def _blank(choice: str) -> str:
    return "" if choice == "open" else choice


def _count_text(sheet: sheet_files.Sheet) -> str:
    """Return how many triples a sheet has, and how many of each label."""
    from kgtrec.study.judging import sheets as sheet_files

    counts = sheet_files.sheet_counts(sheet.items)
    return (
        f"{len(sheet):,} triples, Y {counts['Y']:,}, N {counts['N']:,}, ? {counts['?']:,}, "
        f"open {counts['']:,}"
    )
