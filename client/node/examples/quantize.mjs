// Quantizes a matrix to INT8 with a scale a row, and back:  QUANTD_ADDRESS=127.0.0.1:50051 node examples/quantize.mjs

import {connect, DataType, fromFloat32Array, QuantdError, toTypedArray} from 'quantd';

const client = connect(); // of QUANTD_ADDRESS, or 127.0.0.1:50051
try {
  const [rows, columns] = [4, 768];
  const weights = Float32Array.from({length: rows * columns}, () => Math.random() - 0.5);
  const {y, yScale, yZeroPoint, quantizationError} = await client.dynamicQuantize(
    {x: fromFloat32Array(weights, [rows, columns]), outputType: DataType.DATA_TYPE_INT8, axis: 0, reportError: true}, {timeoutMs: 10_000});
  console.log(`${toTypedArray(y).length} elements, scales ${toTypedArray(yScale)}, SQNR ${quantizationError.sqnrDb.toFixed(1)} dB`);

  const back = await client.dequantize({x: y, scale: yScale, zeroPoint: yZeroPoint, axis: 0});
  console.log(`${weights[0]} came back as ${toTypedArray(back.y)[0]}`);
} catch (error) {
  if (!(error instanceof QuantdError)) throw error;
  console.error(error.message, error.fieldViolations);
  process.exitCode = 1;
} finally {
  client.close();
}
