"""Metrics: what Prometheus can read about our programs. The only place of prometheus_client."""
