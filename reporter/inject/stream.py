"""A stream of manifests with the reporter in its Jobs, or out of them, and what is said of each."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.kubernetes_yaml import NO_KEY, Document, Mistake, split, template_hint
from reporter.common.objects import section, text
from reporter.common.yaml_text import block
from reporter.inject.container import Wishes
from reporter.inject.editing import Unplaced, edited, read
from reporter.inject.jobs import FoundJob, get, jobs, labels_of, objects_in, put
from reporter.inject.rights import gives, role, role_binding
from reporter.inject.transform import (
    ANNOTATION,
    AUTOMOUNT,
    Decision,
    Injected,
    Refused,
    account_of,
    decide,
    reporter_of,
    without_reporter,
)

_ABOUT = re.compile(r"Job|List|\brbac\.authorization\.k8s\.io\b")
_RIGHTS: Final = "rights"
_MARK: Final = "\ufeff"  # of the byte order, which some editors write
_REWRITTEN: Final = "rewritten without its comments: it has aliases or an unusual layout"


@dataclass(frozen=True, slots=True)
class Said:
    """What became of one object, in words; `line` is that of its document."""

    line: int
    shown: str
    what: str
    notes: tuple[str, ...] = ()
    failed: bool = False


@dataclass(slots=True)
class Made:
    """The stream as it is to be, and what is said of it."""

    text: str = ""
    said: list[Said] = field(default_factory=list)
    accounts: dict[tuple[str, str], int] = field(default_factory=dict)
    """Namespaces and accounts of Jobs with a reporter, and the line of the first such Job."""

    @property
    def failed(self) -> bool:
        """Whether something could not be done."""
        return any(each.failed for each in self.said)


Chosen = Callable[[Mapping[str, str]], bool]
"""Says by its labels whether a Job is one of those that are meant."""
_Change = Callable[[Any, FoundJob, int], tuple[Any, Any]]
"""From a Job, and the line of its document: the Job without a reporter, and as it is to be."""


def injected(stream: str, wishes: Wishes, chosen: Chosen, *, with_rights: bool = False) -> Made:
    """Put the reporter into the Jobs of a stream."""
    made = Made()

    def change(job: Any, found: FoundJob, line: int) -> tuple[Any, Any]:
        decision = decide(job, found, wishes)
        made.said.append(_told(decision, found, line, changes=decision.job is not job))
        pod = section(job, "spec", "template", "spec")
        if isinstance(decision.said, Injected) or reporter_of(pod) is not None:
            made.accounts.setdefault((found.namespace, account_of(pod)), line)
        return decision.bare, decision.job

    made.text = "".join(_changed(stream, chosen, change, made.said))
    if with_rights:
        made.text = _with_rights(made)
    return made


def without_token(streams: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield namespaces and names of the ServiceAccounts whose Pods do not get their token."""
    pieces = (piece for stream in streams for piece in split(stream.removeprefix(_MARK)))
    for piece in pieces:
        if AUTOMOUNT in piece and "ServiceAccount" in piece:
            for each, _ in objects_in(read(piece).value):
                if text(each, "kind") == "ServiceAccount" and each.get(AUTOMOUNT) is False:
                    metadata = section(each, "metadata")
                    yield text(metadata, "namespace"), text(metadata, "name")


def uninjected(stream: str, chosen: Chosen) -> Made:
    """Take the reporter out of the Jobs of a stream, and the rights that were added for it."""
    made = Made()

    def change(job: Any, found: FoundJob, line: int) -> tuple[Any, Any]:
        bare = without_reporter(job)
        if bare is not job:
            made.said.append(Said(line, found.shown, "uninjected"))
        elif reporter_of(section(job, "spec", "template", "spec")) is not None:
            why = "unchanged: its reporter was not added by status-ctl inject"
            made.said.append(Said(line, found.shown, why))
        return bare, bare

    kept = []
    for piece in split(stream):
        if ANNOTATION not in piece or not _is_rights(piece):
            kept.append(piece)
        elif kept and not piece.endswith("\n"):
            kept[-1] = kept[-1].removesuffix("\n")
    made.text = "".join(_changed("".join(kept), chosen, change, made.said))
    return made


def _changed(stream: str, chosen: Chosen, change: _Change, said: list[Said]) -> Iterator[str]:
    """Yield the texts of a stream's documents, with their Jobs changed."""
    before = 0
    if stream.startswith(_MARK):
        yield _MARK
    for piece in split(stream.removeprefix(_MARK)):
        yield _changed_document(piece, before, chosen, change, said)
        before += piece.count("\n")


def _changed_document(
    piece: str, before: int, chosen: Chosen, change: _Change, said: list[Said]
) -> str:
    if not _ABOUT.search(piece):
        return piece
    document = read(piece, before)
    bare = new = document.value
    found = [
        each
        for each in jobs(document.value)
        if chosen(labels_of(get(document.value, each.job), each))
    ]
    if mistake := _unreadable(document, found):
        what = f"unchanged: {mistake}{template_hint(piece)}"
        said.append(Said(mistake.line, "the document", what, failed=True))
        return piece
    for each in found:
        job = get(document.value, each.job)
        without, with_it = change(job, each, document.first)
        if not (without is with_it is job):
            bare, new = put(bare, each.job, without), put(new, each.job, with_it)
    for value in (bare, new):
        if value == document.value:
            continue
        try:
            document = edited(document, value)
        except Unplaced:
            said.append(Said(document.first, "the document", _REWRITTEN))
            document = read(_rewritten(document, value), before)
    return document.text


def _unreadable(document: Document, found: list[FoundJob]) -> Mistake | None:
    """Return why a document is not changed: it cannot be read, or has Jobs and is a template."""
    whole = document.value is None
    return next(
        (each for each in document.mistakes if whole or (found and each.text == NO_KEY)), None
    )


def _rewritten(document: Document, value: Any) -> str:
    """Write a document anew, JSON as JSON; what stands before and after it is kept."""
    assert document.root is not None
    begin = document.text.rfind("\n", 0, document.root.start_mark.index) + 1
    before, own = document.text[:begin], document.text[begin:]
    if document.is_json:
        return f"{before}{json.dumps(value, ensure_ascii=False)}\n"
    if own.startswith("---"):
        before += "---\n"
    tail = "...\n" if re.search(r"^\.\.\.\s*\Z", own, re.MULTILINE) else ""
    return before + "\n".join(block(value)) + "\n" + tail


def _told(decision: Decision, found: FoundJob, line: int, *, changes: bool) -> Said:
    match decision.said:
        case Injected(form, adapter, remarks) if changes:
            what = f"injected ({form.value} form, adapter {adapter})"
            return Said(line, found.shown, what, remarks)
        case Injected():
            return Said(line, found.shown, "unchanged: injected already")
        case Refused(reason):
            return Said(line, found.shown, f"not injected: {reason}", failed=True)
    what = "uninjected" if changes else "unchanged"
    return Said(line, found.shown, f"{what}: {decision.said.reason}")


def _with_rights(made: Made) -> str:
    """Add the Roles and RoleBindings that are not in the stream."""
    there: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for piece in split(made.text):
        if "rbac.authorization.k8s.io" in piece:
            value = section(read(piece).value)
            metadata = section(value, "metadata")
            key = text(value, "kind"), text(metadata, "namespace"), text(metadata, "name")
            there[key] = value
    wanted: dict[tuple[str, str, str], tuple[dict[str, Any], int]] = {}
    for (namespace, account), line in sorted(made.accounts.items()):
        for each in (role(namespace, account), role_binding(namespace, account)):
            key = each["kind"], namespace, each["metadata"]["name"]
            wanted.setdefault(key, (each, line))
    pieces = []
    for key, (each, line) in sorted(wanted.items()):
        if key not in there:
            each["metadata"]["annotations"] = {ANNOTATION: _RIGHTS}
            pieces.append("---\n" + "\n".join(block(each)) + "\n")
        elif not gives(there[key], each):
            what = f"{each['kind']} {key[2]} is in the manifests, but not as the reporter needs it"
            made.said.append(Said(line, "the rights", what))
    added = "".join(pieces)
    if not added or made.text.endswith("\n"):
        return made.text + added
    return f"{made.text}\n{added.removesuffix(chr(10))}"


def _is_rights(piece: str) -> bool:
    value = read(piece).value
    marked = section(value, "metadata", "annotations").get(ANNOTATION) == _RIGHTS
    return marked and text(section(value), "kind") in ("Role", "RoleBinding")
