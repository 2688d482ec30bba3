"""Which image of the status reporter is put into what the commands create."""

import argparse
import os
from typing import Final

from reporter import __version__

OWN_IMAGE: Final = f"status-reporter:{__version__}"


def image_argument(parser: "argparse._ActionsContainer") -> None:
    """Declare `--image`."""
    parser.add_argument(
        "--image",
        default=os.environ.get("STATUS_CTL_IMAGE") or OWN_IMAGE,
        help="the status reporter's image (default: %(default)s, or STATUS_CTL_IMAGE)",
    )
