"""What the document of a run says in words beside its entries, as lines for people."""

from typing import Final

from reporter.common.objects import items, section, text
from reporter.run.launcher_status import Step
from reporter.run.state import Status
from reporter.run.tar_upload import UploadState
from reporter.run.view import Document, counts, over

REMOVING: Final = "removing the plugins"
FINISHING: Final = "finishing"
UPLOADING: Final = "uploading the results"


def ending(document: Document) -> str:
    """Say what is done between the last decision and the end; else, or if it is not told, nothing.

    The annotations do not tell of the launcher.
    """
    counted = counts(document)
    if over(document) or counted["decided"] < counted["entries"]:
        return ""
    if text(section(document, "upload"), "state") == UploadState.UPLOADING:
        return UPLOADING
    if "launcher" not in document or section(document, "tar-info"):
        return ""
    match text(section(document, "launcher"), "step"):
        case Step.REMOVING:
            return REMOVING
        case Step.DONE:
            return FINISHING
        case "" if text(document, "status") == Status.POST_PROCESSING:
            return FINISHING
        case _:
            return ""


def own_words(document: Document) -> list[str]:
    """Say what the aggregator tells of itself: its own failure, and how the upload stands."""
    error, upload = text(document, "error"), upload_words(document)
    found = [f"the aggregator itself failed: {error}"] if error else []
    return [*found, upload] if upload else found


def upload_words(document: Document) -> str:
    """Say how the upload of the results stands; nothing where none was asked for."""
    upload = section(document, "upload")
    host, error = text(upload, "host"), text(upload, "error")
    match text(upload, "state"):
        case UploadState.WAITING:
            doubt = f"; this may fail: {error}" if error else ""
            return f"the results will be uploaded to {host}{doubt}"
        case UploadState.UPLOADING:
            again = f"; it is tried again: {error}" if error else ""
            return f"{UPLOADING} to {host}{again}"
        case UploadState.UPLOADED:
            return f"the results were uploaded to {host}"
        case UploadState.FAILED:
            return f"the results could not be uploaded to {host}: {error}"
        case _:
            return ""


def hindrances(document: Document) -> list[str]:
    """What the launcher has to say of the whole run: its trouble, what stays, who was left out."""
    launcher = section(document, "launcher")
    found = [trouble] if (trouble := launcher_trouble(document)) else []
    found += [
        f"{text(each, 'object')} could not be removed: {text(each, 'reason')}"
        for each in items(launcher, "stays")
    ]
    found += [
        f"plugin {text(each, 'name')} skips node {text(each, 'node')}: {text(each, 'reason')}"
        for each in items(document, "skipped")
    ]
    return found


def launcher_trouble(document: Document) -> str:
    """Say what holds the launcher up, and since when; nothing where nothing does."""
    trouble = section(document, "launcher", "degraded")
    since, reason = text(trouble, "since")[:19], text(trouble, "reason")
    return f"the launcher has been blocked since {since}Z: {reason}" if reason else ""


def launcher_at_work(document: Document) -> bool:
    """Whether there is a launcher that has not ended and that nothing holds up.

    One that has ended tells of no trouble, whether it was over or not.
    """
    step = text(section(document, "launcher"), "step")
    return step not in ("", Step.DONE) and not launcher_trouble(document)
