"""Starting and removing the plugins of a run."""
