"""The agent: our own plugins. It collects something into a directory and delivers it."""
