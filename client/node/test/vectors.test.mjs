// Byte for byte what quantctl computes in its own process: tests/languages/vectors.py makes the file.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import {after, before, test} from 'node:test';
import {connect, DataType, fromTypedArray, toTypedArray} from 'quantd';
import {start} from './quantd.mjs';

const file = process.env.TEST_VECTORS && path.join(process.env.TEST_VECTORS, 'vectors.tsv');
const NAMES = Object.keys(DataType);
let server;
let client;
before(async () => {
  server = await start();
  client = connect(server.address);
});
after(async () => {
  client.close();
  await server.stop();
});

const bytes = (hex) => (hex === '-' ? undefined : Buffer.from(hex, 'hex'));
const numbers = (text) => (text === '-' ? [] : text.split(',').map(Number));
const dataTypes = new Map();
for (const name of NAMES) dataTypes.set(name, name);

function vectors() {
  return fs.readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => {
    const [type, shape, axis, x, y, scale, scaleShape, zeroPoint, back] = line.split('\t');
    return {
      type: Number(type), axis: axis === '-' ? undefined : Number(axis), shape: numbers(shape), scaleShape: numbers(scaleShape),
      x: bytes(x), y: bytes(y), scale: bytes(scale), zeroPoint: bytes(zeroPoint), back: bytes(back), name: `type ${type} [${shape}] axis ${axis}`,
    };
  });
}

test('random tensors of every type, as one scale and by axis, are quantctl\'s bytes', {skip: !file && 'no TEST_VECTORS'}, async () => {
  const all = vectors();
  assert.ok(all.length >= 200, `${all.length} vectors`);
  await Promise.all(all.map(async (v) => {
    const x = {dataType: 'DATA_TYPE_FLOAT', shape: v.shape, rawData: v.x};
    const dynamic = await client.dynamicQuantize({x, outputType: v.type, axis: v.axis});
    assert.deepEqual(dynamic.y.rawData, v.y, v.name);
    assert.deepEqual(dynamic.y.shape, v.shape, v.name);
    assert.deepEqual(dynamic.yScale.rawData, v.scale, v.name);
    assert.deepEqual(dynamic.yScale.shape, v.scaleShape, v.name);
    assert.deepEqual(dynamic.yZeroPoint?.rawData, v.zeroPoint, v.name);
    // A received tensor can be sent again.
    const again = await client.quantize(
      {x, scale: dynamic.yScale, zeroPoint: dynamic.yZeroPoint, outputType: dynamic.y.dataType, axis: v.axis});
    assert.deepEqual(again.y.rawData, v.y, v.name);
    const back = await client.dequantize({x: again.y, scale: dynamic.yScale, zeroPoint: dynamic.yZeroPoint, axis: v.axis});
    assert.deepEqual(back.y.rawData, v.back, v.name);
    // And through typed arrays: unpacked and packed again.
    const array = toTypedArray(again.y);
    assert.deepEqual(Buffer.from(fromTypedArray(again.y.dataType, array, v.shape).rawData), v.y, v.name);
  }));
});
