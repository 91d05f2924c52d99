package quantd.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import quantd.v1.DataType;
import quantd.v1.IntValues;
import quantd.v1.Tensor;

/** Arrays to tensors and back, without a server. */
class TensorsTest {
  private static final float[] FLOATS = {1, -2.5f, Float.NaN, Float.NEGATIVE_INFINITY, Float.MIN_VALUE, 0};

  private static void refused(String text, Executable made) {
    String said = assertThrows(IllegalArgumentException.class, made).getMessage();
    assertTrue(said.contains(text), said);
  }

  @Test
  void floatsOfBuffersOfEveryOrderAndPlaceAreTheSame() {
    Tensor expected = Tensors.fromFloats(FLOATS, 2, 3);
    assertEquals(ByteString.copyFrom(new byte[] {0, 0, (byte) 0x80, 0x3f}), expected.getRawData().substring(0, 4));
    for (ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
      for (boolean direct : new boolean[] {false, true}) {
        for (int offset = 0; offset < 4; offset++) {
          ByteBuffer memory = direct ? ByteBuffer.allocateDirect(64) : ByteBuffer.allocate(64);
          FloatBuffer floats = memory.position(offset).slice().order(order).asFloatBuffer();
          floats.put(3, FLOATS).position(3).limit(9);
          assertEquals(expected, Tensors.fromFloats(floats, 2, 3), order + " " + offset);
          assertEquals(3, floats.position());
        }
      }
    }
    assertArrayEquals(FLOATS, Tensors.toFloats(expected));
  }

  @Test
  void bytesAreNotCopied() {
    byte[] memory = new byte[100];
    Tensor tensor = Tensors.fromBytes(DataType.DATA_TYPE_INT8, ByteBuffer.wrap(memory, 7, 6), 6);
    memory[9] = 42;
    assertEquals(42, Tensors.toBuffer(tensor).get(2));
    ByteBuffer direct = ByteBuffer.allocateDirect(8).order(ByteOrder.BIG_ENDIAN);
    tensor = Tensors.fromBytes(DataType.DATA_TYPE_UINT16, direct, 4);
    direct.put(0, (byte) 1);
    assertArrayEquals(new int[] {1, 0, 0, 0}, Tensors.toInts(tensor));
    assertTrue(Tensors.toBuffer(tensor).isReadOnly());
  }

  @Test
  void narrowTypesArePackedLowestBitsFirst() {
    record Case(DataType type, int[] values, int... bytes) {}
    for (Case each : new Case[] {new Case(DataType.DATA_TYPE_INT4, new int[] {-8, 7, -1}, 0x78, 0x0f),
             new Case(DataType.DATA_TYPE_UINT4, new int[] {15, 0, 9}, 0x0f, 0x09),
             new Case(DataType.DATA_TYPE_FLOAT4E2M1, new int[] {1, 8}, 0x81),
             // By hand, from the OCP Microscaling specification and ONNX's order of bits: 1, -1.5, 7.5, -0.125, -7.5; and
             // 1, 28, -0.0625, 0.25, -3, -28, 0.0625.
             new Case(DataType.DATA_TYPE_FLOAT6E2M3, new int[] {8, 44, 31, 33, 63}, 0x08, 0xfb, 0x85, 0x3f),
             new Case(DataType.DATA_TYPE_FLOAT6E3M2, new int[] {12, 31, 33, 4, 50, 63, 1}, 0xcc, 0x17, 0x12, 0xf2, 0x1f, 0),
             new Case(DataType.DATA_TYPE_INT2, new int[] {-2, 1, -1, 0, 1}, 0b00110110, 1),
             new Case(DataType.DATA_TYPE_UINT2, new int[] {3, 0, 2}, 0b100011), new Case(DataType.DATA_TYPE_INT4, new int[0]),
             new Case(DataType.DATA_TYPE_INT8, new int[] {-128, 127}, 0x80, 0x7f),
             new Case(DataType.DATA_TYPE_UINT8, new int[] {255}, 0xff),
             new Case(DataType.DATA_TYPE_INT16, new int[] {-2}, 0xfe, 0xff),
             new Case(DataType.DATA_TYPE_UINT16, new int[] {65535}, 0xff, 0xff),
             new Case(DataType.DATA_TYPE_INT32, new int[] {Integer.MIN_VALUE}, 0, 0, 0, 0x80)}) {
      Tensor tensor = Tensors.fromInts(each.type, each.values, each.values.length);
      byte[] bytes = Tensors.toBytes(tensor);
      assertEquals(each.bytes.length, bytes.length, each.type.name());
      for (int i = 0; i < bytes.length; i++) {
        assertEquals((byte) each.bytes[i], bytes[i], each.type + " " + i);
      }
      assertArrayEquals(each.values, Tensors.toInts(tensor), each.type.name());
    }
    // The unused bits may contain anything.
    assertArrayEquals(new int[] {63}, Tensors.toInts(Tensors.fromBytes(DataType.DATA_TYPE_FLOAT6E3M2, new byte[] {-1}, 1)));
    assertArrayEquals(new int[] {3}, Tensors.toInts(Tensors.fromBytes(DataType.DATA_TYPE_UINT4, new byte[] {(byte) 0xf3}, 1)));
  }

  /** For every type of the contract: its sizes and ranges, and that an element does not change its neighbours. */
  @Test
  void everyDataTypeIsDescribed() {
    for (DataType type : DataType.values()) {
      if (type == DataType.DATA_TYPE_UNSPECIFIED || type == DataType.UNRECOGNIZED) {
        continue;
      }
      ElementType element = ElementType.of(type);
      for (long count = 0; count < 20; count++) {
        assertEquals((count * element.bits() + 7) / 8, element.bytes(count), type.name());
      }
      assertEquals((1L << 55) * element.bits(), element.bytes(1L << 58), type.name());
      for (int at = 0; at < 9; at++) {
        for (long value : new long[] {element.least(), element.most(), 0, 1}) {
          ByteBuffer bytes = ByteBuffer.allocate((int) element.bytes(9)).order(ByteOrder.LITTLE_ENDIAN);
          element.put(bytes, at, (int) value);
          for (int i = 0; i < 9; i++) {
            assertEquals(i == at ? (int) value : 0, element.get(bytes, i), type + " " + at + " " + i);
          }
        }
      }
    }
  }

  /** The position of an element beyond 2^31 bits, for which an int is too small. */
  @Test
  void elementsBeyondTwoToThe31BitsAreFound() {
    int count = (1 << 29) + 2;
    ByteBuffer bytes = ByteBuffer.allocateDirect(count / 2).order(ByteOrder.LITTLE_ENDIAN);
    ElementType element = ElementType.of(DataType.DATA_TYPE_INT4);
    element.put(bytes, count - 1, -7);
    assertEquals((byte) 0x90, bytes.get(count / 2 - 1));
    assertEquals(-7, element.get(bytes, count - 1));
  }

  @Test
  void whatDoesNotFitIsRefusedWithBothNumbers() {
    refused("shape [2, 2] has 4 elements, 6 are given", () -> Tensors.fromFloats(FLOATS, 2, 2));
    refused("shape[0] is -2", () -> Tensors.fromFloats(FLOATS, -2, -3));
    refused("more than 2^63", () -> Tensors.fromFloats(FLOATS, Long.MAX_VALUE, 2));
    refused("more than any message", () -> Tensors.fromBytes(DataType.DATA_TYPE_FLOAT, new byte[0], Long.MAX_VALUE));
    refused(
        "11 bytes, DATA_TYPE_FLOAT of shape [3] takes 12", () -> Tensors.fromBytes(DataType.DATA_TYPE_FLOAT, new byte[11], 3));
    refused("element 1 is 8, DATA_TYPE_INT4 takes -8 to 7", () -> Tensors.fromInts(DataType.DATA_TYPE_INT4, new int[] {0, 8}, 2));
    refused(
        "element 0 is -1, DATA_TYPE_UINT8 takes 0 to 255", () -> Tensors.fromInts(DataType.DATA_TYPE_UINT8, new int[] {-1}, 1));
    refused("element 0 is 64, DATA_TYPE_FLOAT6E2M3 takes 0 to 63",
        () -> Tensors.fromInts(DataType.DATA_TYPE_FLOAT6E2M3, new int[] {64}, 1));
    refused("5 bytes, DATA_TYPE_FLOAT6E3M2 of shape [7] takes 6",
        () -> Tensors.fromBytes(DataType.DATA_TYPE_FLOAT6E3M2, new byte[5], 7));
    refused("data_type is not set", () -> Tensors.fromInts(DataType.DATA_TYPE_UNSPECIFIED, new int[1], 1));
    refused("a number that this client", () -> Tensors.toInts(Tensor.newBuilder().setDataTypeValue(99).build()));
    refused("fromFloats", () -> Tensors.fromInts(DataType.DATA_TYPE_FLOAT, new int[1], 1));
    refused("not DATA_TYPE_FLOAT", () -> Tensors.toFloats(Tensors.fromInts(DataType.DATA_TYPE_INT8, new int[1], 1)));
    refused("toFloats", () -> Tensors.toInts(Tensors.fromFloats(FLOATS, 6)));
    refused("raw_data has 0 bytes", () -> Tensors.toFloats(Tensor.newBuilder().setDataType(DataType.DATA_TYPE_FLOAT).build()));
    refused("INT_VALUES",
        ()
            -> Tensors.toBytes(
                Tensor.newBuilder().setDataType(DataType.DATA_TYPE_INT8).setIntValues(IntValues.getDefaultInstance()).build()));
    assertEquals(0, Tensors.toFloats(Tensors.fromFloats(new float[0], 0, 3)).length);
    assertEquals(0, Tensors.fromFloats(new float[0], Long.MAX_VALUE, 0, Long.MAX_VALUE).getRawData().size());
    assertEquals(1, Tensors.fromFloats(new float[] {3}).getRawData().size() / 4);
  }
}
