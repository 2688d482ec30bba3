"""Write the tables of settings in the documents from the code; --check only says if they are true.

Run by `make fmt` and checked by `make lint`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from reporter.settings import aggregator, sidecar
from reporter.settings.rules import Variable

ROOT = Path(__file__).parent.parent
TABLES: dict[str, Callable[[], list[Variable]]] = {
    "docs/settings.md": sidecar.describe,
    "docs/aggregator.md": aggregator.describe,
}
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"


def settings_table(variables: list[Variable]) -> str:
    """Return the table of some variables."""
    rows = ["| Variable | Default | Meaning | Rule |", "|---|---|---|---|"]
    for name, default, rule, meaning in variables:
        shown = default if " " in default or default == "required" else f"`{default}`"
        rows.append(f"| `{name}` | {shown} | {meaning} | {rule} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    wrong = 0
    for name, describe in TABLES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        wanted = f"{before}{BEGIN}{settings_table(describe())}{END}{after}"
        if sys.argv[1:] != ["--check"]:
            path.write_text(wanted, encoding="utf-8")
        elif text != wanted:
            print(f"{name}: the table of settings is not what the code says; run make fmt")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
