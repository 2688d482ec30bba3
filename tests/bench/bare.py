"""The floor: an aiohttp server that reads a body and answers 200, with the aggregator's TLS.

    python -m tests.bench.bare PORT CA SERVER_PEM

It keeps nothing, parses nothing and checks nothing; uploads are read 64 at a time, as ours are.
"""

from __future__ import annotations

import asyncio
import ssl
import sys

from aiohttp import web

UPLOADS = 64
LARGEST = 2**30


def application() -> web.Application:
    """Return the routes."""
    slots = asyncio.Semaphore(UPLOADS)

    async def update(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    async def upload(request: web.Request) -> web.Response:
        async with slots:
            await request.read()
        return web.Response()

    app = web.Application(client_max_size=LARGEST)
    app.router.add_post("/api/v1/progress/by-node/{node}/{plugin}", update)
    app.router.add_get("/api/v1/health/by-node/{node}/{plugin}", update)
    app.router.add_put("/api/v1/results/by-node/{node}/{plugin}", upload)
    return app


async def serve(port: int, ca: str, server: str) -> None:
    """Serve until the process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(ca)
    context.load_cert_chain(server)
    context.num_tickets = 0
    runner = web.AppRunner(application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context, backlog=1024).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    _, number, authority, pair = sys.argv
    asyncio.run(serve(int(number), authority, pair))
