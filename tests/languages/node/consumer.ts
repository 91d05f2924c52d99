// A program that uses the packed and installed package, compiled as an ES module and as CommonJS.
import {connect, DataType, fromFloat32Array, QuantdError, toTypedArray, type CallOptions, type Tensor} from 'quantd';

async function main(): Promise<void> {
  const client = connect(process.env['QUANTD_ADDRESS']);
  const options: CallOptions = {timeoutMs: 30_000, signal: new AbortController().signal};
  const x: Tensor = fromFloat32Array(Float32Array.of(1, -1, 0.5), [3]);
  const answer = await client.dynamicQuantize({x, outputType: DataType.DATA_TYPE_INT8}, options);
  const shape: number[] = answer.y!.shape;
  let wrong: unknown;
  // @ts-expect-error: no such field
  await client.dynamicQuantize({x, outputtype: 'DATA_TYPE_INT8'}).catch((error: unknown) => (wrong = error));
  const refused: unknown = await client.quantize({x}).catch((error: unknown) => error);
  client.close();
  const right = toTypedArray(answer.y) instanceof Int8Array && shape[0] === 3 && wrong instanceof TypeError &&
    refused instanceof QuantdError && refused.field === 'scale';
  if (!right) throw new Error(`wrong: ${JSON.stringify(answer)} ${String(wrong)} ${String(refused)}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
