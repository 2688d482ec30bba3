"""Manifests as text: their documents, and changes that leave everything else byte for byte."""
