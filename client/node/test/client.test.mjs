// The client against the real server: friendly calls, wrong ones, cancelled ones, many of them, streams.

import assert from 'node:assert/strict';
import * as path from 'node:path';
import {after, before, test} from 'node:test';
import {status} from '@grpc/grpc-js';
import {connect, DataType, fromFloat32Array, fromTypedArray, QuantdError, toTypedArray} from 'quantd';
import {randomFloats, start, temporary, until} from './quantd.mjs';

let server;
let client;
before(async () => {
  server = await start('--max_message_bytes=20000000');
  client = connect(server.address);
});
after(async () => {
  client.close();
  assert.equal(await server.stop(), 0);
});

const rejects = (promise, code, field, text) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof QuantdError, String(error));
    assert.equal(status[error.code], status[code], error.message);
    if (field !== undefined) assert.equal(error.field, field, JSON.stringify(error.fieldViolations));
    if (text !== undefined) assert.match(error.message, text);
    return true;
  });
const dynamic = (values, shape, more) => ({x: fromFloat32Array(values, shape), outputType: 'DATA_TYPE_INT8', ...more});

test('quantizes, and back', async () => {
  const x = Float32Array.of(-1, -0.5, 0, 0.5, 1, 2);
  const quantized = await client.quantize({
    x: fromFloat32Array(x, [2, 3]),
    scale: fromFloat32Array(Float32Array.of(0.5), []),
    zeroPoint: fromTypedArray(DataType.DATA_TYPE_UINT8, Uint8Array.of(10), []),
    reportError: true,
  });
  assert.deepEqual(quantized.y.shape, [2, 3]);
  assert.deepEqual(toTypedArray(quantized.y), Uint8Array.of(8, 9, 10, 11, 12, 14));
  assert.equal(quantized.quantizationError.sqnrDb, Infinity);
  const back = await client.dequantize({
    x: quantized.y, scale: fromFloat32Array(Float32Array.of(0.5), []),
    zeroPoint: fromTypedArray(DataType.DATA_TYPE_UINT8, Uint8Array.of(10), []),
  });
  assert.deepEqual(toTypedArray(back.y), x);
  const info = await client.getServerInfo();
  assert.equal(info.maxMessageBytes, 20000000);
});

// MXFP6 of 32 values: the largest is the type's largest, so that the block's scale is 1. By hand, from the OCP Microscaling specification.
test('quantizes to six bits with a scale per block', async () => {
  for (const [outputType, values, wanted] of [
    ['DATA_TYPE_FLOAT6E2M3', [1, -1.5, 7.5, -0.125, -7.5], [8, 44, 31, 33, 63]],
    ['DATA_TYPE_FLOAT6E3M2', [1, 28, -0.0625, 0.25, -3, -28, 0.0625], [12, 31, 33, 4, 50, 63, 1]],
  ]) {
    const [x, codes] = [new Float32Array(32), new Uint8Array(32)];
    x.set(values);
    codes.set(wanted);
    const {y, yScale} = await client.dynamicQuantize(
      {x: fromFloat32Array(x), outputType, scaleType: 'DATA_TYPE_FLOAT8E8M0', axis: -1, blockSize: 32});
    assert.deepEqual(toTypedArray(y), codes, outputType);
    assert.deepEqual(toTypedArray(yScale), Uint8Array.of(127), outputType);
    const back = await client.dequantize(
      {x: fromTypedArray(outputType, codes), scale: yScale, outputType: 'DATA_TYPE_FLOAT', axis: -1, blockSize: 32});
    assert.deepEqual(toTypedArray(back.y), x, outputType);
  }
});

test('sends what is larger than 4 MiB, and takes it', async () => {
  const x = randomFloats(1 << 20, 7).map((value, i) => value + i % 3);
  const big = new Float32Array(4 << 20);
  for (let i = 0; i < 4; i++) big.set(x, i << 20);
  const quantized = await client.dynamicQuantize(dynamic(big, [4, 1 << 20], {axis: 0}));
  const back = await client.dequantize({x: quantized.y, scale: quantized.yScale, zeroPoint: quantized.yZeroPoint, axis: 0});
  const values = toTypedArray(back.y);
  assert.equal(values.length, big.length);
  for (let i = 0; i < big.length; i += 999) assert.ok(Math.abs(values[i] - big[i]) < 0.1, `${i}`);
});

test('takes views at any offset, and does not keep them', async () => {
  const memory = new ArrayBuffer(4 * 64 + 8);
  const x = new Float32Array(memory, 4, 64).map((_, i) => i - 20);
  new Float32Array(memory, 4, 64).set(x);
  const whole = await client.dynamicQuantize(dynamic(x));
  const view = new Float32Array(memory, 4, 64);
  const call = client.dynamicQuantize(dynamic(view));
  view.fill(NaN); // once the call is made, the caller may change the array
  assert.deepEqual((await call).y.rawData, whole.y.rawData);
  // Bytes whose address is not a multiple of 4.
  const odd = new Uint8Array(memory, 1, 4 * 64);
  odd.set(new Uint8Array(x.buffer));
  const answer = await client.dynamicQuantize({x: {dataType: 'DATA_TYPE_FLOAT', shape: [64], rawData: odd}, outputType: 'DATA_TYPE_INT8'});
  assert.deepEqual(answer.y.rawData, whole.y.rawData);
});

test('empty and 0-D tensors', async () => {
  const empty = await client.dynamicQuantize(dynamic(new Float32Array(0), [0, 3]));
  assert.deepEqual(empty.y.shape, [0, 3]);
  assert.deepEqual(toTypedArray(empty.y), new Int8Array(0));
  const scalar = await client.dynamicQuantize(dynamic(Float32Array.of(3), []));
  assert.deepEqual(scalar.y.shape, []);
  assert.equal(toTypedArray(scalar.y).length, 1);
});

test('embeddings', async () => {
  const {y} = await client.quantizeEmbeddings({x: fromFloat32Array(Float32Array.of(1, -1, 0, 2, -3, 4, 5, -6, 7), [1, 9]), recipe: 'EMBEDDING_RECIPE_BITS'});
  assert.deepEqual(y.shape, [1, 2]);
  assert.deepEqual(toTypedArray(y), Uint8Array.of(0b10010110, 0b10000000));
  await rejects(client.quantizeEmbeddings({x: fromFloat32Array(Float32Array.of(1), [1, 1])}), status.INVALID_ARGUMENT, 'recipe');
});

test('errors name the field', async () => {
  const x = Float32Array.of(1, NaN, 2);
  await rejects(client.dynamicQuantize(dynamic(x)), status.INVALID_ARGUMENT, 'x', /\b1\b/);
  await rejects(client.quantize({x: fromFloat32Array(new Float32Array(6), [2, 3]), scale: fromFloat32Array(Float32Array.of(1, 1)), axis: 1}),
    status.INVALID_ARGUMENT, 'scale', /2.*3/);
  const short = {dataType: 'DATA_TYPE_FLOAT', shape: [3], rawData: new Uint8Array(11)};
  await rejects(client.dynamicQuantize({x: short}), status.INVALID_ARGUMENT, 'x', /11.*12/);
  await rejects(client.quantize({}), status.INVALID_ARGUMENT, 'x');
  await rejects(client.dynamicQuantize(dynamic(new Float32Array(6 << 20))), status.RESOURCE_EXHAUSTED, undefined, /20000000/);
});

test('what would be sent wrong is refused here', async () => {
  const x = fromFloat32Array(Float32Array.of(1));
  const refused = (request, pattern) => assert.rejects(client.dynamicQuantize(request), pattern);
  await refused({x, outputtype: 'DATA_TYPE_INT8'}, /outputtype is not a field of DynamicQuantizeRequest.*outputType/);
  await refused({x, outputType: 'INT8'}, /outputType is "INT8", no value of DataType/);
  await refused({x, axis: 0.5}, /axis is 0\.5/);
  await refused({x, axis: 2 ** 60}, /axis is 1152921504606847000/);
  await refused({x, blockShape: 3}, /blockShape is 3, must be an array/);
  await refused({x, reportError: 'no'}, /reportError/);
  await refused({x: {...x, shape: [2n ** 64n]}}, /x\.shape\[0\] is 18446744073709551616, does not fit into int64/);
  await refused({x: {...x, rawData: Float32Array.of(1)}}, /x\.rawData is Float32Array, must be a Uint8Array/);
  await refused({x: {...x, rawData: 'AAAA'}}, /x\.rawData/);
  await refused(null, /the request is null/);
  await refused({x: [1, 2]}, /x is Array/);
  await assert.rejects(client.dynamicQuantize({x}, {timeoutMs: -1}), /timeoutMs is -1/);
  // Integers as numbers, bigints and decimal strings are the same.
  for (const length of [1, 1n, '1']) {
    assert.deepEqual((await client.dynamicQuantize({x: {...x, shape: [length]}, axis: 0n})).y.shape, [1]);
  }
});

test('a time-out, an AbortSignal', async () => {
  const large = dynamic(new Float32Array(4 << 20));
  await rejects(client.dynamicQuantize(large, {timeoutMs: 1}), status.DEADLINE_EXCEEDED);
  const aborted = AbortSignal.abort(new Error('before'));
  await assert.rejects(client.dynamicQuantize(large, {signal: aborted}), /before/);
  const controller = new AbortController();
  const call = client.dynamicQuantize(large, {signal: controller.signal});
  controller.abort(new Error('meanwhile'));
  await assert.rejects(call, /meanwhile/);
  await assert.rejects(client.dynamicQuantize(large, {signal: AbortSignal.timeout(1)}), {name: 'TimeoutError'});
  assert.equal((await client.dynamicQuantize(dynamic(Float32Array.of(1)), {signal: new AbortController().signal})).y.shape[0], 1);
});

test('a thousand calls at once, a third of them cancelled', async () => {
  const warnings = [];
  const warned = (warning) => warnings.push(warning);
  process.on('warning', warned);
  const controller = new AbortController();
  const x = Float32Array.from({length: 1000}, (_, i) => i - 500);
  const expected = (await client.dynamicQuantize(dynamic(x))).y.rawData;
  const results = await Promise.allSettled(Array.from({length: 1000}, (_, i) => {
    const call = client.dynamicQuantize(dynamic(x), i % 3 === 0 ? {signal: controller.signal} : {});
    if (i === 999) controller.abort();
    return call;
  }));
  process.off('warning', warned);
  assert.deepEqual(warnings, []);
  results.forEach((result, i) => {
    if (i % 3 === 0) assert.equal(result.reason?.name, 'AbortError', `${i}: ${result.reason}`);
    else assert.deepEqual(result.value?.y.rawData, expected, `${i}: ${result.reason}`);
  });
  await until('end of all calls', async () => (await server.metric(/^quantd_inflight_requests/)) === 0);
});

test('a stream: many items, a bad one, answers by id', async () => {
  const sizes = new Map();
  async function* requests() {
    for (let id = 0; id < 2000; id++) {
      const length = id % 100 === 0 ? 100_000 : 1 + (id % 50);
      sizes.set(id, length);
      yield {id, dynamicQuantize: dynamic(new Float32Array(length).fill(id % 13 === 5 ? NaN : id))};
    }
  }
  const order = [];
  for await (const answer of client.stream(requests())) {
    order.push(answer.id);
    if (answer.id % 13 === 5) {
      const error = QuantdError.ofItem(answer.error);
      assert.equal(error.code, status.INVALID_ARGUMENT);
      assert.equal(error.field, 'x');
      assert.match(error.message, /x\[0\] is nan/);
    } else {
      assert.deepEqual(answer.dynamicQuantize.y.shape, [sizes.get(answer.id)]);
    }
  }
  assert.equal(order.length, 2000);
  assert.deepEqual([...order].sort((a, b) => a - b), Array.from({length: 2000}, (_, i) => i));
});

test('a stream is read no faster than it is taken', async () => {
  let made = 0;
  let returned = false;
  async function* requests() {
    try {
      for (; made < 10_000; made++) yield {id: made, dynamicQuantize: dynamic(new Float32Array(50_000))};
    } finally {
      returned = true;
    }
  }
  for await (const answer of client.stream(requests())) {
    assert.ok(answer.dynamicQuantize);
    break;
  }
  await until('end of the producer', () => returned);
  assert.ok(made < 5000, `${made} requests were made for one answer`);
  await until('end of the stream', async () => (await server.metric(/^quantd_inflight_requests/)) === 0);
});

test('a stream that ends badly', async () => {
  const one = {id: 1, dynamicQuantize: dynamic(Float32Array.of(1))};
  const drain = async (stream) => {
    for await (const answer of stream) void answer;
  };
  function* broken() {
    yield one;
    throw new Error('of the producer');
  }
  await assert.rejects(drain(client.stream(broken())), /of the producer/);
  await assert.rejects(drain(client.stream([one, {id: -1}])), /id is -1/);
  async function* forever() {
    yield one;
    await new Promise(() => {});
  }
  await rejects(drain(client.stream(forever(), {timeoutMs: 50})), status.DEADLINE_EXCEEDED);
  const controller = new AbortController();
  const stream = client.stream(forever(), {signal: controller.signal});
  assert.equal((await stream.next()).value.id, 1);
  controller.abort(new Error('enough'));
  await assert.rejects(stream.next(), /enough/);
  await drain(client.stream([]));
});

test('a server that goes in the middle of calls, and one that is not there', async () => {
  const other = await start();
  const lost = connect(other.address, {serviceConfig: {}});
  await lost.getServerInfo();
  const calls = Promise.allSettled(Array.from({length: 50}, () => lost.dynamicQuantize(dynamic(new Float32Array(1 << 20)))));
  const stream = lost.stream((async function* () {
    yield {id: 1, dynamicQuantize: dynamic(Float32Array.of(1))};
    await new Promise(() => {});
  })());
  assert.equal((await stream.next()).value.id, 1);
  await other.stop('SIGKILL');
  for (const call of await calls) {
    if (call.status === 'rejected') assert.equal(call.reason.code, status.UNAVAILABLE, String(call.reason));
  }
  await rejects(stream.next(), status.UNAVAILABLE);
  await rejects(lost.getServerInfo({timeoutMs: 20_000}), status.UNAVAILABLE);
  lost.close();
});

// The answer is the same; the server counts that it was compressed.
test('answers compressed for all calls, and for one', async () => {
  const request = {
    x: fromTypedArray(DataType.DATA_TYPE_UINT8, new Uint8Array(100_000).map((_, i) => i % 7)),
    scale: fromFloat32Array(Float32Array.of(0.5), []),
  };
  const {y: plain} = await client.dequantize(request);
  for (const [flag, metadata] of [['--compress_answers=gzip', {}], ['--compress_answers=none', {'quantd-compress-answers': 'gzip'}]]) {
    const other = await start(flag);
    const asks = connect(other.address);
    assert.deepEqual((await asks.dequantize(request, {metadata})).y, plain, flag);
    assert.equal(await other.metric(/^quantd_compressed_answers_total/), 1, flag);
    asks.close();
    await other.stop();
  }
});

test('a Unix socket', async () => {
  const socket = path.join(temporary(), 'quantd.sock');
  const other = await start(`--listen=unix:${socket}`);
  const unix = connect(`unix:${socket}`);
  assert.match((await unix.getServerInfo()).version, /^\d/);
  unix.close();
  await other.stop();
});
