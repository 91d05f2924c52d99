import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import quantd.client.Quantd;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.QuantizationServiceGrpc;
import quantd.v1.Tensor;

/** Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server. */
public final class Quantize {
  private Quantize() {}

  public static void main(String[] arguments) {
    float[] x = new float[4 * 64];
    for (int i = 0; i < x.length; i++) {
      x[i] = (float) Math.sin(i);
    }
    String address = System.getenv().getOrDefault("QUANTD_ADDRESS", "127.0.0.1:50051");
    ManagedChannel channel = Quantd.channel(address, InsecureChannelCredentials.create()).build();
    try {
      var quantd = QuantizationServiceGrpc.newBlockingStub(channel).withDeadlineAfter(10, TimeUnit.SECONDS);
      DynamicQuantizeResponse small = quantd.dynamicQuantize(DynamicQuantizeRequest.newBuilder()
              .setX(Quantd.fromFloats(x, 4, 64))
              .setOutputType(DataType.DATA_TYPE_INT8)
              .setAxis(0)
              .setReportError(true)
              .build());
      int[] codes = Quantd.toInts(small.getY());
      System.out.printf("%s: %s ... %.1f dB%n", small.getY().getShapeList(), Arrays.toString(Arrays.copyOf(codes, 4)),
          small.getQuantizationError().getSqnrDb());

      Tensor back = quantd
                        .dequantize(DequantizeRequest.newBuilder()
                                .setX(small.getY())
                                .setScale(small.getYScale())
                                .setZeroPoint(small.getYZeroPoint())
                                .setAxis(0)
                                .build())
                        .getY();
      System.out.printf("%.4f is %.4f%n", x[1], Quantd.toFloats(back)[1]);
    } finally {
      channel.shutdownNow();
    }
  }
}
