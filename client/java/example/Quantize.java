import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import quantd.client.Failure;
import quantd.client.Quantd;
import quantd.client.Tensors;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.Tensor;

/** Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server. */
public final class Quantize {
  private Quantize() {}

  public static void main(String[] arguments) {
    int rows = 4;
    int columns = 64;
    float[] weights = new float[rows * columns];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = (float) Math.sin(i);
    }
    try (Quantd quantd = Quantd.connect()) {
      DynamicQuantizeResponse answer = quantd.blocking()
                                           .withDeadlineAfter(10, TimeUnit.SECONDS)
                                           .dynamicQuantize(DynamicQuantizeRequest.newBuilder()
                                                   .setX(Tensors.fromFloats(weights, rows, columns))
                                                   .setOutputType(DataType.DATA_TYPE_INT8)
                                                   .setAxis(0)
                                                   .setReportError(true)
                                                   .build());
      byte[] codes = Tensors.toBytes(answer.getY());
      System.out.printf("%s: %s ... %.1f dB%n", answer.getY().getShapeList(), Arrays.toString(Arrays.copyOf(codes, 4)),
          answer.getQuantizationError().getSqnrDb());

      Tensor back = quantd.blocking()
                        .dequantize(DequantizeRequest.newBuilder()
                                .setX(answer.getY())
                                .setScale(answer.getYScale())
                                .setZeroPoint(answer.getYZeroPoint())
                                .setAxis(0)
                                .build())
                        .getY();
      System.out.printf("%.4f is %.4f%n", weights[1], Tensors.toFloats(back)[1]);
    } catch (io.grpc.StatusRuntimeException e) {
      Failure failure = Failure.of(e);
      System.err.println(failure.code() + " " + failure.message() + " " + failure.fieldViolations());
      System.exit(1);
    }
  }
}
