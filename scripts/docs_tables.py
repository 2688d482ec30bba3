"""Write the tables of the documents from the code; --check only says if they are true.

Run by `make fmt` and checked by `make lint`.
"""

import re
import sys
from collections.abc import Callable

from generated import ROOT, keep, read

from reporter.common.settings import NAME_RULE, Variable
from reporter.lint.rules import RULES
from reporter.run import settings as aggregator
from reporter.sidecar import settings as sidecar

OBVIOUS = (
    "a path",
    "an IP address",
    "true or false",
    "local or any",
    "sonobuoy or strict",
    "json or console",
    "auto, native or classic",
    "at-once or at-exit",
    "name of this container in the Pod",
    NAME_RULE,
)
"""Rules that the default and the meaning already say."""
LEAD = re.compile(r"an integer from \S+ to [^\s;]+(; )?|a path, ")
"""How rules begin whose rest says enough; what refuses a number names its range."""


def settings_table(variables: list[Variable]) -> str:
    """Return the table of some variables: the rule follows the meaning, unless it is obvious."""
    rows = ["| Variable | Default | Meaning |", "|---|---|---|"]
    for name, default, rule, meaning in variables:
        shown = default if " " in default or default == "required" else f"`{default}`"
        rest = "" if rule in OBVIOUS else LEAD.sub("", rule)
        more = f"; {rest}" if rest else ""
        rows.append(f"| `{name}` | {shown} | {meaning}{more} |")
    return "\n".join(rows) + "\n"


def rules_table() -> str:
    """Return the table of the rules of `status-ctl lint`."""
    rows = [f"| `{rule.id}` | {rule.severity} | {rule.summary} |" for rule in RULES]
    return "\n".join(["| Rule | Severity | Found |", "|---|---|---|", *rows]) + "\n"


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "docs/settings.md": ("settings", lambda: settings_table(sidecar.Settings.described())),
    "docs/aggregator-settings.md": (
        "settings",
        lambda: settings_table(aggregator.Settings.described()),
    ),
    "docs/lint.md": ("rules", rules_table),
}
"""Which table a document has, and the word that marks its begin and end."""


def document(name: str) -> str:
    """Return the text of a document with its table as the code has it."""
    word, table = TABLES[name]
    begin, end = f"<!-- {word} -->\n", f"<!-- /{word} -->"
    before, rest = read(ROOT / name).split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}{table()}{end}{after}"


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    return keep({ROOT / name: document(name) for name in TABLES}, "the code")


if __name__ == "__main__":
    sys.exit(main())
