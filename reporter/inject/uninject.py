"""`status-ctl uninject`: the reporter out of the Jobs of manifests."""

import argparse

from reporter.inject.command import file_arguments, pass_on, selector

DESCRIPTION = """\
Removes what `status-ctl inject` has added to manifests and writes the result to standard output:
the original, byte for byte, if nothing else was changed. There are two exceptions: documents that
inject has rewritten, and keys without a value to which inject has added one, which are removed. A
reporter that was added in another way stays.

exit codes:
  0    done
  1    a document is not valid YAML (it is left unchanged)
  2    usage error, or a file cannot be read"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    file_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Transform the manifests and return the exit code."""
    from reporter.inject.stream import uninjected

    chosen = selector(options)
    return pass_on(options, lambda streams: [uninjected(each, chosen) for each in streams])
