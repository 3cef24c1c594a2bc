"""Reports: what runs, matches, sweeps and studies have come to, as pages of Markdown with figures."""
