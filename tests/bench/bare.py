"""The floor: an aiohttp server that reads a body and answers 200, with the aggregator's TLS.

    python -m tests.bench.bare PORT CA SERVER_PEM [DIRECTORY]

It parses nothing, checks nothing and limits nothing; uploads are read 64 at a time, as ours are.
With a directory, each upload is digested, written there and fsynced before the answer, in the
plainest way; without one, bodies are thrown away.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import ssl
import sys
from pathlib import Path

from aiohttp import web

UPLOADS = 64
LARGEST = 2**30


def save(directory: Path, node: str, body: bytes) -> None:
    """Make one body durable, under its digest."""
    digest = hashlib.sha256(body).hexdigest()
    with (directory / f"{node}-{digest}").open("xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def application(directory: Path | None) -> web.Application:
    """Return the routes."""
    slots = asyncio.Semaphore(UPLOADS)

    async def update(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    async def upload(request: web.Request) -> web.Response:
        async with slots:
            body = await request.read()
            if directory is not None:
                await asyncio.to_thread(save, directory, request.match_info["node"], body)
        return web.Response()

    app = web.Application(client_max_size=LARGEST)
    app.router.add_post("/api/v1/progress/by-node/{node}/{plugin}", update)
    app.router.add_get("/api/v1/health/by-node/{node}/{plugin}", update)
    app.router.add_put("/api/v1/results/by-node/{node}/{plugin}", upload)
    return app


async def serve(port: int, ca: str, server: str, directory: Path | None) -> None:
    """Serve until the process is ended."""
    # Uploads that were cut are nothing to tell.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca)
    context.load_cert_chain(server)
    context.num_tickets = 0
    runner = web.AppRunner(application(directory), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context, backlog=1024).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    number, authority, pair, *rest = sys.argv[1:]
    asyncio.run(serve(int(number), authority, pair, Path(rest[0]) if rest else None))
