// connect(): a client of an address, with the settings that clients of quantd need: message limits, load balancing, retries, TLS.

import * as fs from 'node:fs';
import * as grpc from '@grpc/grpc-js';
import {isLocal, target} from './address.js';
import {QuantdClient} from './client.js';
import {stubs} from './contract.js';
import serviceConfig from './generated/service_config.json';
import {tokenInterceptor} from './token.js';

/** Options of connect(). Each one that is not given comes from the environment, or else has the default named with it. */
export interface ConnectOptions {
  /** PEM file of the authorities that may vouch for the server. QUANTD_TLS_CA. */
  tlsCa?: string;
  /** PEM file of this client's certificate, if the server requires one. QUANTD_TLS_CERT. */
  tlsCert?: string;
  /** PEM file of its key. QUANTD_TLS_KEY. */
  tlsKey?: string;
  /**
   * File with the token that the server requires (its --auth_token_file): the first line that is neither blank nor a comment (#), read
   * again when it may have changed. Without TLS it is sent over loopback and Unix sockets only. QUANTD_AUTH_TOKEN_FILE.
   */
  authTokenFile?: string;
  /** Send the token over a network even without TLS, for example if a proxy adds TLS. */
  allowInsecureToken?: boolean;
  /** gRPC's own credentials, in place of the files for TLS: `grpc.credentials.createSsl()` takes the system's authorities. */
  credentials?: grpc.ChannelCredentials;
  /** Service config in place of deploy/service_config.json: round robin, five attempts of calls that fail with UNAVAILABLE. */
  serviceConfig?: object;
  /** Largest answer in bytes; -1, the default: as large as the server sends. */
  maxReceiveBytes?: number;
  /** Any other channel options of grpc-js; they override what connect() sets. */
  channelOptions?: grpc.ChannelOptions;
}

const VARIABLES = {tlsCa: 'QUANTD_TLS_CA', tlsCert: 'QUANTD_TLS_CERT', tlsKey: 'QUANTD_TLS_KEY'} as const;

function readPem(name: string, path: string): Buffer {
  let content;
  try {
    content = fs.readFileSync(path);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`, {cause: error});
  }
  if (!content.includes('-----BEGIN ')) throw new Error(`${name}: ${path} is not a PEM file`);
  return content;
}

function credentials(options: ConnectOptions): grpc.ChannelCredentials {
  if (options.credentials) return options.credentials;
  const path = (name: keyof typeof VARIABLES) => options[name] || process.env[VARIABLES[name]] || undefined;
  const [ca, cert, key] = [path('tlsCa'), path('tlsCert'), path('tlsKey')];
  if (!ca && !cert && !key) return grpc.credentials.createInsecure();
  if (!cert !== !key) {
    throw new TypeError(`${cert ? 'tlsCert' : 'tlsKey'} is given (${cert ?? key}), ${cert ? 'tlsKey' : 'tlsCert'} is not: ` +
      "a client's certificate needs both");
  }
  return grpc.credentials.createSsl(ca ? readPem('tlsCa', ca) : null, key ? readPem('tlsKey', key) : null,
    cert ? readPem('tlsCert', cert) : null);
}

// How much of a request gRPC keeps until it is answered, so that it can be sent again; with its default, 1 MiB per call, large
// requests, which an overloaded server refuses first, would not be retried.
const RETRY_BYTES_A_CALL = 64 << 20;
const RETRY_BYTES = 256 << 20;
// With HTTP/2's 64 KiB, the server could send no more than that per round trip.
const WINDOW_BYTES = 8 << 20;

/**
 * A client of the quantd at `address`: "host" (port 50051), "host:port", "[::1]:port", "unix:/path.sock", "dns:///host:port" ...;
 * by default QUANTD_ADDRESS, or else 127.0.0.1:50051. Connects with the first call. End it with close().
 */
export function connect(address?: string | null, options: ConnectOptions = {}): QuantdClient {
  const where = target(address ?? undefined);
  const by = credentials(options);
  const tokenFile = options.authTokenFile || process.env['QUANTD_AUTH_TOKEN_FILE'];
  const interceptor = tokenInterceptor(tokenFile);
  if (tokenFile && !by._isSecure() && !isLocal(where) && !options.allowInsecureToken) {
    throw new Error(`authTokenFile: the token in ${tokenFile} is not sent to ${where} without TLS; give tlsCa, or allowInsecureToken`);
  }
  const stub = new stubs.quantd.v1.QuantizationService(where, by, {
    'grpc.max_send_message_length': -1,
    'grpc.max_receive_message_length': options.maxReceiveBytes ?? -1,
    'grpc.service_config': JSON.stringify(options.serviceConfig ?? serviceConfig),
    'grpc.service_config_disable_resolution': 1,
    'grpc.per_rpc_retry_buffer_size': RETRY_BYTES_A_CALL,
    'grpc.retry_buffer_size': RETRY_BYTES,
    'grpc-node.flow_control_window': WINDOW_BYTES,
    ...options.channelOptions,
    ...(interceptor && {interceptors: [interceptor]}),
  });
  return new QuantdClient(stub);
}
