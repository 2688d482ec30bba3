"""Copy into deploy/chart/files what the chart takes from the rest of deploy/; --check compares.

Run by `make fmt` and checked by `make lint`. Helm reads no file outside of a chart.
"""

import sys
from pathlib import Path

from generated import DEPLOY, keep, read

FILES = DEPLOY / "chart" / "files"
TAKEN = {
    "base": ("base", "serviceaccount.yaml role.yaml rolebinding.yaml"),
    "reaper": (
        "reaper",
        "rights/serviceaccount.yaml rights/clusterrole.yaml rights/clusterrolebinding.yaml "
        "deployment.yaml",
    ),
    "monitoring": ("monitoring", "podmonitors.yaml prometheusrule.yaml dashboard.json"),
    "jobs": (
        "monitoring/kube-state-metrics",
        "rbac.yaml deployment.yaml service.yaml servicemonitor.yaml",
    ),
    "aggregator": (
        "aggregator",
        "serviceaccount.yaml role.yaml rolebinding.yaml service.yaml networkpolicy.yaml "
        "statefulset.yaml",
    ),
}
"""By folder of the chart: the folder of deploy/, and which of its files."""


def wanted() -> dict[Path, str]:
    """Return the content of each file by its path below deploy/chart/files."""
    return {
        FILES / part / Path(name).name: read(DEPLOY / folder / name)
        for part, (folder, names) in TAKEN.items()
        for name in names.split()
    }


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    return keep(wanted(), "deploy/", alone_in=FILES)


if __name__ == "__main__":
    sys.exit(main())
