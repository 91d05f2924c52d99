import java.util.Random;
import java.util.concurrent.TimeUnit;
import quantd.client.Failure;
import quantd.client.Quantd;
import quantd.client.Tensors;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.Tensor;

/** Quantizes a matrix to INT8 with a scale a row, and back; the server is that of QUANTD_ADDRESS. */
public final class Quantize {
  private Quantize() {}

  public static void main(String[] arguments) {
    int rows = 4;
    int columns = 768;
    float[] weights = new float[rows * columns];
    Random random = new Random(1);
    for (int i = 0; i < weights.length; i++) {
      weights[i] = random.nextFloat() - 0.5f;
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
      System.out.printf("%d elements, %d scales, SQNR %.1f dB%n", codes.length, Tensors.toFloats(answer.getYScale()).length,
          answer.getQuantizationError().getSqnrDb());

      Tensor back = quantd.blocking()
                        .dequantize(DequantizeRequest.newBuilder()
                                .setX(answer.getY())
                                .setScale(answer.getYScale())
                                .setZeroPoint(answer.getYZeroPoint())
                                .setAxis(0)
                                .build())
                        .getY();
      System.out.printf("%f came back as %f%n", weights[0], Tensors.toFloats(back)[0]);
    } catch (io.grpc.StatusRuntimeException e) {
      Failure failure = Failure.of(e);
      System.err.println(failure.code() + " " + failure.message() + " " + failure.fieldViolations());
      System.exit(1);
    }
  }
}
