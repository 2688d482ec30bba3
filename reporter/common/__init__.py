"""What every process of ours needs: life, log, private files, connections."""
