package quantd.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import quantd.v1.FieldViolation;
import quantd.v1.ItemError;

/**
 * The contents of a failed call's status, or of a failed item of a stream.
 *
 * @param code gRPC status code
 * @param message the server's text, which names the field and both numbers
 * @param fieldViolations the wrong fields ("scale", "x") and why, where the server says which
 * @param reason a constant to branch on, such as "REGION_DAMAGED"; else empty
 * @param retryAfter how long the server asks to wait before another try, if it does
 */
public record Failure(
    Status.Code code, String message, List<FieldViolation> fieldViolations, String reason, Optional<Duration> retryAfter) {
  /** Reads what a call threw: a StatusException, a StatusRuntimeException, or an exception that one of these caused. */
  public static Failure of(Throwable thrown) {
    Status status = Status.fromThrowable(thrown);
    List<FieldViolation> violations = new ArrayList<>();
    String reason = "";
    Optional<Duration> retryAfter = Optional.empty();
    try {
      com.google.rpc.Status details = StatusProto.fromThrowable(thrown);
      for (Any detail : details == null ? List.<Any>of() : details.getDetailsList()) {
        if (detail.is(BadRequest.class)) {
          for (BadRequest.FieldViolation each : detail.unpack(BadRequest.class).getFieldViolationsList()) {
            violations.add(FieldViolation.newBuilder().setField(each.getField()).setDescription(each.getDescription()).build());
          }
        } else if (detail.is(ErrorInfo.class)) {
          reason = detail.unpack(ErrorInfo.class).getReason();
        } else if (detail.is(RetryInfo.class)) {
          com.google.protobuf.Duration delay = detail.unpack(RetryInfo.class).getRetryDelay();
          retryAfter = Optional.of(Duration.ofSeconds(delay.getSeconds(), delay.getNanos()));
        }
      }
    } catch (InvalidProtocolBufferException | IllegalArgumentException | ArithmeticException e) {
      // Details that do not parse must not hide the status itself.
    }
    String message = status.getDescription() != null ? status.getDescription() : "";
    // A server or proxy that drops calls, for example when it stops: the user has not cancelled the call.
    boolean dropped = status.getCode() == Status.Code.CANCELLED && message.startsWith("RST_STREAM closed stream");
    return new Failure(
        dropped ? Status.Code.UNAVAILABLE : status.getCode(), message, List.copyOf(violations), reason, retryAfter);
  }

  /** Reads the error of an item of a stream. */
  public static Failure of(ItemError error) {
    return new Failure(Status.fromCodeValue(error.getCode()).getCode(), error.getMessage(), error.getFieldViolationsList(), "",
        Optional.empty());
  }

  /** Path of the first wrong field, or "". */
  public String field() {
    return fieldViolations.isEmpty() ? "" : fieldViolations.get(0).getField();
  }
}
