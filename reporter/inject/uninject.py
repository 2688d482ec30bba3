"""`status-ctl uninject`: the reporter out of the Jobs of manifests."""

import argparse

from reporter.inject.command import file_arguments, pass_on, selector

DESCRIPTION = """\
Removes from manifests what `status-ctl inject` has added and writes the result to standard
output: the original, byte for byte, where nothing else was changed. There are two exceptions: a
document that inject has rewritten, and a key without a value that inject has given one: it is
removed. A reporter that was added in another way stays.

exit codes:
  0    done
  1    a document cannot be read as YAML (it is passed on as it is)
  2    usage error, a file cannot be read, or the output cannot be written"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    file_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Transform the manifests and return the exit code."""
    from reporter.inject.stream import uninjected

    chosen = selector(options)
    return pass_on(options, lambda stream: uninjected(stream, chosen))
