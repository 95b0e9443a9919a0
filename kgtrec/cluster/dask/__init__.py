"""Parts of a ranking as tasks of Dask.

In: a score source or a Dask array, questions, a client (or none: worker processes of this machine).
Out: the ranks and run of one process. Open `rank` first; `tasks` submits, waits, and ranks chunks
of Dask arrays, `workers` starts processes and looks at them, `shipment` brings inputs to workers
that share no folder.
"""
