"""Parts of a ranking as tasks of Dask.

In: a score source or a Dask array, questions, a client (or none: worker processes of this machine).
Out: the ranks and run of one process. Open `rank` first; `workers` submits and waits, `local`
starts processes, `transfer` brings inputs to workers that share no folder, `dask_array` ranks
chunks.
"""
