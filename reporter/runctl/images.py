"""`status-ctl images`: every image that a run of these plugins needs, for mirrors."""

import argparse

from reporter.cli.exits import GOOD, Unusable
from reporter.cli.options import image_argument
from reporter.cli.output import tell
from reporter.run.definition import KUBERNETES_VERSION
from reporter.runctl.definitions import definition_options, read_chosen

DESCRIPTION = """\
Lists the images that a run of plugins needs, one per line: those of the plugin definitions, and the
status reporter's own. Use the list to copy the images to a mirror. Without -f or --plugin it is for
all built-in plugins.

exit codes:
  0    the images were listed
  2    usage error, a definition is invalid, or a file cannot be read"""


def arguments(parser: argparse.ArgumentParser) -> None:
    definition_options(parser)
    image_argument(parser)
    parser.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        default="",
        help=f"replaces {KUBERNETES_VERSION} in images, for example v1.34.1",
    )


def run(options: argparse.Namespace) -> int:
    """Print the images, sorted."""
    images = {options.image}
    definitions, problems = read_chosen(options)
    if problems:
        raise Unusable("\n".join(problems))
    for definition in definitions:
        images |= definition.images(options.image, options.kubernetes_version)
    for image in sorted(images):
        print(image)
        if KUBERNETES_VERSION in image:
            tell(f"set --kubernetes-version to replace {KUBERNETES_VERSION} in {image}")
    return GOOD
