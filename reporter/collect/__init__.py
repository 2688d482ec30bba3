"""Gatherers, facts of a node, snapshots of the cluster, and the agent that delivers them."""
