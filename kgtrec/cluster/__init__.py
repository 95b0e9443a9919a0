"""Ranking in parts: by blocks of questions and ranges of entities, over processes and machines.

In: a score source, questions, and memory that a task may use. Out: the ranks and run of one
process. Open `plan` first (which parts, how large, how long), then `parts` (one part, and several
merged). `question_store`: questions as memory-mapped files; `score_files`: scores by place and
content; `stored_ranks`: ranks and run in files. Three ways to run parts: `dask/`, `shards` (a job
array), and `batch/` (many jobs on Dask).

Examples
--------
>>> import kgtrec.cluster                                             # doctest: +SKIP
>>> ranks, run = kgtrec.cluster.rank("model.npz", questions)          # doctest: +SKIP
>>> client = distributed.Client("tcp://node1:8786")                   # doctest: +SKIP
>>> ranks, run = kgtrec.cluster.rank("model.npz", questions, client)  # doctest: +SKIP
"""

from kgtrec.cluster.dask.rank import rank, rank_to_file
from kgtrec.cluster.question_store import store_questions

__all__ = ["rank", "rank_to_file", "store_questions"]
