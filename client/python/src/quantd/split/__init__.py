"""Splits tensors that are larger than the server's messages into pieces; see README.md and plan.py."""

from .limits import IN_FLIGHT, Limits, limits_from, without_limits
from .piece import Batches, Piece
from .plan import may_be_large, plan, surely_fits
from .values import values

__all__ = ["Batches", "IN_FLIGHT", "Limits", "Piece", "limits_from", "may_be_large", "plan", "surely_fits", "values", "without_limits"]
