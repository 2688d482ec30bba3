"""Write the PrometheusRule of deploy/monitoring from its plain rule file; --check compares.

Run by `make fmt` and checked by `make lint`. The rules stay as they are written, comments too.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "deploy" / "monitoring"
HEAD = """# Generated from rules.yaml by `make fmt`: do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: status-reporter
  labels:
    app.kubernetes.io/name: status-reporter
spec:
"""


def resource() -> str:
    """Return the PrometheusRule's text."""
    text = (FOLDER / "rules.yaml").read_text(encoding="utf-8")
    rules = text[text.index("groups:\n") :].splitlines()
    return HEAD + "".join(f"  {line}".rstrip() + "\n" for line in rules)


def main() -> int:
    """Write or check; 1 if the file is not as it should be."""
    path, wanted = FOLDER / "prometheusrule.yaml", resource()
    if sys.argv[1:] != ["--check"]:
        path.write_text(wanted, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != wanted:
        print("deploy/monitoring/prometheusrule.yaml is not what rules.yaml says; run make fmt")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
