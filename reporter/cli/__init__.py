"""How things are shown: tables, YAML, colours."""
