// What the tests share: starting and ending a quantd of their own.

import {spawn} from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {fileURLToPath} from 'node:url';

export const QUANTD = process.env.TEST_QUANTD ?? fileURLToPath(new URL('../../../build/release/server/quantd', import.meta.url));
const DEADLINE_MS = 60_000;

// Flags configure the tests' servers, and arguments the clients.
for (const name of Object.keys(process.env)) if (name.startsWith('QUANTD_')) delete process.env[name];

/** Polls until `done` gives something true. */
export async function until(what, done) {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await done();
    if (value) return value;
    if (Date.now() > end) throw new Error(`no ${what} within ${DEADLINE_MS / 1000} s`);
    await sleep(20);
  }
}

export function temporary() {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'quantd-node-'));
}

/** Starts a server: {address, metrics(), stop(signal)}. */
export async function start(...flags) {
  const folder = temporary();
  const ready = path.join(folder, 'ready.json');
  const child = spawn(QUANTD, ['--listen=127.0.0.1:0', '--http_listen=127.0.0.1:0', `--ready_file=${ready}`, ...flags], {
    stdio: ['ignore', 'ignore', fs.openSync(path.join(folder, 'log'), 'w')], env: {PATH: process.env.PATH},
  });
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  let over = false;
  void ended.then(() => (over = true));
  await until('ready file', () => {
    if (over) throw new Error(`quantd ended: ${fs.readFileSync(path.join(folder, 'log'), 'utf8')}`);
    return fs.existsSync(ready) && fs.statSync(ready).size > 0;
  });
  const {grpc, http} = JSON.parse(fs.readFileSync(ready, 'utf8'));
  return {
    address: grpc[0],
    addresses: grpc,
    folder,
    async metric(pattern) {
      const text = await (await fetch(`http://${http}/metrics`)).text();
      return text.split('\n').filter((line) => !line.startsWith('#') && pattern.test(line))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      const how = await ended;
      fs.rmSync(folder, {recursive: true, force: true});
      return how;
    },
  };
}

/** Reproducible floats: a linear congruential generator, spread over some magnitudes. */
export function randomFloats(count, seed) {
  let state = BigInt(seed);
  return Float32Array.from({length: count}, () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return (Number(state >> 40n) / (1 << 23) - 1) * 8;
  });
}
