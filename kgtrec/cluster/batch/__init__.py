"""Many models x graphs x protocols from one file (`kgtrec batch`).

In: a job file. Out: one dataset of ranks and one summary; what is done is not done again. Open
`batch` first; `job_file` reads and checks the jobs, `records` says how each of them stands.
"""
