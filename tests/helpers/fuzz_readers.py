"""Damage run and qrels files at random: no crash, and full agreement with the oracle.

    python tests/helpers/fuzz_readers.py --minutes 30 --seed 1

Use a build with sanitizers (KGTREC_BUILD=sanitize). A failure writes the bytes to a file in the
working folder, and prints its name.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from itertools import accumulate
from pathlib import Path

import pytest
import trec_oracle as oracle

from kgtrec.errors import FileError, RunWarning
from kgtrec.trec.files import parse
from kgtrec.trec.files.run import read_qrels_columns, read_run_columns
from kgtrec.trec.files.text import Cut, ReadAhead
from kgtrec.trec.measures.judge import read_judgements, read_lists

RUNS = [
    b"q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.5 t\nq2 Q0 d1 1 0.1 t\n",
    b"1 Q0 /m/07c 1 0.12345678901234567 kgtrec\r\n1\tQ0\t/m/08d\t2\t-1e-3\tkgtrec\r\n"
    b"\r\n2 0 x 0 inf r",
    b"\xef\xbb\xbfa 0 d 1 1e22 t\n# note\nb 0 d 1 9007199254740993 t\n"
    b"a 0 e 1 1e-320 t x y\n \v\f\n",
    b"q 0 a 1 1 t\nq 0 b 1 1.0 t\nq 0 c 1 1e0 t\nq 0 ab 1 1.00000000001 t\nr 0 \xff\x00 1 -inf t\n",
    b"".join(b"7 Q0 doc%d 1 %d.%d tag\n" % (i, i * 37 % 11, i) for i in range(40)),
]
QRELS = [
    b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d9 2\n",
    b"# made by hand\n1 0 /m/07c 1\r\n1\t0\t/m/08d\t-1\n2 0 x +3",
    b"\xef\xbb\xbfa 0 d 1\nb 0 d 0\n #\na 0 e 9223372036854775807\na 0 f -9223372036854775808\n",
    b"q 0 b 1\nq 0 c 2\nr 0 \xff\x00 4\nq 0 zz -2\n# end",
    b"".join(b"7 0 doc%d %d\n" % (i * 3, i % 4 - 1) for i in range(20)),
]
TOKENS = [
    b" ", b"\n", b"\t", b"\r", b"\v", b"\f", b"\0", b"#", b"-", b"+", b".", b"e", b"E", b"_",
    b"nan", b"inf", b"0", b"9", b"1e400", b"1e-400", b"12345678901234567890", b"99999999",
    b"0x1p3", b"\xff", b"\xc3\xa9", b"q1", b"d1", b"7", b" 1 2 3", b"\n\n",
    b"\xef\xbb\xbf", b"4.9e-324", b"t",
]  # fmt: skip


def mutated(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A few small damages; most of them leave most lines valid."""
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        lines = data.splitlines(keepends=True) or [b""]
        data = rng.choice(
            (
                lambda a=a, d=data: d[:a] + rng.choice(TOKENS) + d[a:],
                lambda a=a, d=data: d[:a] + bytes([rng.randrange(256)]) + d[a + 1 :],
                lambda a=a, b=b, d=data: d[:a] + d[min(b, a + rng.randrange(9)) :],
                lambda x=lines: b"".join(rng.sample(x, len(x))),
                lambda x=lines: b"".join([*x, rng.choice(x)]),
                lambda a=a, d=data: d[:a],
                lambda d=data: d + rng.choice(others),
                lambda d=data: d.replace(rng.choice(TOKENS), rng.choice(TOKENS), 1),
                lambda d=data: d.replace(b" ", rng.choice((b"  ", b"\t", b" \f"))),
            )
        )()
    return data


def due(data: bytes, is_run: bool):
    """The oracle's result, or its refusal."""
    try:
        return oracle.read(data, is_run), None
    except oracle.Refused as refusal:
        return None, refusal


SAYS = {
    "blank": "a blank line", "columns": " column", "score": "score ", "relevance": "relevance ",
    "duplicate": " twice", "empty": "contains no lines",
    "packed": "the content is ",
}  # fmt: skip


def check_error(error: FileError, refusal: oracle.Refused) -> None:
    assert error.line == refusal.line, (error, refusal)
    assert SAYS[refusal.why] in error.found, (error, refusal)
    assert error.exit_code == (4 if refusal.why == "duplicate" else 2)
    str(error).encode()


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)  # also distinguishes 0.0 and -0.0


def check_columns(path: Path, data: bytes, is_run: bool, threads: int):
    """Check columns against the oracle; return its result, or None."""
    read, refusal = due(data, is_run)
    columns, error = None, None
    try:
        columns = (read_run_columns if is_run else read_qrels_columns)(path, threads=threads)
    except FileError as raised:
        error = raised
    assert (error is None) == (refusal is None), (error, refusal)
    if refusal is not None:
        check_error(error, refusal)
        assert str(error).startswith(str(path))
        with pytest.raises(FileError) as again:  # also of queries without a judgement
            read_lists({"q": {"d": 1}}, path, threads=threads) if is_run else read_judgements(path)
        assert str(again.value) == str(error)
        return None
    queries, tag = read
    names = [query.encode("utf-8", "surrogateescape") for query in columns.queries]
    assert names == list(queries)
    assert columns.documents.to_pylist() == [d for query in queries.values() for d in query]
    values = (columns.scores if is_run else columns.relevance).tolist()
    assert same(values, [value for query in queries.values() for value in query.values()])
    assert columns.offsets.tolist() == [*accumulate(map(len, queries.values()), initial=0)]
    assert not is_run or columns.tag.encode("utf-8", "surrogateescape") == tag
    return queries


def read_ahead(qrels_path, run_path, cut: Cut) -> ReadAhead:
    with ReadAhead(str(qrels_path), [str(run_path)], cut) as ahead:
        return ahead


def cut_of(options: dict) -> dict:
    """The arguments of `read_lists`."""
    cut = Cut(**{name: options[name] for name in Cut._fields if name in options})
    return {"cut": cut, "absent": options.get("absent", False)}


def check_lists(qrels_path, run_path, qrels, run, options: dict, threads: int) -> bool:
    """Check lists against the oracle's, if both files are valid. Return whether they are plain."""
    judged, how = read_judgements(qrels_path, threads=threads), cut_of(options)
    lists = read_lists(judged, run_path, threads=threads, **how)
    check_as_oracle(lists, qrels, run, options)
    ahead = read_ahead(qrels_path, run_path, how["cut"])
    if not ahead.has_read(judged.native) or ahead.lists(str(run_path), ahead.cut) is None:
        return False
    check_as_oracle(read_lists(judged, str(run_path), ahead=ahead, **how), qrels, run, options)
    return True


def check_as_oracle(lists, qrels, run, options: dict) -> None:
    keywords = {("single_precision" if k == "single" else k): v for k, v in options.items()}
    expected = oracle.lists(qrels, run, **keywords)
    names = [query.encode("utf-8", "surrogateescape") for query in lists.queries]
    assert names == list(expected)
    for i, (relevance, scores, retrieved, judgements) in enumerate(expected.values()):
        own = slice(lists.offsets[i], lists.offsets[i + 1])
        assert lists.relevance[own].tolist() == relevance
        assert same(lists.scores[own].tolist(), scores)
        assert lists.retrieved[i] == retrieved
        own = slice(lists.judged_offsets[i], lists.judged_offsets[i + 1])
        assert lists.judged[own].tolist() == judgements
    assert lists.unanswered == len(qrels.keys() - run.keys())
    assert lists.unasked == len(run.keys() - qrels.keys())


def random_options(rng: random.Random) -> dict:
    return {
        "depth": rng.choice((None, 0, 1, 2, 3, 7)),
        **{name: rng.random() < 0.4 for name in ("keep_ties", "judged_only", "single", "absent")},
    }


def fuzz(folder: Path, seed: int, seconds: float, rounds: int | None = None) -> int:
    """Run rounds; return their number. Raise the first disagreement, after saving its bytes."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore", RunWarning)  # damage joins lines; pytest restores its filters
    ends, done = time.monotonic() + seconds, 0
    run_path, qrels_path = folder / "fuzz.run", folder / "fuzz.qrels"
    small = parse._PART_BYTES, parse._PART_DOCUMENTS, parse._FEW_GROUPS
    try:
        while done != rounds and time.monotonic() < ends:
            parse._PART_BYTES = rng.choice((1, 16, 100, small[0]))
            parse._PART_DOCUMENTS = rng.choice((1, 3, small[1]))
            parse._FEW_GROUPS = rng.choice((1, 2, small[2]))
            threads = rng.choice((1, 2, 3))
            at = rng.randrange(len(RUNS))
            run_bytes = mutated(rng, RUNS[at], RUNS)
            qrels_bytes = mutated(rng, QRELS[at], QRELS)
            run_path.write_bytes(run_bytes)
            qrels_path.write_bytes(qrels_bytes)
            run = check_columns(run_path, run_bytes, True, threads)
            qrels = check_columns(qrels_path, qrels_bytes, False, threads)
            if run is not None and qrels is not None:
                check_lists(qrels_path, run_path, qrels, run, random_options(rng), threads)
            else:
                ahead = read_ahead(qrels_path, run_path, Cut())
                assert ahead.lists(str(run_path), ahead.cut) is None
            done += 1
    finally:
        parse._PART_BYTES, parse._PART_DOCUMENTS, parse._FEW_GROUPS = small
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        try:
            done = fuzz(Path(folder), options.seed, 60 * options.minutes)
        except AssertionError:
            stem = f"fuzz-{options.seed}-{os.getpid()}"
            for suffix in (".run", ".qrels"):
                Path(stem + suffix).write_bytes(Path(folder, "fuzz" + suffix).read_bytes())
            print(f"disagreement: see {stem}.run and {stem}.qrels", file=sys.stderr)
            raise
    print(f"{done:,} pairs of files, no disagreement")
    return 0


if __name__ == "__main__":
    sys.exit(main())
