package quantd.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.function.Executable;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.IntValues;
import quantd.v1.QuantizationServiceGrpc;
import quantd.v1.QuantizeRequest;
import quantd.v1.Tensor;

/** The helper, against the server that ./tests/run.sh clients starts. */
class QuantdTest {
  private static final HexFormat HEX = HexFormat.of();

  private static Tensor tensor(DataType type, byte[] bytes, long... shape) {
    return Quantd.fromBytes(type, ByteBuffer.wrap(bytes), shape);
  }

  @Test
  void packingIsThatOfTheContract() {
    for (Map.Entry<Tensor, String> row :
        Map.of( //
               Quantd.fromInts(DataType.DATA_TYPE_INT4, new int[] {-8, 7, -1}, 3), "780f",
               Quantd.fromInts(DataType.DATA_TYPE_UINT2, new int[] {0, 1, 2, 3, 3}, 5), "e403",
               Quantd.fromInts(DataType.DATA_TYPE_FLOAT6E2M3, new int[] {8, 44, 31, 33, 63}, 5), "08fb853f",
               Quantd.fromInts(DataType.DATA_TYPE_INT16, new int[] {-32768, 1}, 2), "00800100",
               Quantd.fromInts(DataType.DATA_TYPE_INT32, new int[] {Integer.MIN_VALUE, 5}, 2), "0000008005000000")
            .entrySet()) {
      assertEquals(row.getValue(), HEX.formatHex(row.getKey().getRawData().toByteArray()));
      DataType type = row.getKey().getDataType();
      assertEquals(row.getKey(), Quantd.fromInts(type, Quantd.toInts(row.getKey()), row.getKey().getShape(0)));
    }
    assertArrayEquals(new int[] {-8, 7, -1}, Quantd.toInts(tensor(DataType.DATA_TYPE_INT4, HEX.parseHex("780f"), 3)));
  }

  @Test
  void whatIsNotTheTensorAskedForIsRefused() {
    Tensor values = Tensor.newBuilder().setDataType(DataType.DATA_TYPE_INT8).setIntValues(IntValues.getDefaultInstance()).build();
    for (Map.Entry<String, Executable> row :
        Map.<String, Executable>of("element 0 is 8",
               ()
                   -> Quantd.fromInts(DataType.DATA_TYPE_INT4, new int[] {8}, 1),
               "holds 0 to 255",
               ()
                   -> Quantd.fromInts(DataType.DATA_TYPE_UINT8, new int[] {-1}, 1),
               "[2] takes 8",
               ()
                   -> Quantd.fromFloats(new float[] {1}, 2),
               "not set",
               ()
                   -> Quantd.fromInts(DataType.DATA_TYPE_UNSPECIFIED, new int[] {}, 0),
               "[-1]",
               ()
                   -> tensor(DataType.DATA_TYPE_INT4, new byte[1], -1),
               "4294967296",
               ()
                   -> tensor(DataType.DATA_TYPE_INT4, new byte[0], 1L << 32, 1L << 32),
               "takes 0",
               ()
                   -> tensor(DataType.DATA_TYPE_INT4, new byte[1], 0, 1L << 62),
               "INT_VALUES",
               ()
                   -> Quantd.toInts(values),
               "not FLOAT", () -> Quantd.toFloats(values), "toFloats", () -> Quantd.toInts(Quantd.fromFloats(new float[] {1})))
            .entrySet()) {
      String message = assertThrows(IllegalArgumentException.class, row.getValue(), row.getKey()).getMessage();
      assertTrue(message.contains(row.getKey()), message + " does not say " + row.getKey());
    }
  }

  private static byte[] bytes(String hex) {
    return hex.equals("-") ? new byte[0] : HEX.parseHex(hex);
  }

  private static long[] numbers(String text) {
    return text.equals("-") ? new long[0] : Arrays.stream(text.split(",")).mapToLong(Long::parseLong).toArray();
  }

  private static ByteString hex(String text) {
    return ByteString.copyFrom(bytes(text));
  }

  /** tests/languages/vectors.py describes the columns: quantctl's results, computed in its own process. */
  @Test
  @EnabledIfEnvironmentVariable(named = "QUANTD_ADDRESS", matches = ".+")
  void tensorsOfEveryTypeAreQuantctlsBytes() throws Exception {
    List<String> lines = Files.readAllLines(Path.of(System.getenv("TEST_VECTORS"), "vectors.tsv"));
    assertTrue(lines.size() >= 200, lines.size() + " vectors");
    ManagedChannel channel = Quantd.channel(System.getenv("QUANTD_ADDRESS"), InsecureChannelCredentials.create()).build();
    var quantd = QuantizationServiceGrpc.newBlockingStub(channel);
    for (String line : lines) {
      String[] at = line.split("\t");
      String name = String.join(" ", at[0], at[1], at[2]);
      DataType type = DataType.forNumber(Integer.parseInt(at[0]));
      Tensor x = tensor(DataType.DATA_TYPE_FLOAT, bytes(at[3]), numbers(at[1]));
      DynamicQuantizeRequest.Builder request = DynamicQuantizeRequest.newBuilder().setX(x).setOutputType(type);
      QuantizeRequest.Builder quantize = QuantizeRequest.newBuilder().setX(x).setOutputType(type);
      DequantizeRequest.Builder dequantize = DequantizeRequest.newBuilder();
      for (long axis : numbers(at[2])) {
        request.setAxis(axis);
        quantize.setAxis(axis);
        dequantize.setAxis(axis);
      }
      DynamicQuantizeResponse answer = quantd.dynamicQuantize(request.build());
      assertEquals(hex(at[4]), answer.getY().getRawData(), name);
      assertEquals(hex(at[5]), answer.getYScale().getRawData(), name);
      assertEquals(hex(at[7]), answer.getYZeroPoint().getRawData(), name);
      quantize.setScale(answer.getYScale());
      dequantize.setScale(answer.getYScale()).setX(answer.getY());
      if (answer.hasYZeroPoint()) {
        quantize.setZeroPoint(answer.getYZeroPoint());
        dequantize.setZeroPoint(answer.getYZeroPoint());
      }
      assertEquals(answer.getY(), quantd.quantize(quantize.build()).getY(), name);
      Tensor back = quantd.dequantize(dequantize.build()).getY();
      assertEquals(hex(at[8]), back.getRawData(), name);
      // The same as arrays: unpacked and packed again.
      assertEquals(answer.getY(), Quantd.fromInts(type, Quantd.toInts(answer.getY()), numbers(at[1])), name);
      assertEquals(back, Quantd.fromFloats(Quantd.toFloats(back), numbers(at[1])), name);
    }
    // More than 4 MiB, which is gRPC's limit without channel().
    Tensor large = tensor(DataType.DATA_TYPE_UINT8, new byte[5 << 20], 5 << 20);
    assertEquals(5 << 20,
        Quantd
            .toFloats(
                quantd.dequantize(DequantizeRequest.newBuilder().setX(large).setScale(Quantd.fromFloats(new float[] {1})).build())
                    .getY())
            .length);
    channel.shutdownNow();
  }
}
