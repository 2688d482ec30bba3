"""The scripted aggregator, and settings of our client for it."""

from reporter.link.config import WorkerConfig
from tests.aggregators import scripted
from tests.aggregators.identities import Identities, identities


def settings(url: str, who: Identities | None = None, **changes: object) -> WorkerConfig:
    """Settings of a worker of an aggregator, for plugin `e2e`."""
    who = who or identities()
    given: dict[str, object] = {
        "aggregator_url": url,
        "plugin": "e2e",
        "ca_cert": who.ca.pem,
        "client_cert": who.client.certificate,
        "client_key": who.client.sec1,
    }
    return WorkerConfig(**{**given, **changes})  # type: ignore[arg-type]


class Scripted(scripted.Scripted):
    """The server, as a context manager."""

    def config(self, who: Identities | None = None, **changes: object) -> WorkerConfig:
        """Settings of a worker of this aggregator."""
        return settings(self.url, who, **changes)
