"""Evidence for answers: links, whose hosts may have to be in a list of verified sources.

Zhou et al. (2022, section 3.1) ask annotators for the link that contains the information for their
answer. It must be in a list of verified sources: Wikipedia, and others such as AllMusic and IMDB.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from kgtrec.errors import PathName
from kgtrec.study.judging.sheets import Item
from kgtrec.study.pooling.edited_files import EditedFile, Fault

_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+")


def read_sources(path: PathName) -> frozenset[str]:
    """Read a list of hosts, one per line: ``wikipedia.org`` or ``https://www.imdb.com/``.

    Raises
    ------
    Faults
        A line that is neither a host nor an address.
    """
    file = EditedFile(path, "write one host per line, such as wikipedia.org")
    hosts = set()
    for line, cells in file.rows(["host"]):
        text = cells["host"].strip()
        host = _host_of(text) if _LINK.fullmatch(text) else text.lower()
        if _HOST.fullmatch(host):
            hosts.add(host.removeprefix("www."))
        else:
            file.fault(line, f"{text!r} is not the name of a host")
    file.refuse_faults()
    return frozenset(hosts)


def find_missing_evidence(
    items: Sequence[Item], required: bool = False, sources: Collection[str] | None = None
) -> list[Fault]:
    """List answers without a link, and links to hosts that are not among the sources.

    Parameters
    ----------
    items : sequence of Item
        Judged triples, with their lines.
    required : bool
        Whether the answer Y needs a link (http or https).
    sources : collection of str, optional
        Hosts that links may have, such as those of `read_sources`; parts of them
        (``en.wikipedia.org`` of ``wikipedia.org``) are allowed, too. By default all.

    Returns
    -------
    list of Fault
        In the order of the items, at most one for each.
    """
    faults = []
    for item in items:
        links = _LINK.findall(item.evidence)
        if required and item.label == "Y" and not links:
            problem = f"{' '.join(item.triple)!r} is answered Y without a link"
            faults.append(Fault(item.line, problem, "write the address of its source as evidence"))
            continue
        hosts = [_host_of(link) for link in links]
        outside = [] if sources is None else [h for h in hosts if not _is_source(h, sources)]
        if outside:
            problem = f"{outside[0]!r} is not one of the {len(sources or ()):,} sources"
            faults.append(Fault(item.line, problem, "give evidence from one of them"))
    return faults


def _host_of(link: str) -> str:
    """Return the host of an address in lower case; "" if it has none."""
    try:
        return (urlsplit(link).hostname or "").removeprefix("www.").rstrip(".")
    except ValueError:  # brackets that are not closed
        return ""


def _is_source(host: str, sources: Collection[str]) -> bool:
    """Return whether a host, or a domain that it belongs to, is among the sources."""
    parts = host.split(".")
    return any(".".join(parts[start:]) in sources for start in range(len(parts)))
