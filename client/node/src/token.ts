// The token that a server with --auth_token_file requires: read from a file, and read again when it may have changed.

import * as fs from 'node:fs';
import {InterceptingCall, type Interceptor} from '@grpc/grpc-js';

const READ_AGAIN_MS = 1000;

/** The first line that is neither blank nor a comment (#). Never part of an error's text. */
function read(path: string): string {
  let content;
  try {
    content = fs.readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`authTokenFile: ${(error as Error).message}`, {cause: error});
  }
  const token = content.split('\n').map((line) => line.trim()).find((line) => line && !line.startsWith('#'));
  if (token === undefined) throw new Error(`authTokenFile: ${path} has no token`);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`authTokenFile: the token in ${path} contains blanks or non-ASCII characters`);
  return token;
}

/** Adds the token to every call, also those of the generated stub; undefined if no file is named. */
export function tokenInterceptor(path: string | undefined): Interceptor | undefined {
  if (!path) return undefined;
  let token = read(path);
  let fresh = performance.now();
  return (options, nextCall) => new InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      if (performance.now() - fresh > READ_AGAIN_MS) {
        try {
          token = read(path);
        } catch {
          // The file may be being replaced: the present token may still be valid.
        }
        fresh = performance.now();
      }
      metadata.set('authorization', `Bearer ${token}`);
      next(metadata, listener);
    },
  });
}
