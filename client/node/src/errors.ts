// Errors: every failed call rejects with a QuantdError, which has the server's details parsed.

import {Metadata, type ServiceError, status} from '@grpc/grpc-js';
import {fromJSON, type MessageTypeDefinition} from '@grpc/proto-loader';
import type {ItemError__Output} from './generated/quantd/v1/ItemError.js';

/** A field of the request that is wrong, and why. */
export interface Violation {
  /** Path of the field, such as "scale" or "x.raw_data". */
  field: string;
  /** What is wrong with it. */
  description: string;
}

// The contents of grpc-status-details-bin: the fields of google.rpc.Status and three of its details that are read here.
const field = (type: string, id: number, rule?: string) => ({type, id, ...(rule && {rule})});
const details = fromJSON({
  nested: {
    Any: {fields: {typeUrl: field('string', 1), value: field('bytes', 2)}},
    Status: {fields: {details: field('Any', 3, 'repeated')}},
    FieldViolation: {fields: {field: field('string', 1), description: field('string', 2)}},
    BadRequest: {fields: {fieldViolations: field('FieldViolation', 1, 'repeated')}},
    ErrorInfo: {fields: {reason: field('string', 1), domain: field('string', 2)}},
    Duration: {fields: {seconds: field('int64', 1), nanos: field('int32', 2)}},
    RetryInfo: {fields: {retryDelay: field('Duration', 1)}},
  },
}, {longs: Number, defaults: true});

function parse<T>(type: string, bytes: Buffer): T {
  return (details[type] as MessageTypeDefinition<object, object>).deserialize(bytes) as T;
}

/** A call, or one item of a stream, that failed. */
export class QuantdError extends Error {
  /** gRPC status code: `grpc.status.INVALID_ARGUMENT` and so on. */
  readonly code: status;
  /** The server's text, which names the field and both numbers. */
  readonly details: string;
  /** The wrong fields, if the server names them. */
  readonly fieldViolations: readonly Violation[];
  /** A constant to branch on, such as "REGION_DAMAGED". */
  readonly reason: string | undefined;
  /** How many milliseconds the server asks to wait before another attempt. */
  readonly retryAfterMs: number | undefined;
  /** The trailers. */
  readonly metadata: Metadata;

  constructor(code: status, text: string, more: {
    fieldViolations?: readonly Violation[]; reason?: string; retryAfterMs?: number; metadata?: Metadata; cause?: unknown;
  } = {}) {
    super(`${status[code] ?? code}: ${text}`, more.cause === undefined ? undefined : {cause: more.cause});
    this.name = 'QuantdError';
    this.code = code;
    this.details = text;
    this.fieldViolations = more.fieldViolations ?? [];
    this.reason = more.reason;
    this.retryAfterMs = more.retryAfterMs;
    this.metadata = more.metadata ?? new Metadata();
  }

  /** Path of the first wrong field, such as "scale". */
  get field(): string | undefined {
    return this.fieldViolations[0]?.field;
  }

  /** The error of a call that failed. */
  static of(error: ServiceError): QuantdError {
    const more: ConstructorParameters<typeof QuantdError>[2] = {metadata: error.metadata, cause: error};
    try {
      for (const {typeUrl, value} of statusDetails(error)) {
        const name = typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
        if (name === 'google.rpc.BadRequest') {
          more.fieldViolations = parse<{fieldViolations: Violation[]}>('BadRequest', value).fieldViolations;
        } else if (name === 'google.rpc.ErrorInfo') {
          more.reason = parse<{reason: string}>('ErrorInfo', value).reason;
        } else if (name === 'google.rpc.RetryInfo') {
          const delay = parse<{retryDelay: {seconds: number; nanos: number} | null}>('RetryInfo', value).retryDelay;
          if (delay) more.retryAfterMs = Math.max(delay.seconds * 1e3 + delay.nanos * 1e-6, 0);
        }
      }
    } catch {
      // Details that do not parse must not hide the status itself.
    }
    // A server or proxy that drops calls, for example when it stops: the user has not cancelled the call ("Cancelled on client").
    const dropped = error.code === status.CANCELLED && error.details === 'Call cancelled';
    return new QuantdError(dropped ? status.UNAVAILABLE : error.code, error.details, more);
  }

  /** The error of an item of a stream. */
  static ofItem(error: ItemError__Output): QuantdError {
    return new QuantdError(error.code, error.message, {fieldViolations: error.fieldViolations});
  }
}

function statusDetails(error: ServiceError): {typeUrl: string; value: Buffer}[] {
  const bytes = error.metadata?.get('grpc-status-details-bin')[0];
  if (!Buffer.isBuffer(bytes)) return [];
  return parse<{details: {typeUrl: string; value: Buffer}[]}>('Status', bytes).details;
}
