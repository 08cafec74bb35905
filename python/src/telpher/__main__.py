"""`python -m telpher`: runs the `telpher` program of this installation."""

import sys

from telpher._missing import main

sys.exit(main())
