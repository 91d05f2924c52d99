"""Status codes: those of gRPC."""

from grpc import StatusCode

__all__ = ["StatusCode"]
