"""A run as its status listener shows it."""

import time
from collections.abc import Callable

from reporter.common.objects import text
from reporter.common.text import clean
from reporter.run.pod_status import ReadOutcome
from reporter.run.status import API_VERSION
from reporter.run.view import Look, read_document
from reporter.runctl.server import ANSWER, CertificateRefused, RequestFailed, StatusServer

PAUSE = 1.0  # seconds between two looks, or four times as long as one took
AGES = 10.0  # seconds after which a document is asked for anew, changed or not


class ByHttp:
    """The status listener. `name` is what people know it by, its address unless given."""

    def __init__(
        self,
        server: StatusServer,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server, self.name, self._clock = server, name or server.url, clock
        self._tag, self._last, self._until = "", Look(ReadOutcome.UNREACHABLE), 0.0
        self._path, self.pause = "", PAUSE

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask `/status`; while nothing changed, the answer is the last document."""
        path, began = "/status" if entries else "/status?summary=true", self._clock()
        # Ages of heartbeats are no change to the server, but they grow.
        tag = self._tag if path == self._path and began < self._until else ""
        try:
            answer = self.server.get(path, tag=tag, timeout=timeout)
        except CertificateRefused as error:
            return Look(ReadOutcome.FORBIDDEN, detail=str(error))
        except RequestFailed as error:
            return Look(ReadOutcome.UNREACHABLE, detail=str(error))
        match answer.status:
            case 200:
                # Thousands of entries take their time, here and there.
                self.pause = min(max(PAUSE, 4 * (self._clock() - began)), AGES)
                self._path = path
                return self._read(answer.body, answer.tag)
            case 304 if tag:
                return self._last
            case 401 | 403:
                return Look(ReadOutcome.FORBIDDEN, detail=f"{self.name}: {refusal(answer.body)}")
            case 404:
                return Look(
                    ReadOutcome.NOT_FOUND, detail=f"{self.name}: does not serve a run status"
                )
        return Look(ReadOutcome.UNREACHABLE, detail=f"{self.name}: answered {answer.status}")

    def _read(self, body: bytes, tag: str) -> Look:
        document = read_document(body)
        if document is None:
            self._tag = ""
            return Look(
                ReadOutcome.BAD_STATUS, detail=f"{self.name}: the response is not a run status"
            )
        version = text(document, "api_version") or API_VERSION
        told = f"{self.name}: status version {version}, but this command supports {API_VERSION}"
        self._last = Look(ReadOutcome.OK, document, warning="" if version == API_VERSION else told)
        self._tag, self._until = tag, self._clock() + AGES
        return self._last


def refusal(body: bytes) -> str:
    """Say why run data was refused, in the server's words where it has any."""
    words = body[:300].decode(errors="replace")
    return clean(words, 300, "it refused access to the run's status")
