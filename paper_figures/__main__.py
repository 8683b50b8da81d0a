import sys

from paper_figures.command import main

sys.exit(main())
