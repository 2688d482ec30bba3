"""Pack the Helm chart into one file, with what it takes from the rest of deploy/.

    python pack_chart.py OUT

Run by `make chart`. Helm reads no file outside of a chart.
"""

import sys
import tarfile
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
CHART = DEPLOY / "chart"
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
"""By folder below files/ of the chart: the folder of deploy/, and which of its files."""


def main(out: Path) -> None:
    """Write the chart to `out`, a .tgz that Helm takes."""
    members = {file.relative_to(CHART): file for file in CHART.rglob("*") if file.is_file()}
    for part, (folder, names) in TAKEN.items():
        for name in names.split():
            members[Path("files", part, Path(name).name)] = DEPLOY / folder / name
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w:gz") as tar:
        for member in sorted(members):
            tar.add(members[member], Path("status-reporter", member))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
