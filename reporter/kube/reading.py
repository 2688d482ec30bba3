"""Reading whatever an API server offers: a path, and lists of any resource, page by page.

For what does not know beforehand which kinds there are; `objects.py` is for those that do.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, BinaryIO, Final, cast

from reporter.errors import InvalidRequest, TooLarge, Unavailable
from reporter.kube.answers import decode_json
from reporter.kube.client import JSON, Client, Request, refused, transport
from reporter.kube.list_items import ListItems
from reporter.kube.resources import AGGREGATED, Discovered, Resource, discovered

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The Accept for lists whose objects have nothing but their metadata."""
_METADATA_LIST: Final = "PartialObjectMetadataList"
_DISCOVERY: Final = ",".join(
    [f"{JSON};g=apidiscovery.k8s.io;v={each};as={AGGREGATED}" for each in ("v2", "v2beta1")]
    + [JSON]
)
MOST_PAGE: Final = 64 * 2**20
MOST_DOCUMENT: Final = 32 * 2**20
MOST_STREAM: Final = 2**30
LIMIT: Final = 500
_IN_MEMORY: Final = 2**20
_PIECE: Final = 64 * 1024
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ask:
    """Which page of which list; `namespace` None means all of them."""

    resource: Resource
    namespace: str | None = None
    limit: int = LIMIT
    more: str = ""
    metadata_only: bool = False
    label_selector: str = ""

    def request(self) -> Request:
        """Return the request. Group, version and plural are escaped: others have chosen them."""
        resource = self.resource
        names = {"version": resource.version, "plural": resource.plural}
        path = "/api/{version}"
        if resource.group:
            path, names["group"] = "/apis/{group}/{version}", resource.group
        if self.namespace is not None and resource.namespaced:
            path, names["namespace"] = f"{path}/namespaces/{{namespace}}", self.namespace
        asked = {
            "limit": str(self.limit),
            "continue": self.more,
            "labelSelector": self.label_selector,
        }
        return Request(
            "GET",
            f"{path}/{{plural}}",
            names,
            {key: value for key, value in asked.items() if value},
            accept=METADATA_ONLY if self.metadata_only else JSON,
        )


class Page:
    """A page of a list, received in full. Iterate once for its objects, then close it.

    `more` asks for the next one and is known after that; empty after the last. Objects of lists
    may lack `kind` and `apiVersion`.
    """

    def __init__(self, file: BinaryIO, ask: Ask) -> None:
        self._file, self._ask = file, ask
        self.more = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        listed = ListItems(self._file)
        for found in listed:
            # Such a list says first what it is.
            if self._ask.metadata_only and listed.kind != _METADATA_LIST:
                raise Unavailable(
                    "the server sent whole objects although only metadata was requested"
                )
            yield found
        more = listed.metadata.get("continue")
        self.more = more if isinstance(more, str) else ""

    def close(self) -> None:
        """Give its file back."""
        self._file.close()


def in_memory_first(directory: str | None = None) -> BinaryIO:
    """Return a temporary file that is in memory while it is small, then nameless in there."""
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+b", dir=directory))


class Reading:
    """Reads from one API server. Threads may share it.

    Every method raises NotFound, Forbidden, Unauthorized, InvalidRequest or Unavailable; a list
    also Expired, and TooLarge for a page of more than `most` bytes. `timeout` bounds a request in
    seconds. A page is received in full before its first object is given: the server does not wait
    for us, and what breaks off has given nothing. `spool` makes the file it lies in.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._api = client, client.open()

    def document(
        self,
        path: str,
        names: Mapping[str, str] = _NOTHING,
        *,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> dict[str, Any]:
        """Return the JSON object at a path, at most 32 MiB."""
        return decode_json(self.content(path, names, accept=accept, timeout=timeout))

    def content(
        self,
        path: str,
        names: Mapping[str, str] = _NOTHING,
        *,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> bytes:
        """Return what is at a path, at most 32 MiB."""
        request = Request("GET", path, names, accept=accept)
        return b"".join(self._pieces(request, MOST_DOCUMENT, timeout))

    def discover(self) -> Discovered:
        """Return every resource once, and the groups whose server does not answer."""
        found = [self.document(path, accept=_DISCOVERY) for path in ("/api", "/apis")]
        if any(each.get("kind") != AGGREGATED for each in found):
            raise InvalidRequest(
                "the API server has no aggregated discovery; Kubernetes has it since version 1.27"
            )
        return discovered(found)

    def stream(
        self,
        path: str,
        names: Mapping[str, str],
        query: Mapping[str, str],
        *,
        most: int = MOST_STREAM,
        timeout: float = 120.0,
    ) -> Iterator[bytes]:
        """Yield the pieces of what is at a path, at most `most` bytes."""
        yield from self._pieces(Request("GET", path, names, query), most, timeout)

    def page(
        self,
        ask: Ask,
        *,
        most: int = MOST_PAGE,
        timeout: float = 60.0,
        spool: Callable[[], BinaryIO] = in_memory_first,
    ) -> Page:
        """Return a page of a list. The caller closes it. Raises also OSError, for a full disk."""
        file = spool()
        try:
            for piece in self._pieces(ask.request(), most, timeout):
                file.write(piece)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return Page(file, ask)

    def every(self, ask: Ask, *, timeout: float = 60.0) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, page by page; `timeout` is for each of them."""
        while True:
            page = self.page(ask, timeout=timeout)
            with closing(page):
                yield from page
            if not page.more:
                return
            ask = replace(ask, more=page.more)

    def _pieces(self, request: Request, most: int, timeout: float) -> Iterator[bytes]:
        response = self._client.send(self._api, request, timeout)
        try:
            if response.status != 200:
                raise refused(request, response)
            left = most
            while True:
                with transport():
                    data = bytes(response.read(_PIECE, decode_content=False))
                if not data:
                    return
                left -= len(data)
                if left < 0:
                    raise TooLarge(f"{request}: the response is larger than {most} bytes")
                yield data
        finally:
            # Read to its end, the connection is in the pool again; otherwise this ends it.
            response.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._api.close()
