package quantd.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import quantd.v1.DataType;
import quantd.v1.Tensor;

/**
 * Tensors of arrays and buffers, and back. On the wire elements are little endian, row-major; types narrower than a byte are
 * packed, lowest bits first. A shape without numbers is that of a 0-D tensor, which has one element.
 */
public final class Tensors {
  private Tensors() {}

  /** A FLOAT tensor of an array: one copy, with the bytes in the wire's order. */
  public static Tensor fromFloats(float[] values, long... shape) {
    return fromFloats(FloatBuffer.wrap(values), shape);
  }

  /** A FLOAT tensor of a buffer's remaining floats, whatever its byte order; its position stays. One copy. */
  public static Tensor fromFloats(FloatBuffer values, long... shape) {
    requireElements(values.remaining(), shape);
    ByteBuffer bytes = allocate(values.remaining(), Float.BYTES);
    bytes.asFloatBuffer().put(values.duplicate());
    return of(DataType.DATA_TYPE_FLOAT, bytes, shape);
  }

  /**
   * A tensor of a buffer's remaining bytes, which must have the wire's form (see {@link DataType}). Nothing is copied: the
   * buffer must not change until the call is over, including its retries. The buffer's own byte order is not used: for floats in
   * a big endian one, use {@code fromFloats(buffer.asFloatBuffer(), shape)}.
   */
  public static Tensor fromBytes(DataType type, ByteBuffer bytes, long... shape) {
    long expected = ElementType.of(type).bytes(elements(shape));
    if (bytes.remaining() != expected) {
      throw new IllegalArgumentException("the buffer has " + bytes.remaining() + " bytes, " + type + " of shape "
          + Arrays.toString(shape) + " takes " + expected);
    }
    return of(type, bytes, shape);
  }

  /** The same for an array. */
  public static Tensor fromBytes(DataType type, byte[] bytes, long... shape) {
    return fromBytes(type, ByteBuffer.wrap(bytes), shape);
  }

  /**
   * A tensor of integers, or of a floating-point type's codes: one per element, packed here if the type is narrower than a byte.
   * For zero points and other small tensors. Not for FLOAT: use {@link #fromFloats}.
   */
  public static Tensor fromInts(DataType type, int[] values, long... shape) {
    ElementType element = ElementType.of(type);
    if (type == DataType.DATA_TYPE_FLOAT) {
      throw new IllegalArgumentException(type + " is made of floats: fromFloats");
    }
    requireElements(values.length, shape);
    ByteBuffer bytes = allocate(element.bytes(values.length), 1);
    for (int i = 0; i < values.length; i++) {
      if (values[i] < element.least() || values[i] > element.most()) {
        throw new IllegalArgumentException(
            "element " + i + " is " + values[i] + ", " + type + " takes " + element.least() + " to " + element.most());
      }
      element.put(bytes, i, values[i]);
    }
    return of(type, bytes, shape);
  }

  /** The elements of a FLOAT tensor: one copy. */
  public static float[] toFloats(Tensor tensor) {
    if (tensor.getDataType() != DataType.DATA_TYPE_FLOAT) {
      throw new IllegalArgumentException("the tensor is " + tensor.getDataType() + ", not " + DataType.DATA_TYPE_FLOAT);
    }
    ByteBuffer bytes = toBuffer(tensor);
    float[] values = new float[bytes.remaining() / Float.BYTES];
    bytes.asFloatBuffer().get(values);
    return values;
  }

  /** The bytes of a tensor, such as an INT8 one's elements: one copy. Types narrower than a byte are packed. */
  public static byte[] toBytes(Tensor tensor) {
    return raw(tensor).toByteArray();
  }

  /** The bytes of a tensor without a copy, read only, little endian; the received message's memory. */
  public static ByteBuffer toBuffer(Tensor tensor) {
    // A slice, because the bytes of a part of an array do not begin at index 0.
    return raw(tensor).asReadOnlyByteBuffer().slice().order(ByteOrder.LITTLE_ENDIAN);
  }

  /** The elements of an integer tensor, or a floating-point type's codes: one per element, unpacked. Not for FLOAT. */
  public static int[] toInts(Tensor tensor) {
    DataType type = tensor.getDataType();
    if (type == DataType.DATA_TYPE_FLOAT) {
      throw new IllegalArgumentException("the tensor is " + type + ": toFloats");
    }
    ByteBuffer bytes = toBuffer(tensor);
    ElementType element = ElementType.of(type);
    long elements = elements(shapeOf(tensor));
    if (elements > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException("the tensor has " + elements + " elements, more than an array can: toBuffer");
    }
    int[] values = new int[(int) elements];
    for (int i = 0; i < values.length; i++) {
      values[i] = element.get(bytes, i);
    }
    return values;
  }

  private static ByteString raw(Tensor tensor) {
    if (tensor.getContentsCase() != Tensor.ContentsCase.RAW_DATA
        && tensor.getContentsCase() != Tensor.ContentsCase.CONTENTS_NOT_SET) {
      throw new IllegalArgumentException("the tensor has " + tensor.getContentsCase() + ", not RAW_DATA");
    }
    long expected = ElementType.of(tensor.getDataType()).bytes(elements(shapeOf(tensor)));
    ByteString bytes = tensor.getRawData();
    if (bytes.size() != expected) {
      throw new IllegalArgumentException("raw_data has " + bytes.size() + " bytes, " + tensor.getDataType() + " of shape "
          + tensor.getShapeList() + " takes " + expected);
    }
    return bytes;
  }

  private static long[] shapeOf(Tensor tensor) {
    return tensor.getShapeList().stream().mapToLong(Long::longValue).toArray();
  }

  private static Tensor of(DataType type, ByteBuffer bytes, long[] shape) {
    Tensor.Builder tensor = Tensor.newBuilder().setDataType(type);
    for (long length : shape) {
      tensor.addShape(length);
    }
    return tensor.setRawData(UnsafeByteOperations.unsafeWrap(bytes)).build();
  }

  private static ByteBuffer allocate(long elements, int size) {
    if (elements * size > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(elements + " times " + size + " bytes are more than the 2 GiB of a message");
    }
    return ByteBuffer.allocate((int) (elements * size)).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static void requireElements(long given, long[] shape) {
    if (elements(shape) != given) {
      throw new IllegalArgumentException(
          "shape " + Arrays.toString(shape) + " has " + elements(shape) + " elements, " + given + " are given");
    }
  }

  private static long elements(long[] shape) {
    long elements = 1;
    boolean empty = false;
    boolean overflows = false;
    for (int i = 0; i < shape.length; i++) {
      if (shape[i] < 0) {
        throw new IllegalArgumentException("shape[" + i + "] is " + shape[i] + ", must be 0 or more");
      }
      empty |= shape[i] == 0;
      overflows |= Math.multiplyHigh(elements, shape[i]) != 0 || elements * shape[i] < 0;
      elements *= shape[i];
    }
    if (empty) {
      return 0;
    }
    if (overflows) {
      throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has more than 2^63 elements");
    }
    return elements;
  }
}
