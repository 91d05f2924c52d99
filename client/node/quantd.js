// What a Node program needs beside gRPC: connect(), whose calls are promises, and tensors of typed arrays.
//
//   const client = connect('127.0.0.1:50051');
//   const {y, yScale} = await client.dynamicQuantize({x: tensor(floats, [1000, 768]), outputType: 'INT8', axis: 0});
//   const codes = values(y); // Int8Array

'use strict';

const os = require('node:os');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

if (os.endianness() !== 'LE') throw new Error('quantd: typed arrays are sent as they are, so this client needs a little-endian machine');

// `npm ci` and `npm pack` copy the contract and the service config here.
const definition = loader.loadSync('quantd/v1/quantization.proto',
  {includeDirs: [path.join(__dirname, 'proto')], longs: Number, enums: String, defaults: true, oneofs: true});
const service = definition['quantd.v1.QuantizationService'];
const Stub = grpc.loadPackageDefinition(definition).quantd.v1.QuantizationService;

/**
 * A client of gRPC's target `address`. Its methods are those of the contract that have one answer, in camelCase, each
 * `(request, {timeoutMs, signal, metadata})` and a promise of the answer. `stub` is the generated client, for `stream` and the rest.
 *
 * `credentials` are gRPC's: grpc.credentials.createSsl(ca) for TLS. Channel options override those of this function.
 */
function connect(address, {credentials = grpc.credentials.createInsecure(), ...channelOptions} = {}) {
  const stub = new Stub(address, credentials, {
    // The server has the limit (--max_message_bytes); gRPC's own, 4 MiB, is below many tensors.
    'grpc.max_send_message_length': -1,
    'grpc.max_receive_message_length': -1,
    // Up to five attempts of a call that fails with UNAVAILABLE, also if its request is larger than gRPC's 1 MiB.
    'grpc.service_config': JSON.stringify(require('./service_config.json')),
    'grpc.service_config_disable_resolution': 1,
    'grpc.per_rpc_retry_buffer_size': 64 << 20,
    'grpc.retry_buffer_size': 256 << 20,
    // With HTTP/2's 64 KiB, the server could send no more than that per round trip.
    'grpc-node.flow_control_window': 8 << 20,
    ...channelOptions,
  });
  const client = {stub, close: () => stub.close()};
  for (const [name, method] of Object.entries(service)) {
    if (method.requestStream || method.responseStream) continue;
    const type = method.requestType.type.name;
    client[name[0].toLowerCase() + name.slice(1)] = async (request = {}, {timeoutMs, signal, metadata = {}} = {}) => {
      signal?.throwIfAborted();
      const headers = new grpc.Metadata();
      for (const [key, value] of Object.entries(metadata)) headers.set(key, value);
      const deadline = timeoutMs === undefined ? {} : {deadline: Date.now() + timeoutMs};
      const message = checked(type, request, '');
      return new Promise((resolve, reject) => {
        const abort = () => call.cancel();
        const call = stub[name](message, headers, deadline, (error, answer) => {
          signal?.removeEventListener('abort', abort);
          if (error) reject(signal?.aborted ? signal.reason : error);
          else resolve(answer);
        });
        signal?.addEventListener('abort', abort);
      });
    };
  }
  return client;
}

// The messages and enumerations of the contract. proto-loader silently ignores unknown fields and unknown names of values, so they
// are checked here.
const messages = new Map();
const enums = new Map();
for (const [name, {format, type}] of Object.entries(definition)) {
  const short = name.replace('quantd.v1.', '');
  if (format === 'Protocol Buffer 3 DescriptorProto') {
    messages.set(short, {fields: new Map(type.field.map((field) => [field.name, field])), oneofs: new Set(type.oneofDecl.map((o) => o.name))});
  } else if (format === 'Protocol Buffer 3 EnumDescriptorProto') {
    enums.set(short, type.value.map((value) => value.name));
  }
}

// As numpy, torch, safetensors and papers call them: the same names as in quantctl and Python.
const ALIASES = {
  FLOAT32: 'FLOAT', FP32: 'FLOAT', F32: 'FLOAT', HALF: 'FLOAT16', FP16: 'FLOAT16', F16: 'FLOAT16', BF16: 'BFLOAT16', FP8: 'FLOAT8E4M3FN',
  E4M3: 'FLOAT8E4M3FN', E4M3FN: 'FLOAT8E4M3FN', FP8E4M3: 'FLOAT8E4M3FN', FP8E4M3FN: 'FLOAT8E4M3FN', FLOAT8E4M3: 'FLOAT8E4M3FN',
  E4M3FNUZ: 'FLOAT8E4M3FNUZ', E5M2: 'FLOAT8E5M2', FP8E5M2: 'FLOAT8E5M2', E5M2FNUZ: 'FLOAT8E5M2FNUZ', E8M0: 'FLOAT8E8M0',
  FLOAT8E8M0FNU: 'FLOAT8E8M0', E2M3: 'FLOAT6E2M3', FP6E2M3: 'FLOAT6E2M3', FLOAT6E2M3FN: 'FLOAT6E2M3', E3M2: 'FLOAT6E3M2',
  FP6E3M2: 'FLOAT6E3M2', FLOAT6E3M2FN: 'FLOAT6E3M2', FP4: 'FLOAT4E2M1', E2M1: 'FLOAT4E2M1', FP4E2M1: 'FLOAT4E2M1', FLOAT4E2M1FN: 'FLOAT4E2M1',
};
// Types with a scale for a block of the last dimension.
const mx = (outputType, blockSize = 32, scaleType = 'FLOAT8E8M0') => ({outputType, scaleType, blockSize, axis: -1});
const FORMATS = {
  MXFP8: mx('FLOAT8E4M3FN'), MXFP8E5M2: mx('FLOAT8E5M2'), MXFP6E2M3: mx('FLOAT6E2M3'), MXFP6E3M2: mx('FLOAT6E3M2'),
  MXFP4: mx('FLOAT4E2M1'), MXINT8: mx('INT8'), NVFP4: mx('FLOAT4E2M1', 16, 'FLOAT8E4M3FN'),
};
const USUAL = [...Object.keys(ALIASES), ...Object.keys(FORMATS)].map((name) => [name, name.toLowerCase()]);
const bare = (name) => name.toUpperCase().replace(/[^A-Z0-9]/g, '');

/** The contract's name of a value: DATA_TYPE_INT8 of INT8, int8, DATA_TYPE_INT8; also of a type's usual names, such as e4m3. */
function valueOf(type, given, at) {
  const names = enums.get(type);
  if (names.includes(given) || Number.isInteger(given)) return given;
  const prefix = names[0].replace(/[A-Z0-9]+$/, ''); // of DATA_TYPE_UNSPECIFIED
  const short = new Map(names.map((name) => [bare(name.slice(prefix.length)), name]));
  const word = typeof given === 'string' ? bare(given).replace(bare(prefix), '') : '';
  const name = short.get(word) ?? (type === 'DataType' ? short.get(ALIASES[word]) : undefined);
  if (name === undefined) throw new TypeError(`${at} is ${said(given)}, no value of ${type}${suggestion(word, short, type === 'DataType' ? USUAL : [])}`);
  return name;
}

/** ", did you mean ...?" of the closest word, known or usual, else all that are known. */
function suggestion(word, known, usual = []) {
  const distance = (a, b) => {
    let row = Array.from({length: b.length + 1}, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
      row = next;
    }
    return row[b.length];
  };
  let best;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const [name, shown] of word.length > 64 ? [] : [...known, ...usual]) {
    const far = distance(word, name);
    if (far < least && far < name.length) [least, best] = [far, shown];
  }
  return best ? `, did you mean ${best}?` : `: ${[...known.values()].join(', ')}`;
}

function said(value) {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return typeof value === 'object' && value !== null ? value.constructor?.name ?? 'an object' : String(value);
}

/** A copy of a request with the contract's names of values; throws for what would be sent differently from what it means. */
function checked(type, message, path) {
  if (typeof message !== 'object' || message === null || Array.isArray(message) || ArrayBuffer.isView(message)) {
    throw new TypeError(`${path || 'the request'} is ${said(message)}, must be an object: ${type}`);
  }
  const format = type === 'DynamicQuantizeRequest' && typeof message.outputType === 'string' && FORMATS[bare(message.outputType)];
  if (format) message = {...format, ...message, outputType: format.outputType};
  const {fields, oneofs} = messages.get(type);
  const copy = {};
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined || value === null || oneofs.has(name)) continue; // a oneof's name stands in messages that came
    const at = path ? `${path}.${name}` : name;
    const field = fields.get(name);
    if (!field) {
      const known = new Map([...fields.keys()].map((each) => [bare(each), each]));
      throw new TypeError(`${at} is not a field of ${type}${suggestion(bare(name), known)}`);
    }
    if (field.label !== 'LABEL_REPEATED') copy[name] = checkedValue(field, value, at);
    else if (Array.isArray(value)) copy[name] = value.map((each, i) => checkedValue(field, each, `${at}[${i}]`));
    else throw new TypeError(`${at} is ${said(value)}, must be an array`);
  }
  return copy;
}

function checkedValue({type, typeName}, value, at) {
  const must = (right, what) => {
    if (!right) throw new TypeError(`${at} is ${said(value)}, must be ${what}`);
    return value;
  };
  switch (type) {
    case 'TYPE_MESSAGE': return checked(typeName, value, at);
    case 'TYPE_ENUM': return valueOf(typeName, value, at);
    // protobufjs would take each element of any other array for a byte.
    case 'TYPE_BYTES': return must(value instanceof Uint8Array, 'a Uint8Array; tensor() takes other arrays');
    case 'TYPE_BOOL': return must(typeof value === 'boolean', 'true or false');
    case 'TYPE_STRING': return must(typeof value === 'string', 'a string');
    case 'TYPE_FLOAT': case 'TYPE_DOUBLE': return must(typeof value === 'number', 'a number');
    default: return must(Number.isSafeInteger(value) && (value >= 0 || !type.startsWith('TYPE_U')), 'an integer of less than 2^53');
  }
}

// Element i of a tensor is in the bits `bits * i` to `bits * (i + 1) - 1` of rawData, read as one little-endian bit string.
const ELEMENTS = {
  FLOAT: [Float32Array, 32], INT32: [Int32Array, 32], INT16: [Int16Array, 16], UINT16: [Uint16Array, 16], FLOAT16: [Uint16Array, 16],
  BFLOAT16: [Uint16Array, 16], INT8: [Int8Array, 8], UINT8: [Uint8Array, 8], FLOAT8E4M3FN: [Uint8Array, 8],
  FLOAT8E4M3FNUZ: [Uint8Array, 8], FLOAT8E5M2: [Uint8Array, 8], FLOAT8E5M2FNUZ: [Uint8Array, 8], FLOAT8E8M0: [Uint8Array, 8],
  FLOAT6E2M3: [Uint8Array, 6], FLOAT6E3M2: [Uint8Array, 6], INT4: [Int8Array, 4], UINT4: [Uint8Array, 4], FLOAT4E2M1: [Uint8Array, 4],
  INT2: [Int8Array, 2], UINT2: [Uint8Array, 2],
};

function elementOf(dataType) {
  const [array, bits] = ELEMENTS[String(valueOf('DataType', dataType, 'dataType')).replace('DATA_TYPE_', '')] ?? [];
  if (!array) throw new TypeError(`dataType is ${said(dataType)}, which has no elements that this client knows`);
  return {array, bits};
}

// The bytes of the elements; the last byte may have unused bits. No operators of 32 bits: large tensors have more than 2^31 bits.
const bytesOf = (elements, bits) => Math.floor(elements / 8) * bits + Math.ceil((elements % 8) * bits / 8);
const elementsOf = (shape) => (shape.includes(0) ? 0 : shape.reduce((product, length) => product * length, 1));

/**
 * A tensor of a row-major typed array: a Float32Array of FLOAT, an Int8Array of INT8, INT4 and INT2, a Uint8Array of UINT8, UINT4,
 * UINT2 and the codes of floating-point types of at most 8 bits, a Uint16Array of the bits of FLOAT16 and BFLOAT16. Types narrower
 * than a byte have one entry per element, and are packed here. Others are a view of the array: change it after the call was made.
 */
function tensor(array, shape = [array.length], dataType = 'FLOAT') {
  const {array: Wanted, bits} = elementOf(dataType);
  if (!(array instanceof Wanted)) throw new TypeError(`${dataType} is made of ${Wanted.name}, not of ${said(array)}`);
  if (elementsOf(shape) !== array.length) throw new RangeError(`shape is [${shape}], the array has ${array.length} elements`);
  let rawData = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  if (bits < 8) {
    rawData = new Uint8Array(bytesOf(array.length, bits));
    const least = Wanted === Int8Array ? -(1 << (bits - 1)) : 0;
    for (let i = 0; i < array.length; i++) {
      if (array[i] < least || array[i] >= least + (1 << bits)) {
        throw new RangeError(`element ${i} is ${array[i]}, ${dataType} holds ${least} to ${least + (1 << bits) - 1}`);
      }
      const byte = Math.floor(i * bits / 8);
      const code = (array[i] & ((1 << bits) - 1)) << (i * bits % 8);
      rawData[byte] |= code;
      if (code > 0xff) rawData[byte + 1] |= code >> 8; // the element goes on in the next byte
    }
  }
  return {dataType, shape: [...shape], rawData};
}

/** The elements of a received tensor, in the array that tensor() takes for its type: a view of the message, or a copy. */
function values({dataType, shape, rawData = Buffer.alloc(0), ...others}) {
  const {array: Wanted, bits} = elementOf(dataType);
  const count = elementsOf(shape);
  if (others.floatValues || others.intValues || others.sharedMemory) throw new TypeError(`the tensor has ${others.contents}, not rawData`);
  if (rawData.length !== bytesOf(count, bits)) {
    throw new RangeError(`rawData has ${rawData.length} bytes, ${dataType} of shape [${shape}] takes ${bytesOf(count, bits)}`);
  }
  if (bits >= 8) {
    const aligned = rawData.byteOffset % (bits / 8) === 0 ? rawData : Uint8Array.from(rawData);
    return new Wanted(aligned.buffer, aligned.byteOffset, count);
  }
  const elements = new Wanted(count);
  for (let i = 0; i < count; i++) {
    const byte = Math.floor(i * bits / 8);
    // Shifting to the top of 32 bits and back repeats the sign or fills with 0. A byte past the end has no bits of the element.
    const code = ((rawData[byte] | ((rawData[byte + 1] ?? 0) << 8)) >> (i * bits % 8)) << (32 - bits);
    elements[i] = Wanted === Int8Array ? code >> (32 - bits) : code >>> (32 - bits);
  }
  return elements;
}

exports.connect = connect;
exports.tensor = tensor;
exports.values = values;
exports.grpc = grpc;
