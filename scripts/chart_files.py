"""Copy into deploy/chart/files what the chart takes from the rest of deploy/; --check compares.

Run by `make fmt` and checked by `make lint`. Helm reads no file outside of a chart.
"""

import sys
from pathlib import Path

DEPLOY = Path(__file__).parent.parent / "deploy"
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


def wanted() -> dict[Path, bytes]:
    """Return the content of each file by its path below deploy/chart/files."""
    return {
        FILES / part / Path(name).name: (DEPLOY / folder / name).read_bytes()
        for part, (folder, names) in TAKEN.items()
        for name in names.split()
    }


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    files = wanted()
    there = {path: path.read_bytes() for path in FILES.rglob("*") if path.is_file()}
    if sys.argv[1:] == ["--check"]:
        for path in sorted(
            path for path in files.keys() | there.keys() if files.get(path) != there.get(path)
        ):
            print(f"{path.relative_to(DEPLOY.parent)} is not what deploy/ says; run make fmt")
        return int(files != there)
    for path in there.keys() - files.keys():
        path.unlink()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
