// Certificates made on the fly: an authority, a server's for 127.0.0.1 and a client's, as PEM files in one folder.

import {execFileSync} from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import {temporary} from './quantd.mjs';

export function certificates() {
  const folder = temporary();
  const at = (name) => path.join(folder, name);
  const openssl = (...args) => execFileSync('openssl', args, {stdio: ['ignore', 'ignore', 'ignore']});
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=authority', '-keyout', at('ca.key'), '-out', at('ca.pem'));
  for (const [name, extension] of [['server', 'subjectAltName=IP:127.0.0.1,DNS:localhost'], ['client', 'extendedKeyUsage=clientAuth']]) {
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', `/CN=${name}`, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`));
    fs.writeFileSync(at(`${name}.ext`), `${extension}\n`);
    openssl('x509', '-req', '-in', at(`${name}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2',
      '-extfile', at(`${name}.ext`), '-out', at(`${name}.pem`));
  }
  return {
    folder, ca: at('ca.pem'), serverCert: at('server.pem'), serverKey: at('server.key'), clientCert: at('client.pem'), clientKey: at('client.key'),
  };
}
