"""Write the manifests of deploy/ that say what another one says; --check compares.

Run by `make fmt` and checked by `make lint`. All but the head stays as it is, comments too.
"""

import sys
from pathlib import Path

DEPLOY = Path(__file__).parent.parent / "deploy"
RULES = """# Generated from rules.yaml by `make fmt`: do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: status-reporter
  labels:
    app.kubernetes.io/name: status-reporter
spec:
"""
KYVERNO = """# Generated from mutate.yaml by `make fmt`: the same for Kyverno (docs/admission.md).
# Set the image in the first variable, and bind the Role of deploy/base to the Jobs' account.
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
"""


def prometheus_rule() -> str:
    """Return the PrometheusRule of the plain rule file."""
    text = (DEPLOY / "monitoring" / "rules.yaml").read_text(encoding="utf-8")
    rules = text[text.index("groups:\n") :].splitlines()
    return RULES + "".join(f"  {line}".rstrip() + "\n" for line in rules)


def kyverno_policy() -> str:
    """Return Kyverno's form of the policy that adds the reporter; it needs no binding."""
    text = (DEPLOY / "admission" / "mutate.yaml").read_text(encoding="utf-8")
    policy = text.partition("\n---\n")[0]
    return KYVERNO + policy[policy.index("metadata:\n") :] + "\n"


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    wanted = {
        "monitoring/prometheusrule.yaml": prometheus_rule(),
        "admission/kyverno.yaml": kyverno_policy(),
    }
    wrong = 0
    for name, text in wanted.items():
        path = DEPLOY / name
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"deploy/{name} is not what its source says; run make fmt")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
