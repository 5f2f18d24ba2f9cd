"""What was read, told apart into runs: identity excludes, what two files report alike joins, names come last."""
