"""Where the files lie that come with the package."""

from pathlib import Path

__all__ = ["DATA"]

DATA = Path(__file__).resolve().parents[2] / "data"
"""Found without `importlib.resources`, which costs a sidecar memory that it never uses: the package is a folder."""
