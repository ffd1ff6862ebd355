"""Report -> something a person looks at. Pure: imports core only."""
