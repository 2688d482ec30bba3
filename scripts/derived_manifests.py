"""Write the manifests of deploy/ that say what another one says; --check compares.

Run by `make fmt` and checked by `make lint`. All but the head stays as it is, comments too.
"""

import sys

from generated import DEPLOY, keep, read

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
    text = read(DEPLOY / "monitoring" / "rules.yaml")
    rules = text[text.index("groups:\n") :].splitlines()
    return RULES + "".join(f"  {line}".rstrip() + "\n" for line in rules)


def kyverno_policy() -> str:
    """Return Kyverno's form of the policy that adds the reporter; it needs no binding."""
    text = read(DEPLOY / "admission" / "mutate.yaml")
    policy = text.partition("\n---\n")[0]
    return KYVERNO + policy[policy.index("metadata:\n") :] + "\n"


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    wanted = {
        DEPLOY / "monitoring" / "prometheusrule.yaml": prometheus_rule(),
        DEPLOY / "admission" / "kyverno.yaml": kyverno_policy(),
    }
    return keep(wanted, "its source")


if __name__ == "__main__":
    sys.exit(main())
