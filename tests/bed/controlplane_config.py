"""The files a control plane starts with: its audit policy and its users' kubeconfigs."""

from __future__ import annotations

from pathlib import Path

import yaml

# Controllers are service accounts of kube-system: their requests are not of interest.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


def write_audit_policy(file: Path) -> None:
    """Write the policy for `--audit-policy-file`."""
    file.write_text(yaml.safe_dump(AUDIT_POLICY))


def write_kubeconfig(file: Path, server: str, pki: Path, user: str) -> None:
    """Write a kubeconfig that names the certificate files of `user` in `pki`."""
    cluster = {"server": server, "certificate-authority": str(pki / "ca.crt")}
    identity = {
        "client-certificate": str(pki / f"{user}.crt"),
        "client-key": str(pki / f"{user}.key"),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": cluster}],
        "users": [{"name": user, "user": identity}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": user}}],
        "current-context": "bed",
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
