"""Manifests as people, Helm, Kustomize and kubectl write them: one file for each shape."""

from pathlib import Path

FOLDER = Path(__file__).with_name("shapes")
SHAPES = {
    path.stem: path.read_bytes().decode() for path in sorted(FOLDER.iterdir()) if path.is_file()
}
REWRITTEN = frozenset({"anchors-in-the-way", "merge-keys"})
"""A change in one place would be one in two: they are written anew, without their comments."""
NULLS = frozenset({"keys-without-values"})
"""A key without a value comes back as none."""
UNCHANGED = frozenset(
    {"results-is-a-config-map", "results-read-only", "the-label-excludes-it", "windows"}
)
NAMELESS = frozenset({"a-name-to-be-generated"})
"""Nobody can say whose result it is, for an aggregator."""
