"""`python -m stepline` is `stepline`."""

import sys

from stepline.cli.main import main

sys.exit(main())
