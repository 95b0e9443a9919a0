"""Audits of published tables: whether one ranking can have the numbers, and by which protocol.

In: a table as a paper prints it, and the size of its test set, or ranks. Out: `Audit` and
`ProtocolSearch`, with a `table()` each. `claims` reads numbers as intervals, and compares them with
every protocol of some ranks. `possible` decides whether one ranking can have all numbers.
"""
