"""Final conditions for Jobs whose reporter was lost."""
