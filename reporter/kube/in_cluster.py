"""Where the API server is for a container of the cluster, and what it is told to prove itself."""

import re
from collections.abc import Mapping

from reporter.core.api_answers import plain
from reporter.core.service_links import is_service_link
from reporter.errors import SettingsError

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CA_FILE, TOKEN_FILE = f"{SERVICE_ACCOUNT}/ca.crt", f"{SERVICE_ACCOUNT}/token"
_PORT = re.compile(r"[0-9]{1,5}")


def server_address(environ: Mapping[str, str]) -> str:
    """Return `https://HOST:PORT`. Raises SettingsError outside of a cluster."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if is_service_link("KUBERNETES_SERVICE_PORT", port):
        # Of a Service `kubernetes-service` in our namespace; the other one says the same.
        port = environ.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
    if not host or not port:
        raise SettingsError(
            [
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: must be set; "
                "Kubernetes does so in every container"
            ]
        )
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise SettingsError(
            [plain(f"KUBERNETES_SERVICE_PORT={port!r}: must be an integer from 1 to 65535")]
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
