"""The stand-alone worker: stands in for `/sonobuoy` beside a plugin of a Sonobuoy run."""
