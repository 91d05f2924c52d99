// Tensors of typed arrays and back. On the wire elements are little endian, row-major; types narrower than a byte are packed,
// lowest bits first.

import * as os from 'node:os';
import type {DataType} from './generated/quantd/v1/DataType.js';
import type {Tensor, Tensor__Output} from './generated/quantd/v1/Tensor.js';

/** The arrays in which elements of a tensor are returned. */
export type TensorArray = Float32Array | Int32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

/**
 * Describes the elements of a data type. Element i of a tensor is in the bits `bits * i` to `bits * (i + 1) - 1` of rawData, read as
 * one little-endian bit string, whether `bits` is a multiple of 8, a divisor of it or, as 6 is, neither. Sizes, packing and
 * unpacking follow from this description alone.
 */
interface ElementType {
  array: new (buffer: ArrayBufferLike, offset: number, length: number) => TensorArray;
  bits: number;
}

// Of every name in the contract: tsc refuses the table when one is missing.
type DataTypeName = Exclude<Extract<DataType, string>, 'DATA_TYPE_UNSPECIFIED'>;
const ELEMENT_TYPES: Readonly<Record<DataTypeName, ElementType>> = {
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
  DATA_TYPE_FLOAT6E2M3: {array: Uint8Array, bits: 6},
  DATA_TYPE_FLOAT6E3M2: {array: Uint8Array, bits: 6},
  DATA_TYPE_INT4: {array: Int8Array, bits: 4},
  DATA_TYPE_UINT4: {array: Uint8Array, bits: 4},
  DATA_TYPE_FLOAT4E2M1: {array: Uint8Array, bits: 4},
  DATA_TYPE_INT2: {array: Int8Array, bits: 2},
  DATA_TYPE_UINT2: {array: Uint8Array, bits: 2},
};

function elementTypeOf(dataType: DataType): ElementType {
  if (!Object.hasOwn(ELEMENT_TYPES, dataType)) {
    throw new TypeError(`dataType is ${String(dataType)}, must be a name of DataType, such as DATA_TYPE_INT8`);
  }
  return ELEMENT_TYPES[dataType as DataTypeName];
}

// Numbers are exact here: a product that is not refused is below 2^53, and no array or message has more bits.
function count(shape: readonly number[]): number {
  shape.forEach((length, i) => {
    if (!Number.isSafeInteger(length) || length < 0) throw new RangeError(`shape[${i}] is ${length}, must be an integer >= 0`);
  });
  if (shape.includes(0)) return 0;
  const elements = shape.reduce((product, length) => product * length, 1);
  if (!Number.isSafeInteger(elements)) throw new RangeError(`shape [${shape.join(', ')}] has more than 2^53 elements`);
  return elements;
}

/** The number of bytes of this many elements; the last byte may have unused bits. */
function bytesOf(elements: number, bits: number): number {
  return Math.floor(elements / 8) * bits + Math.ceil((elements % 8) * bits / 8);
}

/** The same bytes if the machine is little endian; else a copy with the bytes of each element reversed. */
function littleEndian(bytes: Uint8Array, bits: number): Uint8Array {
  if (os.endianness() === 'LE' || bits <= 8) return bytes;
  const turned = Buffer.from(bytes);
  return bits === 16 ? turned.swap16() : turned.swap32();
}

function pack(elements: TensorArray, bits: number, dataType: DataType): Uint8Array {
  const signed = elements instanceof Int8Array;
  const [least, most] = signed ? [-(1 << (bits - 1)), (1 << (bits - 1)) - 1] : [0, (1 << bits) - 1];
  const bytes = new Uint8Array(bytesOf(elements.length, bits));
  for (let i = 0; i < elements.length; i++) {
    const value = elements[i]!;
    if (value < least || value > most) {
      throw new RangeError(`element ${i} is ${value}, ${dataType} takes ${least} to ${most}`);
    }
    const at = i * bits; // beyond 2^31 for large arrays: no operators of 32 bits
    const byte = Math.floor(at / 8);
    const code = (value & ((1 << bits) - 1)) << (at % 8);
    bytes[byte]! |= code;
    if (code > 0xff) bytes[byte + 1]! |= code >> 8; // the element goes on in the next byte
  }
  return bytes;
}

function unpack(bytes: Uint8Array, bits: number, elements: TensorArray): TensorArray {
  const signed = elements instanceof Int8Array;
  const up = 32 - bits;
  for (let i = 0; i < elements.length; i++) {
    const at = i * bits;
    const byte = Math.floor(at / 8);
    // Shifting to the top of 32 bits and back repeats the sign or fills with 0. A byte past the end has no bits of the element.
    const code = ((bytes[byte]! | ((bytes[byte + 1] ?? 0) << 8)) >> (at % 8)) << up;
    elements[i] = signed ? code >> up : code >>> up;
  }
  return elements;
}

/**
 * A tensor of elements in a typed array of the data type's own kind: Float32Array for FLOAT, Int8Array for INT8, INT4
 * and INT2, Uint8Array for UINT8, UINT4, UINT2 and the codes of FLOAT8, FLOAT6 and FLOAT4, Uint16Array for the bits of FLOAT16 and
 * BFLOAT16. Types narrower than a byte have one entry per element, and are packed here.
 *
 * The tensor is a view of the array, not a copy (except for packed types): change it only after the call that sends it has been
 * made. By default, `shape` is [array.length]; [] is a 0-D tensor of one element.
 */
export function fromTypedArray(dataType: DataType, array: TensorArray, shape: readonly number[] = [array.length]): Tensor {
  const element = elementTypeOf(dataType);
  if (!(array instanceof element.array)) {
    const given = (array as object | null)?.constructor?.name ?? typeof array;
    const hint = element.array === Float32Array ? '; Float32Array.from(values) converts numbers' : '';
    throw new TypeError(`${dataType} is made of ${element.array.name}, not of ${given}${hint}`);
  }
  const elements = count(shape);
  if (elements !== array.length) {
    throw new RangeError(`shape [${shape.join(', ')}] has ${elements} elements, the array has ${array.length}`);
  }
  const rawData = element.bits < 8
    ? pack(array, element.bits, dataType)
    : littleEndian(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), element.bits);
  return {dataType, shape: [...shape], rawData};
}

/** A FLOAT tensor: a view of `values`, as fromTypedArray says. */
export function fromFloat32Array(values: Float32Array, shape?: readonly number[]): Tensor {
  return fromTypedArray('DATA_TYPE_FLOAT', values, shape);
}

/**
 * The elements of a received tensor, in the typed array that fromTypedArray takes for its type: a view of the received message
 * if possible, else (types narrower than a byte; 16 and 32 bits that are not aligned to their size) a copy.
 */
export function toTypedArray(tensor: Tensor__Output | null | undefined): TensorArray {
  if (!tensor) throw new TypeError('there is no tensor');
  const element = elementTypeOf(tensor.dataType);
  const elements = count(tensor.shape);
  if (tensor.floatValues || tensor.intValues || tensor.sharedMemory) {
    throw new TypeError(`the tensor has ${tensor.contents ?? 'another form'}, not rawData`);
  }
  let bytes: Uint8Array = tensor.rawData ?? new Uint8Array(0);
  const expected = bytesOf(elements, element.bits);
  if (bytes.length !== expected) {
    throw new RangeError(`rawData has ${bytes.length} bytes, ${elements} elements of ${tensor.dataType} take ${expected}`);
  }
  if (element.bits < 8) {
    return unpack(bytes, element.bits, new element.array(new ArrayBuffer(elements), 0, elements));
  }
  bytes = littleEndian(bytes, element.bits);
  if (bytes.byteOffset % (element.bits / 8) !== 0) bytes = Uint8Array.from(bytes);
  return new element.array(bytes.buffer, bytes.byteOffset, elements);
}
