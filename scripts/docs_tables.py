"""Write the tables of the documents from the code; --check only says if they are true.

Run by `make fmt` and checked by `make lint`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from reporter.core.lint.rules import RULES
from reporter.settings import aggregator, sidecar
from reporter.settings.rules import Variable

ROOT = Path(__file__).parent.parent


def settings_table(variables: list[Variable]) -> str:
    """Return the table of some variables."""
    rows = ["| Variable | Default | Meaning | Rule |", "|---|---|---|---|"]
    for name, default, rule, meaning in variables:
        shown = default if " " in default or default == "required" else f"`{default}`"
        rows.append(f"| `{name}` | {shown} | {meaning} | {rule} |")
    return "\n".join(rows) + "\n"


def rules_table() -> str:
    """Return the table of the rules of `status-ctl lint`."""
    rows = [f"| `{rule.id}` | {rule.severity} | {rule.summary} |" for rule in RULES]
    return "\n".join(["| Rule | Severity | Found |", "|---|---|---|", *rows]) + "\n"


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "docs/settings.md": ("settings", lambda: settings_table(sidecar.describe())),
    "docs/aggregator.md": ("settings", lambda: settings_table(aggregator.describe())),
    "docs/lint.md": ("rules", rules_table),
}
"""Which table a document has, and the word that marks its begin and end."""


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    wrong = 0
    for name, (word, table) in TABLES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        begin, end = f"<!-- {word} -->\n", f"<!-- /{word} -->"
        before, rest = text.split(begin)
        _, after = rest.split(end)
        wanted = f"{before}{begin}{table()}{end}{after}"
        if sys.argv[1:] != ["--check"]:
            path.write_text(wanted, encoding="utf-8")
        elif text != wanted:
            print(f"{name}: the table of {word} is not what the code says; run make fmt")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
