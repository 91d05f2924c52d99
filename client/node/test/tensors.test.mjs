// Typed arrays to tensors and back, without a server.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fromFloat32Array, fromTypedArray, toTypedArray} from 'quantd';

const came = (tensor) => ({...tensor, rawData: Buffer.from(tensor.rawData)});

test('a tensor is a view, not a copy', () => {
  const x = new Float32Array(new ArrayBuffer(40), 8, 6);
  const tensor = fromFloat32Array(x, [2, 3]);
  assert.equal(tensor.rawData.buffer, x.buffer);
  assert.equal(tensor.rawData.byteOffset, 8);
  assert.equal(tensor.rawData.length, 24);
  const back = toTypedArray(tensor);
  assert.equal(back.buffer, x.buffer);
  assert.deepEqual(fromFloat32Array(x).shape, [6]);
});

test('types narrower than a byte are packed, lowest bits first', () => {
  const table = [
    ['DATA_TYPE_INT4', Int8Array.of(-8, 7, -1), [0x78, 0x0f]],
    ['DATA_TYPE_UINT4', Uint8Array.of(15, 0, 9), [0x0f, 0x09]],
    ['DATA_TYPE_FLOAT4E2M1', Uint8Array.of(1, 8), [0x81]],
    // By hand, from the OCP Microscaling specification and ONNX's order of bits: 1, -1.5, 7.5, -0.125, -7.5; and
    // 1, 28, -0.0625, 0.25, -3, -28, 0.0625.
    ['DATA_TYPE_FLOAT6E2M3', Uint8Array.of(8, 44, 31, 33, 63), [0x08, 0xfb, 0x85, 0x3f]],
    ['DATA_TYPE_FLOAT6E3M2', Uint8Array.of(12, 31, 33, 4, 50, 63, 1), [0xcc, 0x17, 0x12, 0xf2, 0x1f, 0]],
    ['DATA_TYPE_INT2', Int8Array.of(-2, 1, -1, 0, 1), [0b00110110, 0b01]],
    ['DATA_TYPE_UINT2', Uint8Array.of(3, 0, 2), [0b100011]],
    ['DATA_TYPE_INT4', new Int8Array(0), []],
  ];
  for (const [type, elements, bytes] of table) {
    const tensor = fromTypedArray(type, elements);
    assert.deepEqual([...tensor.rawData], bytes, type);
    assert.deepEqual(toTypedArray(came(tensor)), elements, type);
  }
  // Every place that an element of six bits can have, alone among zeros.
  for (let at = 0; at < 9; at++) {
    const elements = new Uint8Array(9);
    elements[at] = 63;
    assert.deepEqual(toTypedArray(came(fromTypedArray('DATA_TYPE_FLOAT6E3M2', elements))), elements);
  }
  assert.throws(() => fromTypedArray('DATA_TYPE_FLOAT6E2M3', Uint8Array.of(64)), /element 0 is 64, DATA_TYPE_FLOAT6E2M3 takes 0 to 63/);
  assert.throws(() => toTypedArray({dataType: 'DATA_TYPE_FLOAT6E2M3', shape: [7], rawData: Buffer.alloc(5)}), /5 bytes, 7 elements .* 6$/);
  // The unused bits may contain anything.
  assert.deepEqual(toTypedArray({dataType: 'DATA_TYPE_FLOAT6E3M2', shape: [1], rawData: Buffer.of(0xff)}), Uint8Array.of(63));
  assert.deepEqual(toTypedArray({dataType: 'DATA_TYPE_UINT4', shape: [1], rawData: Buffer.of(0xf3)}), Uint8Array.of(3));
  assert.throws(() => fromTypedArray('DATA_TYPE_INT4', Int8Array.of(0, 8)), /element 1 is 8, DATA_TYPE_INT4 takes -8 to 7/);
  assert.throws(() => fromTypedArray('DATA_TYPE_UINT2', Uint8Array.of(4)), /element 0 is 4, DATA_TYPE_UINT2 takes 0 to 3/);
});

test('every type comes back, wherever it lies', () => {
  for (const [type, array] of [
    ['DATA_TYPE_FLOAT', Float32Array.of(1, -2.5, NaN)], ['DATA_TYPE_INT32', Int32Array.of(-1, 1 << 30)], ['DATA_TYPE_INT16', Int16Array.of(-2, 3)],
    ['DATA_TYPE_UINT16', Uint16Array.of(65535)], ['DATA_TYPE_FLOAT16', Uint16Array.of(0x3c00)], ['DATA_TYPE_INT8', Int8Array.of(-128, 127)],
    ['DATA_TYPE_FLOAT8E4M3FN', Uint8Array.of(0x80, 1)],
  ]) {
    const bytes = Buffer.from(fromTypedArray(type, array).rawData);
    for (let offset = 0; offset < 4; offset++) {
      const memory = Buffer.alloc(bytes.length + 8, 0xee);
      bytes.copy(memory, offset);
      const back = toTypedArray({dataType: type, shape: [array.length], rawData: memory.subarray(offset, offset + bytes.length)});
      assert.deepEqual(back, array, `${type} at ${offset}`);
    }
  }
});

test('what does not fit is refused, with both numbers', () => {
  const x = new Float32Array(6);
  assert.throws(() => fromFloat32Array(x, [2, 2]), /shape \[2, 2\] has 4 elements, the array has 6/);
  assert.throws(() => fromFloat32Array(x, [-2, -3]), /shape\[0\] is -2/);
  assert.throws(() => fromFloat32Array(x, [1.5, 4]), /shape\[0\] is 1\.5/);
  assert.throws(() => fromFloat32Array([1, 2]), /DATA_TYPE_FLOAT is made of Float32Array, not of Array/);
  assert.throws(() => fromFloat32Array(new Float64Array(1)), /not of Float64Array; Float32Array\.from\(values\)/);
  assert.throws(() => fromTypedArray('DATA_TYPE_INT8', new Uint8Array(1)), /Int8Array, not of Uint8Array/);
  assert.throws(() => fromTypedArray('INT8', new Int8Array(1)), /dataType is INT8, must be a name of DataType/);
  // Nor a name that every object has.
  for (const name of ['constructor', 'toString', '__proto__', 'DATA_TYPE_UNSPECIFIED', undefined]) {
    assert.throws(() => fromTypedArray(name, new Int8Array(1)), /dataType is .* must be a name/);
  }
  assert.throws(() => toTypedArray({dataType: 'DATA_TYPE_FLOAT', shape: [2], rawData: Buffer.alloc(7)}), /7 bytes, 2 elements .* 8/);
  assert.throws(() => toTypedArray({dataType: 'DATA_TYPE_UINT8', shape: [1], intValues: {values: [1]}, contents: 'intValues'}), /intValues/);
  assert.throws(() => toTypedArray(null), /no tensor/);
  // 2^40 and 2^52 are numbers, their product is not exact; a length of 0 makes any shape empty.
  assert.throws(() => fromFloat32Array(x, [2 ** 40, 2 ** 52]), /more than 2\^53 elements/);
  assert.deepEqual(toTypedArray({dataType: 'DATA_TYPE_INT4', shape: [...new Array(30).fill(2 ** 52), 0]}), new Int8Array(0));
  assert.deepEqual(toTypedArray({dataType: 'DATA_TYPE_FLOAT', shape: [0, 3]}), new Float32Array(0));
});
