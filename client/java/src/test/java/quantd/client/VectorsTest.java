package quantd.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.QuantizeRequest;
import quantd.v1.Tensor;

/** The same bytes as quantctl computes in its own process: tests/languages/vectors.py makes the file. */
class VectorsTest {
  private static byte[] bytes(String hex) {
    return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
  }

  private static long[] shape(String text) {
    return text.equals("-") ? new long[0] : Arrays.stream(text.split(",")).mapToLong(Long::parseLong).toArray();
  }

  private static long[] shape(Tensor tensor) {
    return tensor.getShapeList().stream().mapToLong(Long::longValue).toArray();
  }

  @Test
  @EnabledIfEnvironmentVariable(named = "TEST_VECTORS", matches = ".+")
  void randomTensorsOfEveryTypeAreQuantctlsBytes() throws Exception {
    List<String> lines = Files.readAllLines(Path.of(System.getenv("TEST_VECTORS"), "vectors.tsv"));
    assertTrue(lines.size() >= 200, lines.size() + " vectors");
    try (TestServer server = new TestServer(); Quantd quantd = Quantd.connect(server.address)) {
      for (String line : lines) {
        String[] at = line.split("\t");
        String name = "type " + at[0] + " [" + at[1] + "] axis " + at[2];
        DataType type = DataType.forNumber(Integer.parseInt(at[0]));
        Tensor x = Tensors.fromBytes(DataType.DATA_TYPE_FLOAT, bytes(at[3]), shape(at[1]));
        DynamicQuantizeRequest.Builder request = DynamicQuantizeRequest.newBuilder().setX(x).setOutputType(type);
        QuantizeRequest.Builder quantize = QuantizeRequest.newBuilder().setX(x).setOutputType(type);
        DequantizeRequest.Builder dequantize = DequantizeRequest.newBuilder();
        if (!at[2].equals("-")) {
          long axis = Long.parseLong(at[2]);
          request.setAxis(axis);
          quantize.setAxis(axis);
          dequantize.setAxis(axis);
        }
        DynamicQuantizeResponse answer = quantd.blocking().dynamicQuantize(request.build());
        assertArrayEquals(bytes(at[4]), Tensors.toBytes(answer.getY()), name);
        assertArrayEquals(shape(at[1]), shape(answer.getY()), name);
        assertArrayEquals(bytes(at[5]), Tensors.toBytes(answer.getYScale()), name);
        assertArrayEquals(shape(at[6]), shape(answer.getYScale()), name);
        assertEquals(!at[7].equals("-"), answer.hasYZeroPoint(), name);
        quantize.setScale(answer.getYScale());
        dequantize.setScale(answer.getYScale()).setX(answer.getY());
        if (answer.hasYZeroPoint()) {
          assertArrayEquals(bytes(at[7]), Tensors.toBytes(answer.getYZeroPoint()), name);
          quantize.setZeroPoint(answer.getYZeroPoint());
          dequantize.setZeroPoint(answer.getYZeroPoint());
        }
        assertEquals(answer.getY(), quantd.blocking().quantize(quantize.build()).getY(), name);
        Tensor back = quantd.blocking().dequantize(dequantize.build()).getY();
        assertEquals(ByteString.copyFrom(bytes(at[8])), back.getRawData(), name);
        // The same as arrays: unpacked and packed again.
        assertEquals(answer.getY(), Tensors.fromInts(type, Tensors.toInts(answer.getY()), shape(at[1])), name);
        assertEquals(back, Tensors.fromFloats(Tensors.toFloats(back), shape(at[1])), name);
      }
    }
  }
}
