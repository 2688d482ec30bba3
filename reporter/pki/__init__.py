"""Making certificates; the only package below the programs that stands on `cryptography`."""
