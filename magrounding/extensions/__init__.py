"""Extensions: each folder adds to the package what its `entries.py` registers; without the folder all else works."""
