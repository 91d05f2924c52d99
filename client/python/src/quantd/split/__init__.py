"""Tensors that are larger than the server's messages, in pieces; see README.md and plan.py."""

from .limits import IN_FLIGHT, Limits, limits_from, limits_of, without_limits
from .piece import Piece, Steps
from .plan import may_be_large, plan, surely_fits
from .values import values

__all__ = ["IN_FLIGHT", "Limits", "Piece", "Steps", "limits_from", "limits_of", "may_be_large", "plan", "surely_fits", "values", "without_limits"]
