"""Settings: environment variables, their defaults and rules. The only place of pydantic."""
