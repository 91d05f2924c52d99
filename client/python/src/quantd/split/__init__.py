"""Tensors that are larger than the server's messages, in pieces; see README.md and plan.py."""

from .plan import IN_FLIGHT, Limits, Piece, Steps, limits_from, limits_of, may_be_large, plan, without_limits

__all__ = ["IN_FLIGHT", "Limits", "Piece", "Steps", "limits_from", "limits_of", "may_be_large", "plan", "without_limits"]
