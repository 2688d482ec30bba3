"""The exit code that a run deserves, for the commands that look at one."""

import argparse

from reporter.cli.exits import FAILED, GOOD
from reporter.run.view import Document, Row, failed, passed, upload_failed


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--delivery-only`."""
    parser.add_argument(
        "--delivery-only",
        action="store_true",
        help="exit 0 if all results were delivered, even if checks failed",
    )


def exit_code(document: Document, *, delivery_only: bool) -> int:
    """Return 1 where something has failed."""
    return GOOD if good(document, delivery_only=delivery_only) else FAILED


def good(document: Document, *, delivery_only: bool) -> bool:
    """Return whether nothing has failed: no delivery and, unless only these count, no check.

    The upload of the results is one of the deliveries.
    """
    if upload_failed(document):
        return False
    return not failed(document) if delivery_only else passed(document)


def good_row(row: Row, *, delivery_only: bool) -> bool:
    """Say the same of one entry."""
    return not row.bad if delivery_only else row.passed
