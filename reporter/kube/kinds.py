"""The kinds of objects that are asked for, and the paths that they have at the API server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind; `group` is empty for the core group."""

    name: str
    group: str
    plural: str
    namespaced: bool = True
    version: str = "v1"

    def path(self, namespace: str | None) -> tuple[str, dict[str, str]]:
        """Return the collection's path and what fills its placeholders; None means all namespaces.

        The namespace of a kind that has none is left out.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace is None or not self.namespaced:
            return f"{root}/{self.plural}", {}
        return f"{root}/namespaces/{{namespace}}/{self.plural}", {"namespace": namespace}


_RBAC = "rbac.authorization.k8s.io"

KINDS = {
    kind.name: kind
    for kind in (
        Kind("ConfigMap", "", "configmaps"),
        Kind("Event", "", "events"),
        Kind("Namespace", "", "namespaces", namespaced=False),
        Kind("Node", "", "nodes", namespaced=False),
        Kind("PersistentVolumeClaim", "", "persistentvolumeclaims"),
        Kind("Pod", "", "pods"),
        Kind("Secret", "", "secrets"),
        Kind("Service", "", "services"),
        Kind("ServiceAccount", "", "serviceaccounts"),
        Kind("DaemonSet", "apps", "daemonsets"),
        Kind("Deployment", "apps", "deployments"),
        Kind("StatefulSet", "apps", "statefulsets"),
        Kind(
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            namespaced=False,
        ),
        Kind("LocalSubjectAccessReview", "authorization.k8s.io", "localsubjectaccessreviews"),
        Kind("CronJob", "batch", "cronjobs"),
        Kind("Job", "batch", "jobs"),
        Kind("NetworkPolicy", "networking.k8s.io", "networkpolicies"),
        Kind("ClusterRole", _RBAC, "clusterroles", namespaced=False),
        Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False),
        Kind("Role", _RBAC, "roles"),
        Kind("RoleBinding", _RBAC, "rolebindings"),
    )
}
