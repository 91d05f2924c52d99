// The client: the generated stub's calls as promises, with AbortSignals and time-outs, and Stream as an async iterable.

import {once} from 'node:events';
import {type CallOptions as GrpcCallOptions, type ClientUnaryCall, Metadata, type requestCallback, type ServiceError} from '@grpc/grpc-js';
import {onAbort} from './abort.js';
import {check} from './contract.js';
import {QuantdError} from './errors.js';
import type * as m from './generated/messages.js';

/** The options of every call. */
export interface CallOptions {
  /** Cancels the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** After this many milliseconds the call rejects with DEADLINE_EXCEEDED, and the server stops working on it. */
  timeoutMs?: number | undefined;
  /** Headers to send, such as {"x-request-id": "..."}. */
  metadata?: Record<string, string> | undefined;
}

type Method<Request, Response> = (
  request: Request, metadata: Metadata, options: GrpcCallOptions, callback: requestCallback<Response>) => ClientUnaryCall;

function prepare(options: CallOptions): [Metadata, GrpcCallOptions] {
  options.signal?.throwIfAborted();
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
  if (options.timeoutMs === undefined) return [metadata, {}];
  if (!(options.timeoutMs > 0)) throw new RangeError(`timeoutMs is ${options.timeoutMs}, must be more than 0`);
  return [metadata, Number.isFinite(options.timeoutMs) ? {deadline: Date.now() + options.timeoutMs} : {}];
}

/** A client of quantd. Made by connect(); one is enough for a process, calls may run in parallel. */
export class QuantdClient {
  /** The generated stub, for everything that has no method below. */
  readonly stub: m.QuantizationServiceClient;

  /** @internal */
  constructor(stub: m.QuantizationServiceClient) {
    this.stub = stub;
  }

  /** Quantizes with the scale and zero point of the request. */
  quantize(request: m.QuantizeRequest, options?: CallOptions): Promise<m.QuantizeResponse__Output> {
    return this.#call('QuantizeRequest', this.stub.quantize, request, options);
  }

  /** The inverse of quantize. */
  dequantize(request: m.DequantizeRequest, options?: CallOptions): Promise<m.DequantizeResponse__Output> {
    return this.#call('DequantizeRequest', this.stub.dequantize, request, options);
  }

  /** Finds scale and zero point in the data, then quantizes. */
  dynamicQuantize(request: m.DynamicQuantizeRequest, options?: CallOptions): Promise<m.DynamicQuantizeResponse__Output> {
    return this.#call('DynamicQuantizeRequest', this.stub.dynamicQuantize, request, options);
  }

  /** Encodes embeddings in the formats of vector databases. */
  quantizeEmbeddings(request: m.QuantizeEmbeddingsRequest, options?: CallOptions): Promise<m.QuantizeEmbeddingsResponse__Output> {
    return this.#call('QuantizeEmbeddingsRequest', this.stub.quantizeEmbeddings, request, options);
  }

  /** The server's version and limits. */
  getServerInfo(options?: CallOptions): Promise<m.GetServerInfoResponse__Output> {
    return this.#call('GetServerInfoRequest', this.stub.getServerInfo, {}, options);
  }

  /**
   * Sends requests, each with an id, and yields answers in the order in which they arrive; an answer has either its
   * result or an `error` (`QuantdError.ofItem(error)`). Requests are taken as fast as the server reads, so that few of them wait
   * in memory; leaving the loop early cancels the stream. An exception of `requests` ends it, and is thrown here.
   */
  async *stream(
    requests: Iterable<m.StreamRequest> | AsyncIterable<m.StreamRequest>, options: CallOptions = {},
  ): AsyncGenerator<m.StreamResponse__Output, void, undefined> {
    const [metadata, grpcOptions] = prepare(options);
    const call = this.stub.stream(metadata, grpcOptions);
    const ended = new AbortController();
    const settled = onAbort(options.signal, () => call.cancel());
    let failure: {of: unknown} | undefined;
    const send = async () => {
      for await (const request of requests) {
        if (ended.signal.aborted) return;
        check('StreamRequest', request);
        if (!call.write(request)) await once(call, 'drain', {signal: ended.signal});
      }
      call.end();
    };
    const sending = send().catch((error: unknown) => {
      if (ended.signal.aborted) return;
      failure = {of: error};
      call.cancel();
    });
    try {
      for await (const response of call) yield response as m.StreamResponse__Output;
    } catch (error) {
      options.signal?.throwIfAborted();
      if (failure) throw failure.of;
      throw QuantdError.of(error as ServiceError);
    } finally {
      ended.abort();
      settled();
      call.cancel();
      // A producer that waits for something else is not waited for.
      void sending;
    }
  }

  /** Closes the connections; unfinished calls fail. */
  close(): void {
    this.stub.close();
  }

  async #call<Request, Response>(
    type: string, method: Method<Request, Response>, request: Request, options: CallOptions = {},
  ): Promise<Response> {
    const [metadata, grpcOptions] = prepare(options);
    check(type, request);
    const signal = options.signal;
    return new Promise((resolve, reject) => {
      const call = method.call(this.stub, request, metadata, grpcOptions, (error, response) => {
        settled();
        if (!error) resolve(response!);
        else reject(signal?.aborted ? signal.reason : QuantdError.of(error));
      });
      const settled = onAbort(signal, () => call.cancel());
    });
  }
}
