"""Pack the Helm charts, each into one file: the cluster's, and the library for charts with Jobs.

    python pack_chart.py FOLDER

Run by `make chart`. The cluster's takes files from the rest of deploy/: Helm reads no file outside
of a chart.
"""

import sys
import tarfile
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
TAKEN = {
    "base": ("base", "serviceaccount.yaml role.yaml rolebinding.yaml"),
    "admin": ("base", "clusterrole.yaml"),
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
LIBRARY = "status-reporter-library"


def main(folder: Path) -> None:
    """Write both charts, as .tgz that Helm takes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, root, taken in (("chart", "status-reporter", TAKEN), ("library", LIBRARY, {})):
        source = DEPLOY / name
        members = {file.relative_to(source): file for file in source.rglob("*") if file.is_file()}
        for part, (other, names) in taken.items():
            for each in names.split():
                members[Path("files", part, Path(each).name)] = DEPLOY / other / each
        with tarfile.open(folder / f"status-reporter-{name}.tgz", "w:gz") as tar:
            for member in sorted(members):
                tar.add(members[member], Path(root, member))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
