"""Says whether the documents point at things that exist.

    python check_docs.py

Checked in every Markdown file: relative links and their anchors, and each `make TARGET` named.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
MAKE = re.compile(r"(?:^|`|\$ |&& )make ([a-z][a-z-]*)", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors that a Markdown viewer makes of the headings in TEXT."""
    headings = HEADING.findall(FENCE.sub("", text))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def broken_links(document: Path) -> Iterator[str]:
    """Yield the relative links of DOCUMENT that lead nowhere."""
    prose = CODE.sub("", FENCE.sub("", document.read_text(encoding="utf-8")))
    for link in LINK.findall(prose):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists():
            yield f"the link {link} leads nowhere"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"the link {link} names a heading that is not there"


def unknown_targets(document: Path, targets: set[str]) -> Iterator[str]:
    """Yield the make targets that DOCUMENT names and the Makefile does not have."""
    for target in MAKE.findall(document.read_text(encoding="utf-8")):
        if target not in targets:
            yield f"`make {target}` is not in the Makefile"


def documents(root: Path) -> list[Path]:
    """List the Markdown files below ROOT, without hidden directories."""
    return sorted(
        path
        for path in root.rglob("*.md")
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    )


def main() -> int:
    """Check every document; print one line a problem and return 1 when there is any."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    found = [
        f"{document.relative_to(ROOT)}: {problem}"
        for document in documents(ROOT)
        for problem in [*broken_links(document), *unknown_targets(document, targets)]
    ]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
