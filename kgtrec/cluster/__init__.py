"""Ranking in parts: by question blocks and entity ranges, over processes, jobs and machines.

``store``: questions as memory-mapped files, read by every worker. ``sources``: score files, by
place and content. ``task``: one part of the work, and how parts join. ``plan``: which parts, how
large, how long. ``shards``: parts as the files of a job array.

With Dask, which is loaded when it is used: ``engine`` (`rank`) and ``chunks`` (Dask arrays) hand
parts to ``workers`` (``local``: processes of this machine); ``reach`` and ``shipping`` take inputs
to those that share no folder; ``parts`` keeps what is done; ``batch`` does many jobs, from
``jobfile`` and ``tablefile``; ``records``: how they stand.

Examples
--------
>>> import kgtrec.cluster                                             # doctest: +SKIP
>>> ranks, run = kgtrec.cluster.rank("model.npz", questions)          # doctest: +SKIP
>>> client = distributed.Client("tcp://node1:8786")                   # doctest: +SKIP
>>> ranks, run = kgtrec.cluster.rank("model.npz", questions, client)  # doctest: +SKIP
"""

from kgtrec.cluster.engine import rank

__all__ = ["rank"]
