// Converts addresses as users write them to gRPC targets.

const DEFAULT_PORT = 50051;
const AS_THEY_ARE = ['unix:', 'unix-abstract:', 'vsock:', 'xds:', 'passthrough:'];

function withPort(host: string): string {
  if (host.startsWith('[')) {
    const parts = /^(\[[^\]]*\])(?::(.*))?$/s.exec(host);
    if (!parts) throw new TypeError(`address "${host}": an address that begins with [ must be [IPv6 address] or [IPv6 address]:port`);
    return `${parts[1]}:${checked(host, parts[2])}`;
  }
  // More than one colon: IPv6 without brackets.
  if (host.split(':').length > 2) return `[${host}]:${DEFAULT_PORT}`;
  const [name, port] = host.split(':');
  if (!name) throw new TypeError(`address "${host}" names no host`);
  return `${name}:${checked(host, port)}`;
}

/** A port that can exist: with any other, gRPC would silently try to connect until the deadline. */
function checked(host: string, port?: string): string {
  if (!port) return String(DEFAULT_PORT);
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65535) {
    throw new TypeError(`address "${host}": port "${port}" must be a number from 1 to 65535`);
  }
  return port;
}

/** The gRPC target of an address; without one, of QUANTD_ADDRESS or else 127.0.0.1:50051. The default port is 50051. */
export function target(given?: string): string {
  const address = (given ?? (process.env['QUANTD_ADDRESS'] || `127.0.0.1:${DEFAULT_PORT}`)).trim();
  if (!address) throw new TypeError('address is empty; give one such as "127.0.0.1:50051"');
  if (AS_THEY_ARE.some((scheme) => address.startsWith(scheme))) return address;
  if (/^https?:\/\//.test(address)) {
    throw new TypeError(`address "${address}": quantd speaks gRPC; give host:port, and tlsCa for TLS`);
  }
  const scheme = /^(dns:(\/\/[^/]*\/)?|ipv[46]:(?!\/\/))/.exec(address)?.[0];
  if (scheme === undefined) return address.includes('://') ? address : withPort(address);
  return scheme + address.slice(scheme.length).split(',').map(withPort).join(',');
}

/** Whether what is sent to a target stays on this machine: Unix sockets and loopback. */
export function isLocal(given: string): boolean {
  if (given.startsWith('unix:') || given.startsWith('unix-abstract:')) return true;
  const hosts = given.replace(/^(dns:(\/\/[^/]*\/)?|ipv[46]:)/, '').split(',');
  return hosts.every((host) => /^(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d+)?$/.test(host));
}
