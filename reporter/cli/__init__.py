"""What all commands of `status-ctl` share: exit codes, output, tables, completion."""
