"""Damaged documents, the same ones for the same seed."""

import random
from collections.abc import Iterator, Sequence


def mutations(
    seeds: Sequence[bytes], tokens: Sequence[bytes], seed: object, count: int, *, copied: int
) -> Iterator[bytes]:
    """Documents with one to four cuts, copies, flips or foreign tokens each.

    A copy is of up to `copied` bytes.
    """
    dice = random.Random(seed)
    for _ in range(count):
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 4)):
            at = dice.randint(0, len(data))
            match dice.randrange(5):
                case 0:
                    del data[at : at + dice.randint(1, 8)]
                case 1:
                    data[at:at] = dice.choice(tokens)
                case 2:
                    data[at : at + 1] = dice.randbytes(1)
                case 3:
                    data[at:at] = data[dice.randint(0, len(data)) :][: dice.randint(1, copied)]
                case 4:
                    del data[at:]
        yield bytes(data)
