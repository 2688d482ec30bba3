"""Drawn Jobs under drawn faults on a real node, judged by a model of the contract.

Nothing here imports the product: it is known by its image, the API server and its log alone.
"""
