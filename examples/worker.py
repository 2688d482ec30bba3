#!/usr/bin/env python3
"""A worker of your own for an aggregator: it does some work, reports progress, uploads a file.

Needs urllib3 only. Settings come from the environment: AGGREGATOR_URL, RESULT_TYPE, CA_CERT,
CLIENT_CERT, CLIENT_KEY (see docs/plugins.md). Usage: worker.py FILE
"""

import os
import sys

from reporter.link import (
    AggregatorClient,
    ConfigError,
    Heart,
    NoAnswer,
    Progress,
    ResultSource,
    SourceError,
    TrustError,
    WorkerConfig,
)


def main() -> int:
    """Exit 0: uploaded; 1: not uploaded; 2: invalid settings."""
    try:
        config = WorkerConfig.from_env(os.environ, drop_key=True)
    except ConfigError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return 2
    with AggregatorClient(config) as client:
        heart = Heart(client, interval=config.heartbeat_seconds or 15.0)
        heart.start()  # sends heartbeats
        try:
            for step in range(1, 4):
                work(step)
                try:
                    client.post_progress(Progress(f"step {step}", total=3, completed=step))
                except NoAnswer as error:
                    print("progress not sent:", error, file=sys.stderr)  # the next update may be
            delivery = client.put_result(ResultSource.from_file(sys.argv[1]))
        except (SourceError, TrustError) as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            heart.close()
    print(delivery.outcome, delivery.digest, delivery.text)
    return 0 if delivery.delivered else 1


def work(step: int) -> None:
    """Do what this worker is for."""


if __name__ == "__main__":
    sys.exit(main())
