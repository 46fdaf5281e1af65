from ..test_browser import address, visit

__all__ = ["address", "visit"]
