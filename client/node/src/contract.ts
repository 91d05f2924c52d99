// The contract in the form that grpc-js needs, and a check of callers' messages: proto-loader silently ignores unknown fields, enumeration
// values that do not exist, and fractions in place of integers.

import * as grpc from '@grpc/grpc-js';
import {fromJSON} from '@grpc/proto-loader';
import contract from './generated/contract.json';
import type {ProtoGrpcType} from './generated/quantization.js';

interface Field {
  name: string;
  label: string;
  type: string;
  typeName: string;
}
interface MessageShape {
  field: Field[];
  oneofDecl: {name: string}[];
}

const definition = fromJSON(contract as unknown as Parameters<typeof fromJSON>[0], {longs: Number, enums: String, defaults: true, oneofs: true});

/** The generated stubs. */
export const stubs = grpc.loadPackageDefinition(definition) as unknown as ProtoGrpcType;

const messages = new Map<string, Map<string, Field | null>>();
const enums = new Map<string, Set<string>>();
for (const [name, entry] of Object.entries(definition)) {
  const short = name.replace(/^quantd\.v1\./, '');
  if (entry.format === 'Protocol Buffer 3 DescriptorProto') {
    const shape = entry.type as MessageShape;
    const fields = new Map<string, Field | null>(shape.oneofDecl.map((oneof) => [oneof.name, null]));
    for (const field of shape.field) fields.set(field.name, field);
    messages.set(short, fields);
  } else if (entry.format === 'Protocol Buffer 3 EnumDescriptorProto') {
    enums.set(short, new Set((entry.type as {value: {name: string}[]}).value.map((value) => value.name)));
  }
}

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;
const MAX_UINT64 = 2n ** 64n - 1n;

function said(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object') return value?.constructor?.name ?? 'null';
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value);
}

function checkInteger(field: Field, value: unknown, path: string): void {
  const unsigned = field.type.startsWith('TYPE_U');
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) {
      throw new RangeError(`${path} is ${value}: no integer, or beyond 2^53 (then give a bigint)`);
    }
    if (unsigned && value < 0) throw new RangeError(`${path} is ${value}, must be 0 or more`);
  } else if (typeof value === 'bigint' || (typeof value === 'string' && /^-?\d{1,20}$/.test(value))) {
    const big = BigInt(value);
    if (big < (unsigned ? 0n : MIN_INT64) || big > (unsigned ? MAX_UINT64 : MAX_INT64)) {
      throw new RangeError(`${path} is ${big}, does not fit into ${field.type.slice(5).toLowerCase()}`);
    }
  } else if (!(typeof value === 'object' && value !== null && 'low' in value && 'high' in value)) {
    throw new TypeError(`${path} is ${said(value)}, must be an integer`);
  }
}

function checkValue(field: Field, value: unknown, path: string): void {
  switch (field.type) {
    case 'TYPE_MESSAGE':
      return check(field.typeName, value, path);
    case 'TYPE_ENUM':
      if (typeof value === 'number' ? !Number.isInteger(value) : !enums.get(field.typeName)?.has(value as string)) {
        throw new TypeError(`${path} is ${said(value)}, no value of ${field.typeName}`);
      }
      return;
    case 'TYPE_BYTES':
      // protobufjs would take each element of any other array for a byte.
      if (!(value instanceof Uint8Array)) {
        throw new TypeError(`${path} is ${said(value)}, must be a Uint8Array; fromTypedArray() makes tensors of others`);
      }
      return;
    case 'TYPE_BOOL':
      if (typeof value !== 'boolean') throw new TypeError(`${path} is ${said(value)}, must be true or false`);
      return;
    case 'TYPE_STRING':
      if (typeof value !== 'string') throw new TypeError(`${path} is ${said(value)}, must be a string`);
      return;
    case 'TYPE_FLOAT':
    case 'TYPE_DOUBLE':
      if (typeof value !== 'number') throw new TypeError(`${path} is ${said(value)}, must be a number`);
      return;
    default:
      return checkInteger(field, value, path);
  }
}

/** Throws a TypeError or RangeError that names the field, for values that would be sent differently from what they mean. */
export function check(type: string, message: unknown, path = ''): void {
  if (typeof message !== 'object' || message === null || Array.isArray(message) || ArrayBuffer.isView(message)) {
    throw new TypeError(`${path || 'the request'} is ${said(message)}, must be an object: ${type}`);
  }
  const fields = messages.get(type)!;
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined || value === null) continue;
    const place = path ? `${path}.${name}` : name;
    const field = fields.get(name);
    if (field === undefined) throw new TypeError(`${place} is not a field of ${type}: ${[...fields.keys()].join(', ')}`);
    if (field === null) continue; // the name of a oneof, as it stands in messages that came
    if (field.label !== 'LABEL_REPEATED') {
      checkValue(field, value, place);
    } else if (!Array.isArray(value)) {
      throw new TypeError(`${place} is ${said(value)}, must be an array`);
    } else {
      for (let i = 0; i < value.length; i++) checkValue(field, value[i], `${place}[${i}]`);
    }
  }
}
