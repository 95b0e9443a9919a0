"""Audits of published tables: can the numbers be true together, and which protocol gives them?

In: a table as a paper prints it, and the size of its test set, or ranks. Out: `Audit` and
`ProtocolSearch`, with a `table()` each. `claims` reads numbers as intervals, and compares them with
every protocol of given ranks; `possible` decides whether one ranking has all.
"""
