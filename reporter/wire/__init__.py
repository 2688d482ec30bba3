"""The published JSON: schemas, decoding, encoding. No files, no clock, no network in here."""
