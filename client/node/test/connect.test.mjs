// How a client is set up: addresses, TLS, tokens, retries, against servers of grpc-js that do what quantd would not.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as http2 from 'node:http2';
import {createRequire} from 'node:module';
import * as path from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import * as grpc from '@grpc/grpc-js';
import {loadSync} from '@grpc/proto-loader';
import {connect, fromFloat32Array, QuantdError} from 'quantd';
import {certificates} from './certificates.mjs';
import {temporary, until} from './quantd.mjs';

const require = createRequire(import.meta.url);
const proto = require.resolve('quantd/proto/quantd/v1/quantization.proto');
const includeDirs = [path.join(path.dirname(proto), '../..')];
const {service} = grpc.loadPackageDefinition(loadSync(proto, {includeDirs, keepCase: false})).quantd.v1.QuantizationService;

let tls;
before(() => (tls = certificates()));
after(() => fs.rmSync(tls.folder, {recursive: true}));

/** A server whose DynamicQuantize and GetServerInfo are `answer(call, callback)`. */
async function serve(answer, credentials = grpc.ServerCredentials.createInsecure()) {
  const server = new grpc.Server({'grpc.max_receive_message_length': -1});
  server.addService(service, {dynamicQuantize: answer, getServerInfo: answer});
  const port = await new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))));
  return {address: `127.0.0.1:${port}`, stop: () => server.forceShutdown()};
}

async function withServer(answer, credentials, use) {
  const server = await serve(answer, credentials);
  try {
    await use(server.address);
  } finally {
    server.stop();
  }
}

async function ask(address, options, call = (client) => client.getServerInfo({timeoutMs: 30_000})) {
  const client = connect(address, options);
  try {
    return await call(client);
  } finally {
    client.close();
  }
}

const version = (_, callback) => callback(null, {version: 'test'});
const unavailable = (error) => error instanceof QuantdError && error.code === grpc.status.UNAVAILABLE;
// One attempt: what is not available at once is an error at once.
const once = {serviceConfig: {}};

test('addresses', () => {
  const {target} = require(fileURLToPath(new URL('../dist/address.js', import.meta.url)));
  const table = {
    'host': 'host:50051', 'host:1': 'host:1', ' host ': 'host:50051', '::1': '[::1]:50051', '[::1]': '[::1]:50051', '[::1]:7': '[::1]:7',
    'unix:/a.sock': 'unix:/a.sock', 'dns:///host': 'dns:///host:50051', 'dns:///host:9': 'dns:///host:9', 'ipv4:1.2.3.4,5.6.7.8:9':
      'ipv4:1.2.3.4:50051,5.6.7.8:9', 'xds:///a': 'xds:///a',
  };
  for (const [given, expected] of Object.entries(table)) assert.equal(target(given), expected);
  assert.equal(target(), '127.0.0.1:50051');
  process.env.QUANTD_ADDRESS = 'other';
  assert.equal(target(), 'other:50051');
  delete process.env.QUANTD_ADDRESS;
  for (const bad of ['', ' ', ':1', '[::1', 'http://host', '[::1]x', 'dns:///']) assert.throws(() => target(bad), TypeError, bad);
  assert.equal(target('host:65535'), 'host:65535');
  for (const port of ['65536', '99999', '99999999999999999999', '0', '-1', '+1', 'a', '1a', '0x50', '1e3', '\u0661']) {
    for (const host of ['127.0.0.1', '[::1]', 'dns:///a', 'ipv4:10.0.0.1:1,10.0.0.2']) {
      assert.throws(() => connect(`${host}:${port}`), (error) => error instanceof TypeError && error.message.includes(`port "${port}"`) &&
        error.message.includes('65535'), `${host}:${port}`);
    }
  }
});

test('TLS: by arguments, by the environment, and with the wrong authority', async () => {
  const credentials = grpc.ServerCredentials.createSsl(null, [{private_key: fs.readFileSync(tls.serverKey), cert_chain: fs.readFileSync(tls.serverCert)}]);
  await withServer(version, credentials, async (address) => {
    assert.equal((await ask(address, {tlsCa: tls.ca})).version, 'test');
    process.env.QUANTD_TLS_CA = tls.ca;
    assert.equal((await ask(address)).version, 'test');
    delete process.env.QUANTD_TLS_CA;
    await assert.rejects(ask(address, {tlsCa: tls.clientCert, ...once}), unavailable);
    await assert.rejects(ask(address, once), unavailable); // plain text
  });
});

test('TLS: a client\'s certificate', async () => {
  const credentials = grpc.ServerCredentials.createSsl(
    fs.readFileSync(tls.ca), [{private_key: fs.readFileSync(tls.serverKey), cert_chain: fs.readFileSync(tls.serverCert)}], true);
  await withServer(version, credentials, async (address) => {
    assert.equal((await ask(address, {tlsCa: tls.ca, tlsCert: tls.clientCert, tlsKey: tls.clientKey})).version, 'test');
    await assert.rejects(ask(address, {tlsCa: tls.ca, ...once}), unavailable);
  });
});

test('files that cannot be used are named', () => {
  const none = path.join(tls.folder, 'none');
  const empty = path.join(tls.folder, 'empty');
  fs.writeFileSync(empty, '\n');
  assert.throws(() => connect('host', {tlsCa: none}), /tlsCa: .*none/);
  assert.throws(() => connect('host', {tlsCa: empty}), /tlsCa: .*empty is not a PEM file/);
  assert.throws(() => connect('host', {tlsCert: tls.clientCert}), /tlsCert is given \(.*client\.pem\), tlsKey is not/);
  assert.throws(() => connect('host', {authTokenFile: none}), /authTokenFile: .*none/);
  assert.throws(() => connect('host', {authTokenFile: empty}), /authTokenFile: .*empty has no token/);
  const secret = path.join(tls.folder, 'secret');
  fs.writeFileSync(secret, 'two words\n');
  assert.throws(() => connect('host', {authTokenFile: secret}), (error) => /blanks/.test(error.message) && !/two/.test(error.message));
  fs.writeFileSync(secret, 'word\n');
  assert.throws(() => connect('host', {authTokenFile: secret}), /not sent to host:50051 without TLS/);
  for (const [address, options] of [['host', {tlsCa: tls.ca}], ['host', {allowInsecureToken: true}], ['::1', {}], ['localhost', {}], ['unix:/a', {}]]) {
    connect(address, {authTokenFile: secret, ...options}).close();
  }
});

test('a token goes with every call, and a new one once the file has it', async () => {
  const seen = [];
  const file = path.join(temporary(), 'token');
  fs.writeFileSync(file, '# of tests\n\n first \nsecond line\n');
  const answer = (call, callback) => {
    seen.push(...call.metadata.get('authorization'));
    callback(null, {version: 'test'});
  };
  await withServer(answer, undefined, async (address) => {
    process.env.QUANTD_AUTH_TOKEN_FILE = file;
    const client = connect(address);
    delete process.env.QUANTD_AUTH_TOKEN_FILE;
    await client.getServerInfo();
    await new Promise((resolve, reject) => client.stub.getServerInfo({}, (error) => (error ? reject(error) : resolve())));
    assert.deepEqual(seen, ['Bearer first', 'Bearer first']);
    fs.writeFileSync(file, 'next');
    await until('new token', async () => (await client.getServerInfo(), seen.at(-1) === 'Bearer next'));
    fs.rmSync(file);
    await client.getServerInfo();
    assert.equal(seen.at(-1), 'Bearer next');
    client.close();
  });
});

test('an overloaded server is asked again, also with a large request', async () => {
  let tries = 0;
  const answer = (call, callback) => {
    tries++;
    if (tries % 3 !== 0) callback({code: grpc.status.UNAVAILABLE, details: 'full'});
    else callback(null, {y: {dataType: 3, shape: [call.request.x.rawData.length]}});
  };
  await withServer(answer, undefined, async (address) => {
    const quantize = (options) => ask(address, options, (client) => client.dynamicQuantize({x: fromFloat32Array(new Float32Array(4 << 20))}));
    assert.deepEqual((await quantize({})).y.shape, [16 << 20]);
    assert.equal(tries, 3);
    await assert.rejects(quantize(once), (error) => unavailable(error) && /full/.test(error.message));
    assert.equal(tries, 4);
  });
});

test('a call that the server drops is UNAVAILABLE', async () => {
  const server = http2.createServer();
  server.on('stream', (stream) => stream.close(http2.constants.NGHTTP2_CANCEL));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await assert.rejects(ask(`127.0.0.1:${server.address().port}`, once), unavailable);
  } finally {
    server.close();
  }
});

test('against quantd with TLS, client certificates and a token', {skip: !process.env.TEST_TLS_ADDRESS && 'no TEST_TLS_ADDRESS'}, async () => {
  const at = (name) => path.join(process.env.TEST_CERTIFICATES, name);
  const address = process.env.TEST_TLS_ADDRESS;
  const all = {tlsCa: at('ca.pem'), tlsCert: at('client.pem'), tlsKey: at('client.key'), authTokenFile: at('token'), ...once};
  const large = (client) => client.dynamicQuantize({x: fromFloat32Array(new Float32Array(2 << 20))});
  for (const host of [address, address.replace(/^[^:]*/, 'dns:///localhost')]) {
    assert.equal((await ask(host, all, large)).y.rawData.length, 2 << 20);
  }
  const refused = (change, ...codes) => assert.rejects(ask(address, {...all, ...change}), (error) => codes.includes(error.code));
  const none = undefined;
  await refused({authTokenFile: none}, grpc.status.UNAUTHENTICATED);
  await refused({authTokenFile: at('wrong-token')}, grpc.status.UNAUTHENTICATED);
  await refused({tlsCa: at('other-ca.pem')}, grpc.status.UNAVAILABLE);
  await refused({tlsCert: none, tlsKey: none}, grpc.status.UNAVAILABLE);
  // Over plain text the server can say why it refuses a client; grpc-js changes the code.
  await refused({tlsCa: none, tlsCert: none, tlsKey: none}, grpc.status.UNAVAILABLE, grpc.status.PERMISSION_DENIED);
});

test('details of an error are parsed, and damaged ones do not hide it', async () => {
  // google.rpc.Status with BadRequest, ErrorInfo and RetryInfo, as bytes.
  const message = (...fields) => Buffer.concat(fields.map(([number, value]) => typeof value === 'number'
    ? Buffer.from([number << 3, value])
    : Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), Buffer.from(value)])));
  const any = (type, value) => [3, message([1, `type.googleapis.com/google.rpc.${type}`], [2, value])];
  const details = message(
    [1, 14], any('BadRequest', message([1, message([1, 'x.raw_data'], [2, 'too short'])], [1, message([1, 'scale'], [2, 'zero'])])),
    any('ErrorInfo', message([1, 'QUEUE_FULL'], [2, 'quantd'])), any('RetryInfo', message([1, message([1, 2], [2, 5])])));
  let bytes = details;
  const answer = (call, callback) => {
    const metadata = new grpc.Metadata();
    metadata.set('grpc-status-details-bin', bytes);
    callback({code: grpc.status.UNAVAILABLE, details: 'full', metadata});
  };
  await withServer(answer, undefined, async (address) => {
    await assert.rejects(ask(address, once), (error) => {
      assert.equal(error.field, 'x.raw_data');
      assert.deepEqual(error.fieldViolations.map(({field, description}) => [field, description]), [['x.raw_data', 'too short'], ['scale', 'zero']]);
      assert.equal(error.reason, 'QUEUE_FULL');
      assert.equal(error.retryAfterMs, 2000.000005);
      assert.equal(error.cause.code, grpc.status.UNAVAILABLE);
      return true;
    });
    bytes = details.subarray(0, 40);
    await assert.rejects(ask(address, once), (error) => unavailable(error) && error.message === 'UNAVAILABLE: full' && error.field === undefined);
  });
});
