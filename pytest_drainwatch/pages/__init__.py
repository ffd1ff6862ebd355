"""Pages: what is read from results, as one self-contained HTML file."""
