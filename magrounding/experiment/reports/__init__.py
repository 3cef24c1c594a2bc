"""The reports: which rows and columns each has. How to read them is in docs/reading_reports.md."""

HOW_TO_READ = "How to read this report: docs/reading_reports.md of magrounding."
