// Tensors of typed arrays and back. On the wire elements are little endian, row-major; types narrower than a byte are packed,
// lowest bits first.

import * as os from 'node:os';
import type {DataType} from './generated/quantd/v1/DataType.js';
import type {Tensor, Tensor__Output} from './generated/quantd/v1/Tensor.js';

/** What the elements of a tensor come as. */
export type TensorArray = Float32Array | Int32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

type DataTypeName = Extract<DataType, string>;
interface Layout {
  array: new (buffer: ArrayBufferLike, offset: number, length: number) => TensorArray;
  bits: number;
}

const LAYOUTS: Partial<Record<DataTypeName, Layout>> = {
  DATA_TYPE_FLOAT: {array: Float32Array, bits: 32},
  DATA_TYPE_INT32: {array: Int32Array, bits: 32},
  DATA_TYPE_INT16: {array: Int16Array, bits: 16},
  DATA_TYPE_UINT16: {array: Uint16Array, bits: 16},
  DATA_TYPE_FLOAT16: {array: Uint16Array, bits: 16},
  DATA_TYPE_BFLOAT16: {array: Uint16Array, bits: 16},
  DATA_TYPE_INT8: {array: Int8Array, bits: 8},
  DATA_TYPE_UINT8: {array: Uint8Array, bits: 8},
  DATA_TYPE_FLOAT8E4M3FN: {array: Uint8Array, bits: 8},
  DATA_TYPE_FLOAT8E4M3FNUZ: {array: Uint8Array, bits: 8},
  DATA_TYPE_FLOAT8E5M2: {array: Uint8Array, bits: 8},
  DATA_TYPE_FLOAT8E5M2FNUZ: {array: Uint8Array, bits: 8},
  DATA_TYPE_FLOAT8E8M0: {array: Uint8Array, bits: 8},
  DATA_TYPE_INT4: {array: Int8Array, bits: 4},
  DATA_TYPE_UINT4: {array: Uint8Array, bits: 4},
  DATA_TYPE_FLOAT4E2M1: {array: Uint8Array, bits: 4},
  DATA_TYPE_INT2: {array: Int8Array, bits: 2},
  DATA_TYPE_UINT2: {array: Uint8Array, bits: 2},
};

function layoutOf(dataType: DataType): Layout {
  const layout = LAYOUTS[dataType as DataTypeName];
  if (!layout) throw new TypeError(`${dataType} is no data type with elements`);
  return layout;
}

function count(shape: readonly number[]): number {
  let elements = 1;
  shape.forEach((length, i) => {
    if (!Number.isSafeInteger(length) || length < 0) throw new RangeError(`shape[${i}] is ${length}, must be an integer >= 0`);
    elements *= length;
  });
  return elements;
}

/** The same bytes where the machine is little endian; else a copy with the bytes of each element turned round. */
function littleEndian(bytes: Uint8Array, bits: number): Uint8Array {
  if (os.endianness() === 'LE' || bits <= 8) return bytes;
  const turned = Buffer.from(bytes);
  return bits === 16 ? turned.swap16() : turned.swap32();
}

function pack(elements: TensorArray, bits: number, dataType: DataType): Uint8Array {
  const signed = elements instanceof Int8Array;
  const [least, most] = signed ? [-(1 << (bits - 1)), (1 << (bits - 1)) - 1] : [0, (1 << bits) - 1];
  const perByte = 8 / bits;
  const bytes = new Uint8Array(Math.ceil(elements.length / perByte));
  for (let i = 0; i < elements.length; i++) {
    const value = elements[i]!;
    if (value < least || value > most) {
      throw new RangeError(`element ${i} is ${value}, ${dataType} takes ${least} to ${most}`);
    }
    bytes[Math.floor(i / perByte)]! |= (value & ((1 << bits) - 1)) << ((i % perByte) * bits);
  }
  return bytes;
}

function unpack(bytes: Uint8Array, bits: number, elements: TensorArray): TensorArray {
  const perByte = 8 / bits;
  // Signed types: moved to the top of 32 bits and back, which repeats the sign.
  const up = 32 - bits;
  for (let i = 0; i < elements.length; i++) {
    const code = bytes[Math.floor(i / perByte)]! >> ((i % perByte) * bits);
    elements[i] = elements instanceof Int8Array ? (code << up) >> up : code & ((1 << bits) - 1);
  }
  return elements;
}

/**
 * A tensor of elements that are in a typed array of the data type's own kind: Float32Array for FLOAT, Int8Array for INT8, INT4
 * and INT2, Uint8Array for UINT8, UINT4, UINT2 and the codes of FLOAT8 and FLOAT4, Uint16Array for the bits of FLOAT16 and
 * BFLOAT16. 4 and 2 bits have one element each, and are packed here.
 *
 * The tensor is a view of the array, not a copy (but for packed types): change it only after the call that sends it has been
 * made. `shape` is [array.length] when it is not given; [] is a 0-D tensor of one element.
 */
export function fromTypedArray(dataType: DataType, array: TensorArray, shape: readonly number[] = [array.length]): Tensor {
  const layout = layoutOf(dataType);
  if (!(array instanceof layout.array)) {
    const given = (array as object | null)?.constructor?.name ?? typeof array;
    throw new TypeError(`${dataType} is made of ${layout.array.name}, not of ${given}`);
  }
  if (count(shape) !== array.length) {
    throw new RangeError(`shape [${shape.join(', ')}] has ${count(shape)} elements, the array has ${array.length}`);
  }
  const rawData = layout.bits < 8
    ? pack(array, layout.bits, dataType)
    : littleEndian(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), layout.bits);
  return {dataType, shape: [...shape], rawData};
}

/** A FLOAT tensor: a view of `values`, as fromTypedArray says. */
export function fromFloat32Array(values: Float32Array, shape?: readonly number[]): Tensor {
  return fromTypedArray('DATA_TYPE_FLOAT', values, shape);
}

/**
 * The elements of a tensor that came, in the typed array that fromTypedArray takes for its type: a view of the received message
 * where that is possible, else (4 and 2 bits; 16 and 32 bits that do not lie at a multiple of their size) a copy.
 */
export function toTypedArray(tensor: Tensor__Output | null | undefined): TensorArray {
  if (!tensor) throw new TypeError('there is no tensor');
  const layout = layoutOf(tensor.dataType);
  const elements = count(tensor.shape);
  if (tensor.floatValues || tensor.intValues || tensor.sharedMemory) {
    throw new TypeError(`the tensor has ${tensor.contents ?? 'another form'}, not rawData`);
  }
  let bytes: Uint8Array = tensor.rawData ?? new Uint8Array(0);
  if (bytes.length !== Math.ceil((elements * layout.bits) / 8)) {
    throw new RangeError(`rawData has ${bytes.length} bytes, ${elements} elements of ${tensor.dataType} take ` +
      `${Math.ceil((elements * layout.bits) / 8)}`);
  }
  if (layout.bits < 8) {
    return unpack(bytes, layout.bits, new layout.array(new ArrayBuffer(elements), 0, elements));
  }
  bytes = littleEndian(bytes, layout.bits);
  if (bytes.byteOffset % (layout.bits / 8) !== 0) bytes = Uint8Array.from(bytes);
  return new layout.array(bytes.buffer, bytes.byteOffset, elements);
}
