package quantd.client;

import java.nio.ByteBuffer;
import quantd.v1.DataType;

/**
 * Describes the elements of a data type. Element i of a tensor is in the bits {@code bits * i} to {@code bits * (i + 1) - 1} of its
 * bytes, read as one little-endian bit string, whether bits is a multiple of 8, a divisor of it or, as 6 is, neither. Sizes,
 * ranges, packing and unpacking follow from this description alone.
 */
record ElementType(int bits, boolean signed) {
  /** The description of a type. It has no default, so that a missing type is an error of the compiler. */
  static ElementType of(DataType type) {
    return switch (type) {
      case DATA_TYPE_FLOAT -> new ElementType(32, false);
      case DATA_TYPE_INT32 -> new ElementType(32, true);
      case DATA_TYPE_INT16 -> new ElementType(16, true);
      case DATA_TYPE_UINT16, DATA_TYPE_FLOAT16, DATA_TYPE_BFLOAT16 -> new ElementType(16, false);
      case DATA_TYPE_INT8 -> new ElementType(8, true);
      case DATA_TYPE_UINT8, DATA_TYPE_FLOAT8E4M3FN, DATA_TYPE_FLOAT8E4M3FNUZ, DATA_TYPE_FLOAT8E5M2, DATA_TYPE_FLOAT8E5M2FNUZ,
          DATA_TYPE_FLOAT8E8M0 ->
        new ElementType(8, false);
      case DATA_TYPE_FLOAT6E2M3, DATA_TYPE_FLOAT6E3M2 -> new ElementType(6, false);
      case DATA_TYPE_INT4 -> new ElementType(4, true);
      case DATA_TYPE_UINT4, DATA_TYPE_FLOAT4E2M1 -> new ElementType(4, false);
      case DATA_TYPE_INT2 -> new ElementType(2, true);
      case DATA_TYPE_UINT2 -> new ElementType(2, false);
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

  /** The least integer, or code, that an element holds. */
  long least() {
    return signed ? -(1L << (bits - 1)) : 0;
  }

  /** The greatest one. */
  long most() {
    return (1L << (signed ? bits - 1 : bits)) - 1;
  }

  /** Puts element i into little-endian bytes, whose bits there are 0. The value is least() to most(). */
  void put(ByteBuffer bytes, int i, int value) {
    long bit = (long) i * bits;
    long code = (value & mask()) << (int) (bit % 8);
    for (int at = (int) (bit / 8); code != 0; at++, code >>>= 8) {
      bytes.put(at, (byte) (bytes.get(at) | code));
    }
  }

  /** Element i, with its sign if the type has one. */
  int get(ByteBuffer bytes, int i) {
    long bit = (long) i * bits;
    int shift = (int) (bit % 8);
    long code = 0;
    for (int read = 0; read < shift + bits; read += 8) {
      code |= (bytes.get((int) (bit / 8) + read / 8) & 0xFFL) << read;
    }
    // Shifting to the top of 32 bits and back repeats the sign or fills with 0.
    int up = 32 - bits;
    int value = (int) (code >>> shift) << up;
    return signed ? value >> up : value >>> up;
  }

  private long mask() {
    return (1L << bits) - 1;
  }
}
