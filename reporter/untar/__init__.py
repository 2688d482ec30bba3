"""Safe reading of archives that strangers packed: gzip'd tar, within caps.

Standard library only. Everything here blocks. `check` reads an archive in full and creates nothing;
what it accepts, `extract` can unpack; `Archive` gives one member after the other.
"""

from reporter.untar.archive import Archive, Checked, check
from reporter.untar.extract import Extracted, extract
from reporter.untar.members import ACCEPTED, BadArchive, Caps, Kind, NotTar

__all__ = [
    "ACCEPTED",
    "Archive",
    "BadArchive",
    "Caps",
    "Checked",
    "Extracted",
    "Kind",
    "NotTar",
    "check",
    "extract",
]
