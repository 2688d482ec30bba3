"""A stream of manifests with the reporter in its Jobs, or out of them, and what is said of each."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.kubernetes_yaml import template_hint
from reporter.common.objects import section, text
from reporter.inject import rendering
from reporter.inject.decide import decide
from reporter.inject.documents import Document, UnreadableManifest, read, split
from reporter.inject.editing import Unplaced, edited
from reporter.inject.edits import Edit, apply, get
from reporter.inject.jobs import FoundJob, jobs
from reporter.inject.options import Wishes
from reporter.inject.record import ANNOTATION
from reporter.inject.rights import gives, role, role_binding
from reporter.inject.transform import Injected, Refused, Skipped, account_of, reporter_of, uninject

_ABOUT = re.compile(r"Job|List|\brbac\.authorization\.k8s\.io\b")
_RIGHTS: Final = "rights"
_MARK: Final = "\ufeff"  # of the byte order, which some editors write
_REWRITTEN: Final = "rewritten without its comments: it has aliases or an unusual YAML layout"


@dataclass(frozen=True, slots=True)
class Said:
    """What became of one object, in words; `place` is the line of its document."""

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
_Changes = tuple[list[Edit], list[Edit]]
_Decide = Callable[[Document, int, "Made"], _Changes]


def injected(stream: str, wishes: Wishes, chosen: Chosen, *, with_rights: bool = False) -> Made:
    """Put the reporter into the Jobs of a stream."""
    made = Made()

    def changes(document: Document, line: int, made: Made) -> _Changes:
        out, put_in = list[Edit](), list[Edit]()
        for found in jobs(document.value):
            if not chosen(found.labels):
                continue
            decision = decide(document.value, found, wishes)
            out += decision.out
            put_in += decision.put_in
            made.said.append(_told(decision.said, found, line, changes=decision.changes))
            pod = section(get(document.value, found.pod))
            if isinstance(decision.said, Injected) or reporter_of(pod) is not None:
                made.accounts.setdefault((found.namespace, account_of(pod)), line)
        return out, put_in

    made.text = "".join(_each(stream, changes, made))
    if with_rights:
        made.text = _with_rights(made)
    return made


def uninjected(stream: str, chosen: Chosen) -> Made:
    """Take the reporter out of the Jobs of a stream, and the rights that were added for it."""
    made = Made()

    def changes(document: Document, line: int, made: Made) -> _Changes:
        out = list[Edit]()
        for found in jobs(document.value):
            if not chosen(found.labels):
                continue
            own = uninject(document.value, found)
            out += own
            if own:
                made.said.append(Said(line, found.shown, "uninjected"))
            elif reporter_of(section(get(document.value, found.pod))) is not None:
                why = "unchanged: its reporter was not added by status-ctl inject"
                made.said.append(Said(line, found.shown, why))
        return out, []

    kept = []
    for piece in split(stream):
        if ANNOTATION not in piece or not _is_rights(piece):
            kept.append(piece)
        elif kept and not piece.endswith("\n"):
            kept[-1] = kept[-1].removesuffix("\n")
    made.text = "".join(_each("".join(kept), changes, made))
    return made


def _each(stream: str, changes: _Decide, made: Made) -> Iterable[str]:
    """Yield the documents' texts, changed."""
    line = 1
    if stream.startswith(_MARK):
        yield _MARK
    for piece in split(stream.removeprefix(_MARK)):
        yield _changed(piece, line, changes, made)
        line += piece.count("\n")


def _changed(piece: str, line: int, changes: _Decide, made: Made) -> str:
    if not _ABOUT.search(piece):
        return piece
    try:
        document = read(piece)
    except UnreadableManifest as error:
        what = f"unchanged: {error}{template_hint(piece)}"
        made.said.append(Said(line + error.line - 1, "the document", what, failed=True))
        return piece
    out, put_in = changes(document, line + document.line - 1, made)
    for edits in (out, put_in):
        if not edits:
            continue
        try:
            piece = edited(document, edits)
        except Unplaced:
            piece = _rewritten(document, apply(document.value, edits))
            made.said.append(Said(line + document.line - 1, "the document", _REWRITTEN))
        document = read(piece)
    return piece


def _rewritten(document: Document, value: Any) -> str:
    """Write a document anew; what stands before and after it is kept."""
    assert document.root is not None
    begin = document.text.rfind("\n", 0, document.root.start_mark.index) + 1
    before, own = document.text[:begin], document.text[begin:]
    if own.startswith("{"):
        return before + json.dumps(value, indent=2) + "\n"
    if own.startswith("---"):
        before += "---\n"
    tail = "...\n" if re.search(r"^\.\.\.\s*\Z", own, re.MULTILINE) else ""
    return before + "\n".join(rendering.block(value)) + "\n" + tail


def _told(said: Injected | Skipped | Refused, found: FoundJob, line: int, *, changes: bool) -> Said:
    match said:
        case Injected(form, adapter, _, remarks) if changes:
            what = f"injected ({form.value} form, adapter {adapter})"
            return Said(line, found.shown, what, remarks)
        case Injected():
            return Said(line, found.shown, "unchanged: injected already")
        case Refused(reason):
            return Said(line, found.shown, f"not injected: {reason}", failed=True)
    what = f"uninjected: {said.reason}" if changes else f"unchanged: {said.reason}"
    return Said(line, found.shown, what)


def _with_rights(made: Made) -> str:
    """Add the Roles and RoleBindings that are not in the stream."""
    there: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for piece in split(made.text):
        if "rbac.authorization.k8s.io" in piece:
            value = _value(piece)
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
            pieces.append("---\n" + "\n".join(rendering.block(each)) + "\n")
        elif not gives(there[key], each):
            what = f"{each['kind']} {key[2]} is in the manifests, but not as the reporter needs it"
            made.said.append(Said(line, "the rights", what))
    added = "".join(pieces)
    if not added or made.text.endswith("\n"):
        return made.text + added
    return f"{made.text}\n{added.removesuffix(chr(10))}"


def _is_rights(piece: str) -> bool:
    value = _value(piece)
    kind = text(value, "kind")
    return (
        kind in ("Role", "RoleBinding")
        and section(value, "metadata", "annotations").get(ANNOTATION) == _RIGHTS
    )


def _value(piece: str) -> Mapping[str, Any]:
    try:
        return section(read(piece).value)
    except UnreadableManifest:
        return {}
