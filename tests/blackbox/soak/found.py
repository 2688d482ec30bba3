"""What a soak looks for."""


class Contradiction(AssertionError):
    """What the product did and the contract does not allow, with all that is known of it."""
