"""Quantities as Kubernetes writes them: `64Mi`, `1G`, `0.5`, `100m`, `1e3`."""

import re
from decimal import Decimal
from typing import Final

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}))"
    r"(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?[0-9]{1,2}))?",
    re.ASCII,
)
_UNITS: Final = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate("num", -3)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def quantity(written: str) -> Decimal | None:
    """Read a quantity; None for anything else."""
    found = _QUANTITY.fullmatch(written)
    if found is None:
        return None
    number, unit, exponent = found.groups()
    if exponent is not None:
        return Decimal(number).scaleb(int(exponent))
    return Decimal(number) * _UNITS.get(unit, Decimal(1))
