"""A sample of small faults in the product, and whether the tests notice them."""
