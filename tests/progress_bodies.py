"""Large bodies of progress requests, read as the aggregator reads them."""

from reporter.run.progress import Progress
from reporter.run.progress_pieces import parse_in_pieces


def in_pieces(body: bytes) -> Progress:
    """What a large body says."""
    pieces = parse_in_pieces(body)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value
