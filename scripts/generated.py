"""How scripts write the files that follow from others, or with --check compare them."""

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


def keep(wanted: Mapping[Path, str], source: str) -> int:
    """Write or check the text of each file; 1 if one is not as it should be."""
    if sys.argv[1:] != ["--check"]:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    differ = {path for path, text in wanted.items() if not path.is_file() or read(path) != text}
    for path in sorted(differ):
        print(f"{path.relative_to(ROOT)} is not what {source} says; run make fmt")
    return int(bool(differ))


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")
