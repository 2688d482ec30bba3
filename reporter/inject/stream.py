"""A stream of manifests with the reporter in its Jobs, or out of them, and what is said of each."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Final

from reporter.common.kubernetes_yaml import (
    DIRECTIVE,
    NO_KEY,
    Document,
    Mistake,
    split,
    template_hint,
)
from reporter.common.objects import json_object, section, text
from reporter.common.yaml_text import block
from reporter.inject.container import Wishes
from reporter.inject.editing import Unplaced, edited, read
from reporter.inject.hooks import Hook, annotations_before
from reporter.inject.jobs import FoundJob, get, jobs, labels_of, objects_in, put
from reporter.inject.rights import gives, role_and_binding
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
    with_rights: bool = False
    """Whether a Role was added."""

    @property
    def failed(self) -> bool:
        """Whether something could not be done."""
        return any(each.failed for each in self.said)


@dataclass(slots=True)
class _Account:
    """Where the first of an account's Jobs with a reporter is, and when Helm creates them."""

    line: int
    piece: int
    hooks: list[Hook] = field(default_factory=list)


Chosen = Callable[[Mapping[str, str]], bool]
"""Says by its labels whether a Job is one of those that are meant."""
_Change = Callable[[Any, FoundJob, int], tuple[Any, Any]]
"""From a Job, and the line of its document: the Job without a reporter, and as it is to be."""
_Key = tuple[str, str, bool]
"""A namespace, an account in it, and whether it is about the Jobs that are Helm hooks."""
_Identity = tuple[str, str, str]
"""Kind, namespace and name of an object."""
_Pieces = Iterable[tuple[int, str]]
"""The texts of documents, and how many lines stand before each."""


def injected(stream: str, wishes: Wishes, chosen: Chosen, *, with_rights: bool = False) -> Made:
    """Put the reporter into the Jobs of a stream."""
    made, pieces, accounts = Made(), list[str](), dict[_Key, _Account]()

    def change(job: Any, found: FoundJob, line: int) -> tuple[Any, Any]:
        decision = decide(job, found, wishes)
        made.said.append(_told(decision, found, line, changes=decision.job is not job))
        pod = section(job, "spec", "template", "spec")
        if isinstance(decision.said, Injected) or reporter_of(pod) is not None:
            key = found.namespace, account_of(pod), bool(found.hook.events)
            accounts.setdefault(key, _Account(line, len(pieces))).hooks.append(found.hook)
        return decision.bare, decision.job

    mark, documents = _documents(stream)
    for piece in _changed(documents, chosen, change, made.said):
        pieces.append(piece)  # one after the other: `change` counts them
    if with_rights:
        made.with_rights = _add_rights(pieces, accounts, made.said)
    made.text = "".join((mark, *pieces))
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

    mark, documents = _documents(stream)
    bare = _without_rights([*documents], chosen)
    made.text = "".join((mark, *_changed(bare, chosen, change, made.said)))
    return made


def _documents(stream: str) -> tuple[str, _Pieces]:
    bare = stream.removeprefix(_MARK)
    pieces = split(bare)
    lines = accumulate((each.count("\n") for each in pieces), initial=0)
    return stream[: len(stream) - len(bare)], zip(lines, pieces, strict=False)


def _changed(pieces: _Pieces, chosen: Chosen, change: _Change, said: list[Said]) -> Iterator[str]:
    """Yield the texts of documents, with their Jobs changed."""
    for before, piece in pieces:
        yield _changed_document(piece, before, chosen, change, said)


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
        document = _with_value(document, value, said)
    return document.text


def _with_value(document: Document, value: Any, said: list[Said]) -> Document:
    try:
        return edited(document, value)
    except Unplaced:
        said.append(Said(document.first, "the document", _REWRITTEN))
        return read(_rewritten(document, value), document.before)


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


def _add_rights(pieces: list[str], accounts: Mapping[_Key, _Account], said: list[Said]) -> bool:
    """Put the Roles and RoleBindings that are not among the documents before the first Job.

    Those of an earlier injection are made what they are to be. Returns whether some are new.
    """
    there: dict[_Identity, tuple[int, Document]] = {}
    for at, piece in enumerate(pieces):
        if "rbac.authorization.k8s.io" in piece:
            document = read(piece)
            there[_identity(document.value)] = at, document
    added: dict[int, list[dict[str, Any]]] = {}
    for (namespace, name, hook), account in sorted(accounts.items(), key=lambda each: each[0]):
        annotations = {ANNOTATION: _RIGHTS, **annotations_before(account.hooks)}
        for each in role_and_binding(namespace, name, hook=hook):
            key = each["kind"], namespace, each["metadata"]["name"]
            each["metadata"]["annotations"] = annotations
            if key not in there:
                added.setdefault(account.piece, []).append(each)
                continue
            at, document = there[key]
            if _marked(document.value):
                pieces[at] = _with_value(document, each, said).text
            elif not gives(document.value, each):
                what = f"{each['kind']} {key[2]} is in the manifests, but differs from what the"
                said.append(Said(account.line, "the rights", f"{what} reporter needs"))
    # JSON without markers between its objects stays JSON.
    bare = any(
        after.startswith("{") and json_object(before) is not None
        for before, after in pairwise(pieces)
    )
    for at, objects in added.items():
        pieces[at] = _preceded(pieces[at], objects, bare=bare)
    return bool(added)


def _preceded(piece: str, objects: list[dict[str, Any]], *, bare: bool) -> str:
    """Put objects before a document, with markers where it has one or needs one then."""
    if bare and json_object(piece) is not None:
        lines = "".join(f"{json.dumps(each)}\n" for each in objects)
        begin = piece.index("{")
        return piece[:begin] + lines + piece[begin:]
    added = "---\n".join("".join(f"{line}\n" for line in block(each)) for each in objects)
    if piece.startswith("---"):
        return f"---\n{added}{piece}"
    return f"{added}{'...' if DIRECTIVE.match(piece) else '---'}\n{piece}"


def _without_rights(pieces: Sequence[tuple[int, str]], chosen: Chosen) -> _Pieces:
    """Leave out what `_preceded` has put there, unless a Job that keeps its reporter uses it."""
    used = {key for _, piece in pieces for key in _rights_kept(piece, chosen)}
    unmarked = False
    for before, piece in pieces:
        value = read(piece).value if ANNOTATION in piece else None
        if _marked(value) and _identity(value) not in used:
            unmarked = unmarked or not piece.startswith("---")
            yield before, piece[: piece.find("{")] if piece.lstrip().startswith("{") else ""
        else:
            yield before, piece.removeprefix("---\n") if unmarked else piece
            unmarked = False


def _rights_kept(piece: str, chosen: Chosen) -> Iterator[_Identity]:
    """Yield the Roles and RoleBindings of the Jobs in a document that keep their reporters."""
    value = read(piece).value if "Job" in piece else None
    for found in jobs(value):
        job = get(value, found.job)
        if not chosen(labels_of(job, found)) or without_reporter(job) is job:
            pod = section(job, "spec", "template", "spec")
            if reporter_of(pod) is not None:
                rights = role_and_binding(
                    found.namespace, account_of(pod), hook=bool(found.hook.events)
                )
                yield from map(_identity, rights)


def _identity(value: Any) -> _Identity:
    metadata = section(value, "metadata")
    return text(section(value), "kind"), text(metadata, "namespace"), text(metadata, "name")


def _marked(value: Any) -> bool:
    """Return whether it is what `_add_rights` adds."""
    marked = section(value, "metadata", "annotations").get(ANNOTATION) == _RIGHTS
    return marked and text(section(value), "kind") in ("Role", "RoleBinding")
