// The cases of README.md with gRPC's library for Node: node steps.mjs GRPC_JS PORT CA|- CASE, where GRPC_JS is the folder of @grpc/grpc-js.
// Exits with an error if something is wrong.
import assert from 'node:assert';
import fs from 'node:fs';
import {createRequire} from 'node:module';

const [library, port, ca, name] = process.argv.slice(2);
const grpc = createRequire(`${library}/`)(library);
const {status} = grpc;
const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';
const UNARY = '/grpc.testing.TestService/UnaryCall';
const TEXT = 'größe 測試 ☺ 😀';
const same = (bytes) => bytes;
const EMPTY = Buffer.alloc(0);

function connect() {
  const credentials = ca === '-' ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(fs.readFileSync(ca));
  return new grpc.Client(`127.0.0.1:${port}`, credentials, {
    'grpc.ssl_target_name_override': 'localhost', 'grpc.default_authority': 'localhost', 'grpc.use_local_subchannel_pool': 1,
  });
}

const soon = (seconds) => ({deadline: Date.now() + 1000 * seconds});

function unary(client, path, request, options = soon(20), metadata = new grpc.Metadata()) {
  return new Promise((resolve, reject) => {
    let answer, initial;
    const call = client.makeUnaryRequest(path, same, same, request, metadata, options, (error, message) => {
      if (error) reject(error);
      answer = message;
    });
    call.on('metadata', (found) => { initial = found; });
    call.on('status', (found) => resolve({answer, initial, trailing: found.metadata}));
  });
}

async function fails(promise, code) {
  const error = await promise.then(() => assert.fail(`not ${status[code]}`), (failure) => failure);
  assert.strictEqual(error.code, code, String(error));
  return error.details;
}

// The events of a stream: its messages, and then how it ends.
function collect(call, onMessage = () => {}) {
  const messages = [];
  return new Promise((resolve, reject) => {
    call.on('data', (message) => { messages.push(message); onMessage(message, messages.length); });
    call.on('error', reject);
    call.on('end', () => resolve(messages));
  });
}

const varint = (value) => value < 128 ? [value] : [value % 128 + 128, ...varint(Math.floor(value / 128))];
const number = (field, value) => Buffer.from([field * 8, ...varint(value)]);
const bytes = (field, payload) => Buffer.concat([Buffer.from([field * 8 + 2, ...varint(payload.length)]), payload]);
const payload = (size) => bytes(2, Buffer.alloc(size));  // in grpc.testing.Payload
const isAbout = (size, answer) => assert(answer.length >= size && answer.length < size + 20, `${answer.length} bytes, not ${size}`);

const steps = {
  async deadline(client) {
    const began = performance.now();
    const watch = client.makeServerStreamRequest(WATCH, same, same, EMPTY, soon(0.3));
    let seen = 0;
    await fails(collect(watch, () => { ++seen; }), status.DEADLINE_EXCEEDED);
    assert(seen === 1 && performance.now() - began >= 250);
  },
  async cancel(client) {
    const watch = client.makeServerStreamRequest(WATCH, same, same, EMPTY);
    await fails(collect(watch, () => watch.cancel()), status.CANCELLED);
    await unary(client, CHECK, EMPTY);
  },
  async unicode_status(client) {
    const request = bytes(1, Buffer.concat([number(1, 1), bytes(6, Buffer.concat([bytes(1, Buffer.from(TEXT)), number(3, 4)]))]));
    const text = await fails(unary(client, '/quantd.v1.QuantizationService/DynamicQuantize', request), status.INVALID_ARGUMENT);
    assert(text.includes(TEXT), text);
  },
  async soak(client) {
    for (let i = 0; i < 10000; ++i) await unary(client, CHECK, EMPTY);
  },
  async channels() {
    for (let i = 0; i < 1000; ++i) {
      const client = connect();
      await unary(client, CHECK, EMPTY);
      client.close();
    }
  },
  async unimplemented_method(client) {
    await fails(unary(client, '/grpc.health.v1.Health/Nothing', EMPTY), status.UNIMPLEMENTED);
  },
  async unimplemented_service(client) {
    await fails(unary(client, '/grpc.testing.UnimplementedService/UnimplementedCall', EMPTY), status.UNIMPLEMENTED);
  },

  // The following are gRPC's own cases, for the interop server: see its interop-test-descriptions.
  async concurrent_large_unary(client) {
    // Not all at once: Node's HTTP/2 keeps at most 10 MB that are not sent.
    for (let i = 0; i < 40; ++i) await Promise.all(Array.from({length: 25}, () => steps.large_unary(client)));
  },
  async empty_unary(client) {
    assert.strictEqual((await unary(client, '/grpc.testing.TestService/EmptyCall', EMPTY)).answer.length, 0);
  },
  async large_unary(client) {
    const request = Buffer.concat([number(2, 314159), bytes(3, payload(271828))]);
    isAbout(314159, (await unary(client, UNARY, request, soon(100))).answer);
  },
  async client_streaming(client) {
    const {answer} = await new Promise((resolve, reject) => {
      const call = client.makeClientStreamRequest('/grpc.testing.TestService/StreamingInputCall', same, same, soon(20),
        (error, message) => error ? reject(error) : resolve({answer: message}));
      for (const size of [27182, 8, 1828, 45904]) call.write(bytes(1, payload(size)));
      call.end();
    });
    assert.deepStrictEqual(answer, number(1, 74922));
  },
  async server_streaming(client) {
    const sizes = [31415, 9, 2653, 58979];
    const request = Buffer.concat(sizes.map((size) => bytes(2, number(1, size))));
    const messages = await collect(
      client.makeServerStreamRequest('/grpc.testing.TestService/StreamingOutputCall', same, same, request, soon(20)));
    assert.strictEqual(messages.length, sizes.length);
    messages.forEach((message, i) => isAbout(sizes[i], message));
  },
  async ping_pong(client) {
    const rounds = [[31415, 27182], [9, 8], [2653, 1828], [58979, 45904]];
    const call = duplex(client);
    const send = ([answer, size]) => call.write(Buffer.concat([bytes(2, number(1, answer)), bytes(3, payload(size))]));
    const messages = collect(call, (message, count) => {
      isAbout(rounds[count - 1][0], message);
      if (count === rounds.length) call.end(); else send(rounds[count]);
    });
    send(rounds[0]);
    assert.strictEqual((await messages).length, rounds.length);
  },
  async empty_stream(client) {
    const call = duplex(client);
    call.end();
    assert.strictEqual((await collect(call)).length, 0);
  },
  async custom_metadata(client) {
    const metadata = new grpc.Metadata();
    metadata.set('x-grpc-test-echo-initial', 'test_initial_metadata_value');
    metadata.set('x-grpc-test-echo-trailing-bin', Buffer.from([0xab, 0xab, 0xab]));
    const request = Buffer.concat([number(2, 314159), bytes(3, payload(271828))]);
    const {initial, trailing} = await unary(client, UNARY, request, soon(20), metadata);
    assert.deepStrictEqual(initial.get('x-grpc-test-echo-initial'), ['test_initial_metadata_value']);
    assert.deepStrictEqual(trailing.get('x-grpc-test-echo-trailing-bin'), [Buffer.from([0xab, 0xab, 0xab])]);
  },
  async status_code_and_message(client) {
    const says = Buffer.concat([number(1, 2), bytes(2, Buffer.from('test status message'))]);
    assert.strictEqual(await fails(unary(client, UNARY, bytes(7, says)), 2), 'test status message');
    const call = duplex(client);
    call.write(bytes(7, says));
    assert.strictEqual(await fails(collect(call), 2), 'test status message');
  },
  async special_status_message(client) {
    const text = '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n';
    assert.strictEqual(await fails(unary(client, UNARY, bytes(7, Buffer.concat([number(1, 2), bytes(2, Buffer.from(text))]))), 2), text);
  },
  async cancel_after_begin(client) {
    const answer = new Promise((resolve, reject) => {
      const call = client.makeClientStreamRequest('/grpc.testing.TestService/StreamingInputCall', same, same,
        (error, message) => error ? reject(error) : resolve(message));
      setImmediate(() => call.cancel());
    });
    await fails(answer, status.CANCELLED);
  },
  async cancel_after_first_response(client) {
    const call = duplex(client);
    call.write(Buffer.concat([bytes(2, number(1, 31415)), bytes(3, payload(27182))]));
    await fails(collect(call, () => call.cancel()), status.CANCELLED);
  },
  async timeout_on_sleeping_server(client) {
    const call = duplex(client, {deadline: Date.now() + 1});
    call.on('error', () => {});
    call.write(bytes(3, payload(27182)));
    await fails(collect(call), status.DEADLINE_EXCEEDED);
  },
};

function duplex(client, options = soon(20)) {
  return client.makeBidiStreamRequest('/grpc.testing.TestService/FullDuplexCall', same, same, options);
}

const client = connect();
await steps[name](client);
client.close();
