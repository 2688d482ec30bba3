"""Write the table of settings in README.md from the code; with --check only say whether it is true.

Run by `make fmt` and checked by `make lint`.
"""

import sys
from pathlib import Path

from reporter.settings import describe

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"


def settings_table() -> str:
    """Return the table of all variables."""
    rows = ["| Variable | Default | Meaning | Rule |", "|---|---|---|---|"]
    for name, default, rule, meaning in describe():
        shown = default if " " in default or default == "required" else f"`{default}`"
        rows.append(f"| `{name}` | {shown} | {meaning} | {rule} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write or check; 1 if the file is not as it should be."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}{settings_table()}{END}{after}"
    if sys.argv[1:] == ["--check"]:
        if text != wanted:
            print("README.md: the table of settings is not what the code says; run make fmt")
        return int(text != wanted)
    README.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
