// Quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.
import {connect, tensor, values} from 'quantd';

const client = connect(process.env.QUANTD_ADDRESS ?? '127.0.0.1:50051');
try {
  const x = Float32Array.from({length: 4 * 64}, (_, i) => Math.sin(i));
  const {y, yScale, yZeroPoint, quantizationError} = await client.dynamicQuantize(
    {x: tensor(x, [4, 64]), outputType: 'INT8', axis: 0, reportError: true}, {timeoutMs: 10_000});
  console.log(`[${y.shape}]: [${values(y).subarray(0, 4).join(', ')}] ... ${quantizationError.sqnrDb.toFixed(1)} dB`);

  const back = await client.dequantize({x: y, scale: yScale, zeroPoint: yZeroPoint, axis: 0});
  console.log(`${x[1].toFixed(4)} is ${values(back.y)[1].toFixed(4)}`);
} finally {
  client.close();
}
