"""Asking the API server from the event loop: create or find, read, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from reporter.errors import AlreadyExists, Conflict, Denied, InvalidRequest, NotFound
from reporter.kube.api import WARN, KubeApi

T = TypeVar("T")


class LaunchRefused(Exception):
    """The entry cannot be launched, for good; the text says why."""


class Asking:
    """Requests in one namespace; `threads` make them. All raise KubeError."""

    def __init__(self, api: KubeApi, namespace: str, threads: Executor) -> None:
        self._api, self._namespace, self._threads = api, namespace, threads

    async def call(self, call: Callable[[], T]) -> T:
        """Return what a call that blocks returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """Read an object."""
        return await self.call(partial(self._api.get, kind, self._namespace, name))

    async def post(self, kind: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create it; where there is one of that name, return that. Raises LaunchRefused."""
        try:
            return await self.call(
                partial(self._api.create, kind, self._namespace, body, validation=WARN)
            )
        except AlreadyExists:
            return await self.get(kind, name)
        except (Denied, InvalidRequest) as error:
            raise LaunchRefused(error.said or str(error)) from error

    async def remove(self, kind: str, name: str, uid: str) -> bool:
        """Delete the object with that UID; say whether it was there."""
        try:
            await self.call(partial(self._api.delete, kind, self._namespace, name, uid=uid))
        except (NotFound, Conflict):
            # A conflict: another object has that name by now, and is left alone.
            return False
        return True
