"""The kinds that the fake knows, by their plural; on purpose not the product's table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of object; `group` is empty for the core group."""

    name: str
    group: str
    plural: str
    namespaced: bool = True
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As the server names the resource in its texts."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RBAC = "rbac.authorization.k8s.io"

_ALL = (
    Kind("Pod", "", "pods"),
    Kind("Job", "batch", "jobs"),
    Kind("Event", "", "events"),
    Kind("ConfigMap", "", "configmaps"),
    Kind("Secret", "", "secrets"),
    Kind("Service", "", "services"),
    Kind("ServiceAccount", "", "serviceaccounts"),
    Kind("PersistentVolumeClaim", "", "persistentvolumeclaims"),
    Kind("Namespace", "", "namespaces", namespaced=False),
    Kind("Node", "", "nodes", namespaced=False),
    Kind("Deployment", "apps", "deployments"),
    Kind("StatefulSet", "apps", "statefulsets"),
    Kind("CronJob", "batch", "cronjobs"),
    Kind("NetworkPolicy", "networking.k8s.io", "networkpolicies"),
    Kind("Role", RBAC, "roles"),
    Kind("RoleBinding", RBAC, "rolebindings"),
    Kind("ClusterRole", RBAC, "clusterroles", namespaced=False),
    Kind("ClusterRoleBinding", RBAC, "clusterrolebindings", namespaced=False),
    Kind("LocalSubjectAccessReview", "authorization.k8s.io", "localsubjectaccessreviews"),
    Kind(
        "SelfSubjectAccessReview",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        namespaced=False,
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
BY_PLURAL = {kind.plural: kind for kind in _ALL}
WITHOUT_STATUS = {"Event", "ConfigMap", "Secret", "ServiceAccount", "NetworkPolicy"} | {
    kind.name for kind in _ALL if kind.group == RBAC
}
"""Kinds that the server shows without a `status`."""
