"""Adding the reporter to manifests and removing it."""
