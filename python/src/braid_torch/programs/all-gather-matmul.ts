/**
 * Gathers A [M, K], whose rows are sharded over the devices, and multiplies it by weights of each device: the program
 * behind braid_torch's all_gather_matmul. With CHUNKS the columns of A are sharded, and gathered in so many parts of the
 * rows. N0 to N3 are the weights' columns, 0 for none. With ROWS=1 a weight is [K, N], otherwise [N, K], as in nn.Linear.
 * With RETURN_A=1 the gathered A is an output, too, the first: without CHUNKS a copy, made while products run, of the
 * memory that peers write.
 */
import { DeviceMesh, Fusion, linear, matmul, program, set } from "@braid-compiler/braid";

const widths = { N0: 4096, N1: 0, N2: 0, N3: 0 };
const defaults = { M: 4096, K: 4096, ...widths, CHUNKS: 0, ROWS: 0, RETURN_A: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params }) => {
  const { M, K, N0, N1, N2, N3, CHUNKS, ROWS, RETURN_A, DTYPE } = params;
  const f = new Fusion();
  const columns = [N0, N1, N2, N3].filter((n) => n > 0);
  const a = f.input(CHUNKS === 0 ? [devices, M / devices, K] : [M, K], DTYPE);
  const weights = columns.map((n) => f.input(ROWS === 1 ? [K, n] : [n, K], DTYPE));
  // Without it every weight would gather by itself, and a product would cut its sum.
  const gathered = columns.length > 1 || RETURN_A === 1 || CHUNKS > 0 ? set(a) : null;
  const results = weights.map((weight) => (ROWS === 1 ? matmul : linear)(gathered ?? a, weight));
  const returned = gathered === null || RETURN_A !== 1 ? [] : [CHUNKS === 0 ? set(gathered) : gathered];
  for (const output of [...returned, ...results]) f.output(output);

  const mesh = DeviceMesh.range(devices);
  const whole = new Set([...(gathered === null ? [] : [gathered]), ...returned, ...results]);
  for (const tensor of [a, ...weights, ...whole]) tensor.setDeviceMesh(mesh);
  (CHUNKS === 0 ? a.axis(0) : a.outerSplit(1, devices)).parallelize("DIDx");
  for (const tensor of whole) (CHUNKS === 0 ? tensor.axis(0) : tensor.outerSplit(0, CHUNKS)).parallelize("Stream");
  return f;
});
