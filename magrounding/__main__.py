"""`python -m magrounding`: the console command where its script is not on the path."""

import sys

from magrounding.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
