// Builds dist/: copies the contract and the service config from their places, generates types, compiles. Then the package is complete
// without the rest of the repository.

import {execFileSync} from 'node:child_process';
import * as fs from 'node:fs';
import {createRequire} from 'node:module';
import * as path from 'node:path';
import {fileURLToPath} from 'node:url';

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const root = path.join(here, '..', '..');
process.chdir(here);
const require = createRequire(import.meta.url);

for (const folder of ['dist', 'src/generated', 'proto']) fs.rmSync(folder, {recursive: true, force: true});
fs.mkdirSync('src/generated', {recursive: true});
fs.cpSync(path.join(root, 'proto/quantd/v1'), 'proto/quantd/v1', {recursive: true});
fs.cpSync(path.join(root, 'deploy/service_config.json'), 'src/generated/service_config.json');
fs.cpSync(path.join(root, 'LICENSE'), 'LICENSE');
const protos = fs.readdirSync('proto/quantd/v1').map((file) => `quantd/v1/${file}`);

const run = (name, file, args) =>
  execFileSync(process.execPath, [path.join(path.dirname(require.resolve(`${name}/package.json`)), file), ...args],
    {stdio: ['ignore', 'inherit', 'inherit']});

// The types. int64 are numbers: no shape, size or count comes near 2^53, and larger values of a caller are refused.
run('@grpc/proto-loader', 'build/bin/proto-loader-gen-types.js', [...protos, '--longs=Number', '--enums=String', '--defaults',
  '--oneofs', '--includeComments', '--grpcLib=@grpc/grpc-js', '--outDir=src/generated', '-I', 'proto']);
const modules = fs.readdirSync('src/generated/quantd/v1').filter((file) => file.endsWith('.ts')).sort();
fs.writeFileSync('src/generated/messages.ts',
  modules.map((file) => `export * from './quantd/v1/${path.basename(file, '.ts')}.js';\n`).join(''));
// Its imports have no extension, but Node16's resolution requires one.
for (const file of [...modules.map((name) => `quantd/v1/${name}`), ...fs.readdirSync('src/generated').filter((n) => n.endsWith('.ts'))]) {
  const name = path.join('src/generated', file);
  const text = fs.readFileSync(name, 'utf8').replace(/(from '\.[^']*?)(\.js)?'/g, "$1.js'");
  fs.writeFileSync(name, text);
}

// The contract itself, as a module: nothing is read from files at run time, so that bundlers can include it.
const protobuf = createRequire(require.resolve('@grpc/proto-loader'))('protobufjs');
const contract = new protobuf.Root();
contract.resolvePath = (_, file) => (file.startsWith('proto/') ? file : `proto/${file}`);
contract.loadSync(protos).resolveAll();
fs.writeFileSync('src/generated/contract.json', JSON.stringify(contract.toJSON()));

run('typescript', 'bin/tsc', ['-p', '.']);
// Both kinds of module share one instance: `instanceof QuantdError` works for either.
fs.writeFileSync('dist/index.mjs', "export * from './index.js';\n");
fs.writeFileSync('dist/index.d.mts', "export * from './index.js';\n");
