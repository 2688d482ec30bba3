"""The options of `status-ctl run` for the upload of the results: read and checked before anything
exists."""

import argparse
import time
from ssl import PROTOCOL_TLS_CLIENT, SSLContext, SSLError

from reporter.cli.exits import content, unreadable
from reporter.run.destination import LONGEST_URL, expires_too_soon, read_destination
from reporter.run.duration import longest
from reporter.run.options import RunOptions, UploadTo

_STDIN = "-"
_NO_URL = "https://invalid/"
_LARGEST_CA = 512 * 1024


def arguments(parser: argparse._ArgumentGroup) -> None:
    """Declare the options."""
    parser.add_argument(
        "--upload-url-file",
        metavar="FILE",
        default="",
        help="a file with a presigned https URL, or - for standard input: the results are uploaded "
        "there by PUT before the run is over; the URL is kept in a Secret and never shown",
    )
    parser.add_argument(
        "--upload-ca",
        metavar="FILE",
        default="",
        help="the CA of that URL's host (PEM), instead of the certificate authorities of the image",
    )

    parser.add_argument(
        "--exit",
        action="store_true",
        help="run the aggregator as a Job that ends when the results are uploaded: exit code 0 if "
        "the run has passed, 1 if not; requires --upload-url-file",
    )


def check(options: argparse.Namespace) -> None:
    """End with a usage error where the options contradict each other."""
    if options.exit and not options.upload_url_file:
        options.error(
            "--exit requires --upload-url-file: the results cannot be downloaded from an "
            "aggregator that has ended"
        )
    if options.exit and options.expose:
        options.error("--exit cannot be used with --expose")
    if options.upload_ca and not options.upload_url_file:
        options.error("--upload-ca requires --upload-url-file")
    if options.upload_url_file == _STDIN and _STDIN in (options.files or ()):
        options.error("only one of -f and --upload-url-file can read standard input")


def read(options: argparse.Namespace) -> tuple[UploadTo | None, list[str]]:
    """Read what was given, nothing where there is no upload, and say what is wrong with it.

    That has nothing of the URL; one that is wrong is replaced by one that nobody is to use.
    """
    if not options.upload_url_file:
        return None, []
    problems = []
    url, ca = _NO_URL, b""
    try:
        written = content(options.upload_url_file, LONGEST_URL + 2).strip().decode("latin-1")
        read_destination(written)
        url = written
    except OSError as error:
        problems.append(unreadable(error))
    except ValueError as error:
        problems.append(str(error))
    try:
        ca = content(options.upload_ca, _LARGEST_CA) if options.upload_ca else b""
        if ca:
            SSLContext(PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca.decode("ascii"))
    except (SSLError, ValueError):
        problems.append(f"{options.upload_ca}: not a certificate in PEM")
    except OSError as error:
        problems.append(unreadable(error))
    return UploadTo(url=url, ca=ca), problems


def too_short(chosen: RunOptions) -> list[str]:
    """Say that the URL ends before the run may, as far as is known here."""
    if chosen.upload is None:
        return []
    now = time.time()
    until = now + longest(chosen.plan, chosen.launch)
    found = expires_too_soon(read_destination(chosen.upload.url), now, until)
    return [f"{found}; use a URL that is valid longer, or --plugin-timeout"] if found else []
