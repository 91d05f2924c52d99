package quantd.client;

import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.ManagedChannelBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import quantd.v1.DataType;
import quantd.v1.Tensor;

/**
 * What a Java program needs beside the stubs that grpc-java generates ({@code quantd.v1}): a channel with the right settings, and
 * tensors of arrays.
 *
 * <pre>{@code
 * ManagedChannel channel = Quantd.channel("127.0.0.1:50051", InsecureChannelCredentials.create()).build();
 * var quantd = QuantizationServiceGrpc.newBlockingStub(channel);
 * var answer = quantd.withDeadlineAfter(10, SECONDS).dynamicQuantize(request);
 * int[] codes = Quantd.toInts(answer.getY());
 * }</pre>
 */
public final class Quantd {
  // How much of a call's request gRPC keeps until it is answered, so that it can be sent again. With its default, 1 MiB, large
  // requests, which an overloaded server refuses first, would not be tried again.
  private static final long RETRY_BYTES_A_CALL = 64L << 20;
  private static final long RETRY_BYTES = 256L << 20;

  private Quantd() {}

  /**
   * A channel builder for gRPC's target, with messages of any size (the server has the limit), round robin over all servers of a
   * name, and up to five attempts of a call that fails with UNAVAILABLE. What is set on it afterwards overrides that.
   */
  public static ManagedChannelBuilder<?> channel(String target, ChannelCredentials credentials) {
    return Grpc.newChannelBuilder(target, credentials)
        .maxInboundMessageSize(Integer.MAX_VALUE)
        .defaultServiceConfig(serviceConfig())
        .enableRetry()
        .perRpcBufferLimit(RETRY_BYTES_A_CALL)
        .retryBufferSize(RETRY_BYTES);
  }

  /** deploy/service_config.json, which the build copies beside this class, in the form that gRPC takes. */
  @SuppressWarnings("unchecked") // keys of JSON objects are strings
  private static Map<String, ?> serviceConfig() {
    try (InputStream stream = Quantd.class.getResourceAsStream("service_config.json")) {
      return new Gson().fromJson(new String(stream.readAllBytes(), StandardCharsets.UTF_8), Map.class);
    } catch (IOException e) {
      throw new IllegalStateException("service_config.json in the jar: " + e.getMessage(), e);
    }
  }

  /**
   * Describes the elements of a data type. Element i of a tensor is in the bits {@code bits * i} to {@code bits * (i + 1) - 1} of its
   * bytes, read as one little-endian bit string.
   */
  private record Element(int bits, boolean signed) {
    /** It has no default, so that a missing type is an error of the compiler. */
    static Element of(DataType type) {
      return switch (type) {
        case DATA_TYPE_FLOAT -> new Element(32, false);
        case DATA_TYPE_INT32 -> new Element(32, true);
        case DATA_TYPE_INT16 -> new Element(16, true);
        case DATA_TYPE_UINT16, DATA_TYPE_FLOAT16, DATA_TYPE_BFLOAT16 -> new Element(16, false);
        case DATA_TYPE_INT8 -> new Element(8, true);
        case DATA_TYPE_UINT8, DATA_TYPE_FLOAT8E4M3FN, DATA_TYPE_FLOAT8E4M3FNUZ, DATA_TYPE_FLOAT8E5M2, DATA_TYPE_FLOAT8E5M2FNUZ,
            DATA_TYPE_FLOAT8E8M0 ->
          new Element(8, false);
        case DATA_TYPE_FLOAT6E2M3, DATA_TYPE_FLOAT6E3M2 -> new Element(6, false);
        case DATA_TYPE_INT4 -> new Element(4, true);
        case DATA_TYPE_UINT4, DATA_TYPE_FLOAT4E2M1 -> new Element(4, false);
        case DATA_TYPE_INT2 -> new Element(2, true);
        case DATA_TYPE_UINT2 -> new Element(2, false);
        case DATA_TYPE_UNSPECIFIED -> throw new IllegalArgumentException("data_type is not set");
        case UNRECOGNIZED -> throw new IllegalArgumentException("data_type is a number that this client does not know");
      };
    }

    /** The number of bytes of this many elements; the last byte may have unused bits. */
    long bytes(long elements) {
      try {
        return Math.addExact(Math.multiplyExact(elements / 8, bits), (elements % 8 * bits + 7) / 8);
      } catch (ArithmeticException e) {
        throw new IllegalArgumentException(elements + " elements of " + bits + " bits are more than any message holds", e);
      }
    }

    long least() {
      return signed ? -(1L << (bits - 1)) : 0;
    }

    long most() {
      return (1L << (signed ? bits - 1 : bits)) - 1;
    }
  }

  /**
   * A tensor of a buffer's remaining bytes, in the form that {@link DataType} describes. Nothing is copied: the buffer must not
   * change until the call is over. The shape is the length of each dimension, outermost first; without one it is a 0-D tensor.
   */
  public static Tensor fromBytes(DataType type, ByteBuffer bytes, long... shape) {
    Tensor.Builder tensor = Tensor.newBuilder().setDataType(type);
    for (long length : shape) {
      tensor.addShape(length);
    }
    Tensor made = tensor.setRawData(UnsafeByteOperations.unsafeWrap(bytes)).build();
    toBytes(made); // the number of bytes is that of the shape
    return made;
  }

  /** A FLOAT tensor of a row-major array: one copy. */
  public static Tensor fromFloats(float[] values, long... shape) {
    ByteBuffer bytes = allocate((long) values.length * Float.BYTES);
    bytes.asFloatBuffer().put(values);
    return fromBytes(DataType.DATA_TYPE_FLOAT, bytes, shape);
  }

  /**
   * A tensor of integers, or of the codes of a floating-point type (the bits of an element, not its value): one per element of the
   * array, packed here if the type is narrower than a byte. Not for FLOAT: use {@link #fromFloats}.
   */
  public static Tensor fromInts(DataType type, int[] values, long... shape) {
    Element element = Element.of(type);
    refuseFloat(type, "fromFloats");
    ByteBuffer bytes = allocate(element.bytes(values.length));
    for (int i = 0; i < values.length; i++) {
      if (values[i] < element.least() || values[i] > element.most()) {
        throw new IllegalArgumentException(
            "element " + i + " is " + values[i] + ", " + type + " holds " + element.least() + " to " + element.most());
      }
      long bit = (long) i * element.bits();
      // The first element is in the lowest bits; one of 6 bits may go on in the next byte.
      long code = (values[i] & ((1L << element.bits()) - 1)) << (int) (bit % 8);
      for (int at = (int) (bit / 8); code != 0; at++, code >>>= 8) {
        bytes.put(at, (byte) (bytes.get(at) | code));
      }
    }
    return fromBytes(type, bytes, shape);
  }

  /** The elements of a FLOAT tensor: one copy. */
  public static float[] toFloats(Tensor tensor) {
    if (tensor.getDataType() != DataType.DATA_TYPE_FLOAT) {
      throw new IllegalArgumentException("the tensor is " + tensor.getDataType() + ", not FLOAT: toInts");
    }
    ByteBuffer bytes = toBytes(tensor);
    float[] values = new float[bytes.remaining() / Float.BYTES];
    bytes.asFloatBuffer().get(values);
    return values;
  }

  /** The elements of an integer tensor, or the codes of a floating-point one: one per element, unpacked. Not for FLOAT. */
  public static int[] toInts(Tensor tensor) {
    refuseFloat(tensor.getDataType(), "toFloats");
    ByteBuffer bytes = toBytes(tensor);
    Element element = Element.of(tensor.getDataType());
    long elements = elements(tensor);
    if (elements > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException("the tensor has " + elements + " elements, more than an array can: toBytes");
    }
    int[] values = new int[(int) elements];
    for (int i = 0; i < values.length; i++) {
      long bit = (long) i * element.bits();
      int shift = (int) (bit % 8);
      long code = 0;
      for (int read = 0; read < shift + element.bits(); read += 8) {
        code |= (bytes.get((int) (bit / 8) + read / 8) & 0xFFL) << read;
      }
      // Shifting to the top of 32 bits and back repeats the sign or fills with 0.
      int up = 32 - element.bits();
      int value = (int) (code >>> shift) << up;
      values[i] = element.signed() ? value >> up : value >>> up;
    }
    return values;
  }

  /** The bytes of a tensor: the received message's memory, read only, little endian. Types narrower than a byte are packed. */
  public static ByteBuffer toBytes(Tensor tensor) {
    if (tensor.getContentsCase() != Tensor.ContentsCase.RAW_DATA
        && tensor.getContentsCase() != Tensor.ContentsCase.CONTENTS_NOT_SET) {
      throw new IllegalArgumentException("the tensor has " + tensor.getContentsCase() + ", not RAW_DATA");
    }
    long expected = Element.of(tensor.getDataType()).bytes(elements(tensor));
    ByteString bytes = tensor.getRawData();
    if (bytes.size() != expected) {
      throw new IllegalArgumentException("raw_data has " + bytes.size() + " bytes, " + tensor.getDataType() + " of shape "
          + tensor.getShapeList() + " takes " + expected);
    }
    // A slice, because the bytes of a part of an array do not begin at index 0.
    return bytes.asReadOnlyByteBuffer().slice().order(ByteOrder.LITTLE_ENDIAN);
  }

  private static void refuseFloat(DataType type, String instead) {
    if (type == DataType.DATA_TYPE_FLOAT) {
      throw new IllegalArgumentException(type + " is made of floats: " + instead);
    }
  }

  private static ByteBuffer allocate(long bytes) {
    if (bytes > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(bytes + " bytes are more than the 2 GiB of a message");
    }
    return ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static long elements(Tensor tensor) {
    long[] shape = tensor.getShapeList().stream().mapToLong(Long::longValue).toArray();
    if (Arrays.stream(shape).anyMatch(length -> length < 0)) {
      throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has a negative length");
    }
    try {
      return Arrays.stream(shape).anyMatch(length -> length == 0) ? 0 : Arrays.stream(shape).reduce(1, Math::multiplyExact);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("shape " + Arrays.toString(shape) + " has more than 2^63 elements", e);
    }
  }
}
