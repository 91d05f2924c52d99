package quantd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/quantd/client/go/quantdv1"
)

// Error describes a call that failed.
type Error struct {
	Code    codes.Code
	Message string
	// The fields of the request that are wrong, such as "scale".
	Fields []*quantdv1.FieldViolation
	// A word for programs, such as "INVALID_ARGUMENT" or "QUEUE_FULL"; "" if the error is not the server's.
	Reason string
	// When to try again; 0 if the server does not say.
	RetryAfter time.Duration

	cause error
}

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("quantd: %s: %s", e.Code, e.Message) }

// Unwrap returns the error that FromError was given; nil for an item of a stream.
func (e *Error) Unwrap() error { return e.cause }

// FromError reads the error of a call, wrapped or not. It returns false if that has no gRPC status.
func FromError(err error) (*Error, bool) {
	var with interface{ GRPCStatus() *status.Status }
	if err == nil || !errors.As(err, &with) {
		return nil, false
	}
	from := with.GRPCStatus()
	result := &Error{Code: from.Code(), Message: from.Message(), cause: err}
	if from.Code() == codes.Canceled && strings.HasPrefix(from.Message(), "stream terminated by RST_STREAM") {
		// A server or proxy that drops calls, for example when it stops: the user has not cancelled the call.
		result.Code = codes.Unavailable
	}
	for _, detail := range from.Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				result.Fields = append(result.Fields,
					&quantdv1.FieldViolation{Field: violation.GetField(), Description: violation.GetDescription()})
			}
		case *errdetails.ErrorInfo:
			result.Reason = detail.GetReason()
		case *errdetails.RetryInfo:
			result.RetryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	return result, true
}

// FromItem is the same for an item of a stream.
func FromItem(item *quantdv1.ItemError) *Error {
	return &Error{Code: codes.Code(item.GetCode()), Message: item.GetMessage(), Fields: item.GetFieldViolations()}
}
