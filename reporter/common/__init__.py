"""What every folder may use: log, signals, files, YAML, schemas, settings, retry, text."""
