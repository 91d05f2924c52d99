// The helper, and byte for byte what quantctl computes in its own process (tests/languages/vectors.py makes the file), over the server
// that ./tests/run.sh clients starts.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import {after, test} from 'node:test';
import {connect, grpc, tensor, values} from 'quantd';

// A client that is not connected yet can still refuse requests.
const client = connect(process.env.QUANTD_ADDRESS ?? '127.0.0.1:1');
const server = {skip: !process.env.QUANTD_ADDRESS && 'QUANTD_ADDRESS is not set: run ./tests/run.sh clients'};
after(() => client.close());
const one = tensor(Float32Array.of(1));

test('what would be sent wrong is refused, with the field and a suggestion', async () => {
  for (const [request, pattern] of [
    [{x: one, output_type: 'INT8'}, /output_type is not a field of DynamicQuantizeRequest, did you mean outputType\?/],
    [{x: one, outputType: 'INT9'}, /outputType is "INT9", no value of DataType, did you mean DATA_TYPE_INT[48]\?/],
    [{x: one, outputType: 'mxfp9'}, /outputType is "mxfp9", no value of DataType, did you mean mxfp[48]\?/],
    [{x: one, outputType: 'nothing'}, /outputType is "nothing", no value of DataType: .*DATA_TYPE_INT8/],
    [{x: one, axis: 0.5}, /axis is 0\.5/],
    [{x: one, axis: 2 ** 60}, /axis is 1152921504606847000/],
    [{x: one, blockShape: 3}, /blockShape is 3, must be an array/],
    [{x: one, reportError: 'no'}, /reportError/],
    [{x: {...one, shape: [-0.5]}}, /x\.shape\[0\] is -0\.5/],
    [{x: {...one, rawData: Float32Array.of(1)}}, /x\.rawData is Float32Array, must be a Uint8Array/],
    [null, /the request is null/],
    [{x: [1, 2]}, /x is Array/],
  ]) {
    await assert.rejects(client.dynamicQuantize(request), (error) => error instanceof TypeError && pattern.test(error.message), String(pattern));
  }
});

test('arrays that are not elements of the type are refused', () => {
  for (const [make, pattern] of [
    [() => tensor(Int8Array.of(8), [1], 'INT4'), /element 0 is 8, INT4 holds -8 to 7/],
    [() => tensor(Uint8Array.of(64), [1], 'FLOAT6E2M3'), /element 0 is 64/],
    [() => tensor(Float32Array.of(1), [1], 'INT8'), /INT8 is made of Int8Array, not of Float32Array/],
    [() => tensor(Float32Array.of(1), [2]), /shape is \[2\], the array has 1/],
    [() => tensor(Float32Array.of(1), [1], 'UNSPECIFIED'), /UNSPECIFIED/],
    [() => values({...one, shape: [2]}), /rawData has 4 bytes, .*\[2\] takes 8/],
    [() => values({dataType: 'FLOAT', shape: [1], floatValues: {}, contents: 'floatValues'}), /floatValues/],
  ]) {
    assert.throws(make, pattern);
  }
});

test('packing is that of the contract', () => {
  for (const [type, array, hex] of [
    ['INT4', Int8Array.of(-8, 7, -1), '780f'], ['UINT2', Uint8Array.of(0, 1, 2, 3, 3), 'e403'],
    ['FLOAT6E2M3', Uint8Array.of(8, 44, 31, 33, 63), '08fb853f'], ['INT16', Int16Array.of(-32768, 1), '00800100'],
  ]) {
    const made = tensor(array, [array.length], type);
    assert.equal(Buffer.from(made.rawData).toString('hex'), hex, type);
    assert.deepEqual(values(made), array, type);
  }
});

test('a type has its usual names', server, async () => {
  const x = tensor(new Float32Array(32).fill(1));
  for (const [names, type] of [
    [['INT8', 'int8', 'DATA_TYPE_INT8'], 'INT8'], [['fp8', 'e4m3', 'float8_e4m3fn', 'FLOAT8E4M3FN'], 'FLOAT8E4M3FN'],
    [['fp4', 'mxfp4', 'nvfp4'], 'FLOAT4E2M1'], [['mxfp8'], 'FLOAT8E4M3FN'], [['int4'], 'INT4'],
  ]) {
    for (const outputType of names) {
      const {y, yScale} = await client.dynamicQuantize({x, outputType});
      assert.equal(y.dataType, `DATA_TYPE_${type}`, outputType);
      if (outputType === 'mxfp8') assert.deepEqual([yScale.dataType, yScale.shape], ['DATA_TYPE_FLOAT8E8M0', [1]]);
    }
  }
});

test('more than 4 MiB, a time-out, a signal, an error of the server', server, async () => {
  const large = {x: tensor(new Uint8Array(5 << 20), [5 << 20], 'UINT8'), scale: one};
  await assert.rejects(client.dequantize({...large, scale: tensor(Float32Array.of(1), [])}, {timeoutMs: 1}), {code: grpc.status.DEADLINE_EXCEEDED});
  const {y} = await client.dequantize({...large, scale: tensor(Float32Array.of(1), [])});
  assert.equal(values(y).length, 5 << 20);
  const controller = new AbortController();
  const call = client.dequantize(large, {signal: controller.signal});
  controller.abort(new Error('enough'));
  await assert.rejects(call, /enough/);
  await assert.rejects(client.quantize({x: one}), (error) => error.code === grpc.status.INVALID_ARGUMENT && /scale/.test(error.message));
});

test('tensors of every type, as one scale and by axis, are quantctl\'s bytes', server, async () => {
  const lines = fs.readFileSync(`${process.env.TEST_VECTORS}/vectors.tsv`, 'utf8').trimEnd().split('\n');
  assert.ok(lines.length >= 200, `${lines.length} vectors`);
  const bytes = (hex) => (hex === '-' ? undefined : Buffer.from(hex, 'hex'));
  const numbers = (text) => (text === '-' ? [] : text.split(',').map(Number));
  await Promise.all(lines.map(async (line) => {
    const column = line.split('\t');
    const [name, outputType, shape] = [column.slice(0, 3).join(' '), Number(column[0]), numbers(column[1])];
    const axis = column[2] === '-' ? undefined : Number(column[2]);
    const x = {dataType: 'FLOAT', shape, rawData: bytes(column[3])};
    const {y, yScale: scale, yZeroPoint: zeroPoint} = await client.dynamicQuantize({x, outputType, axis});
    assert.deepEqual([y.rawData, scale.rawData, scale.shape, zeroPoint?.rawData],
      [bytes(column[4]), bytes(column[5]), numbers(column[6]), bytes(column[7])], name);
    assert.deepEqual((await client.quantize({x, scale, zeroPoint, outputType, axis})).y, y, name);
    assert.deepEqual((await client.dequantize({x: y, scale, zeroPoint, axis})).y.rawData, bytes(column[8]), name);
    // Through typed arrays: unpacked and packed again.
    assert.deepEqual(Buffer.from(tensor(values(y), shape, y.dataType).rawData), y.rawData, name);
  }));
});
