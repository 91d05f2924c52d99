// Client of quantd for Node.js: connect() gives a client, fromFloat32Array() a tensor, toTypedArray() its elements.

export {QuantdClient, type CallOptions} from './client.js';
export {connect, type ConnectOptions} from './connect.js';
export {QuantdError, type Violation} from './errors.js';
export {fromFloat32Array, fromTypedArray, toTypedArray, type TensorArray} from './tensors.js';
// The contract: enumerations, messages, the generated stub's type. `Tensor` is the type to send, `Tensor__Output` the type of answers.
export * from './generated/messages.js';
