// Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.

import {connect, DataType, fromFloat32Array, QuantdError, toTypedArray} from 'quantd';

const client = connect(); // QUANTD_ADDRESS, or 127.0.0.1:50051
try {
  const [rows, columns] = [4, 64];
  const weights = Float32Array.from({length: rows * columns}, (_, i) => Math.sin(i));
  const {y, yScale, yZeroPoint, quantizationError} = await client.dynamicQuantize(
    {x: fromFloat32Array(weights, [rows, columns]), outputType: DataType.DATA_TYPE_INT8, axis: 0, reportError: true}, {timeoutMs: 10_000});
  console.log(`[${y.shape}]: [${toTypedArray(y).subarray(0, 4).join(', ')}] ... ${quantizationError.sqnrDb.toFixed(1)} dB`);

  const back = await client.dequantize({x: y, scale: yScale, zeroPoint: yZeroPoint, axis: 0});
  console.log(`${weights[1].toFixed(4)} is ${toTypedArray(back.y)[1].toFixed(4)}`);
} catch (error) {
  if (!(error instanceof QuantdError)) throw error;
  console.error(error.message, error.fieldViolations);
  process.exitCode = 1;
} finally {
  client.close();
}
