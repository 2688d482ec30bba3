"""The Secrets by which plugins report: made once, made again where somebody deleted them, removed.

One of that name which does not belong to the run is never touched.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from reporter.common.objects import items, section, text
from reporter.errors import Conflict, NotFound
from reporter.launch.calls import Asking, LaunchRefused
from reporter.launch.job import secret
from reporter.pki.issuing import CertificateError, Pair
from reporter.run.identity import ANY_NODE
from reporter.run.plan import Key, Plugin
from reporter.run.spec import RunLocation


class Secrets:
    """Those of one run. It belongs to the event loop.

    `ca` is the run's CA as PEM, `client` makes a client's certificate.
    """

    def __init__(
        self, asking: Asking, place: RunLocation, *, ca: bytes, client: Callable[[Key], Pair]
    ) -> None:
        self._asking, self._place, self._ca, self._client = asking, place, ca, client
        self._making: dict[str, asyncio.Lock] = {}
        self._made: dict[str, str] = {}  # UIDs by names
        self.kept: set[str] = set()
        """Names of those that may exist."""

    async def provide(self, plugin: Plugin, key: Key, name: str) -> None:
        """See that the Secret is there. Raises LaunchRefused where somebody else has its name."""
        async with self._making.setdefault(name, asyncio.Lock()):
            if name in self._made:
                return
            self.kept.add(name)
            for _ in range(2):
                found = await self._asking.post(
                    "Secret", name, await self._secret(plugin, key, name)
                )
                if not self._is_ours(found):
                    self.kept.discard(name)
                    raise LaunchRefused(
                        f"Secret {name} exists already and does not belong to this run"
                    )
                uid = text(section(found, "metadata"), "uid")
                if self._is_usable(found):
                    self._made[name] = uid
                    return
                # It was made by a process that was killed before it could keep its authority.
                await self._asking.remove("Secret", name, uid)
            raise Conflict(f"Secret {name} was recreated with certificates of another CA")

    async def check(self, plugin: Plugin, key: Key, name: str) -> None:
        """Make it again, if somebody has deleted it."""
        try:
            await self._asking.get("Secret", name)
        except NotFound:
            self._made.pop(name, None)
            with suppress(LaunchRefused):
                await self.provide(plugin, key, name)

    async def delete(self, name: str) -> None:
        """Delete it, if it is there and ours; not again what was deleted since that was decided."""
        if name not in self.kept:
            return
        uid = self._made.pop(name, None) or await self._uid_of_ours(name)
        if uid:
            await self._asking.remove("Secret", name, uid)
        self.kept.discard(name)

    async def _secret(self, plugin: Plugin, key: Key, name: str) -> dict[str, Any]:
        shared = bool(plugin.nodes) and plugin.identity == "plugin"
        speaks_for = Key(plugin.name, ANY_NODE) if shared else key
        try:
            pair = await self._asking.call(partial(self._client, speaks_for))
        except CertificateError as error:
            raise LaunchRefused(f"no certificate can be made: {error}") from error
        return secret(
            self._place,
            name,
            speaks_for,
            ca=self._ca,
            certificate=pair.certificate,
            private_key=pair.key,
        )

    def _is_ours(self, found: Mapping[str, Any]) -> bool:
        owner = (self._place.owner or {}).get("uid")
        owners = items(section(found, "metadata"), "ownerReferences")
        return any(text(each, "uid") == owner for each in owners)

    def _is_usable(self, found: Mapping[str, Any]) -> bool:
        data = section(found, "data")
        with suppress(ValueError):
            return base64.b64decode(text(data, "ca.crt")) == self._ca
        return False

    async def _uid_of_ours(self, name: str) -> str:
        """Return the UID of one that a process before us may have made; nothing of a stranger's."""
        with suppress(NotFound):
            found = await self._asking.get("Secret", name)
            if self._is_ours(found):
                return text(section(found, "metadata"), "uid")
        return ""
