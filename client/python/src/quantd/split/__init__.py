"""Splits tensors that are larger than the server's messages into pieces; see plan.py."""

from .limits import IN_FLIGHT, Limits, limits_from, without_limits
from .piece import Batches, Piece
from .plan import FEW_ELEMENTS, plan
from .values import values

__all__ = ["Batches", "FEW_ELEMENTS", "IN_FLIGHT", "Limits", "Piece", "limits_from", "plan", "values", "without_limits"]
