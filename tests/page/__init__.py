"""The page: its data, and how it is assembled."""
