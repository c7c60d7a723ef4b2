"""`python -m grid`: the same program as `grid`."""

from grid.program import main

if __name__ == "__main__":
    main()
