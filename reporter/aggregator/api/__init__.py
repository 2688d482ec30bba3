"""Routes and responses of the aggregator's two listeners."""
