/**
 * Gathers the rows of A [M, K], which are sharded over the devices, and multiplies them by weights of each device: the
 * program behind braid_torch's all_gather_matmul. N0 to N3 are the weights' columns, 0 for none. With ROWS=1 a weight
 * is [K, N], otherwise [N, K], as in nn.Linear. With RETURN_A=1 the gathered rows are an output, too, the first.
 */
import { DeviceMesh, Fusion, linear, matmul, program, set } from "braid";

const defaults = { M: 4096, K: 4096, N0: 4096, N1: 0, N2: 0, N3: 0, ROWS: 0, RETURN_A: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N0, N1, N2, N3, ROWS, RETURN_A, DTYPE } }) => {
  const f = new Fusion();
  const columns = [N0, N1, N2, N3].filter((n) => n > 0);
  const a = f.input([devices, M / devices, K], DTYPE);
  const weights = columns.map((n) => f.input(ROWS === 1 ? [K, n] : [n, K], DTYPE));
  // Without it every weight would gather by itself.
  const gathered = columns.length > 1 || RETURN_A === 1 ? set(a) : null;
  const results = weights.map((weight) => (ROWS === 1 ? matmul : linear)(gathered ?? a, weight));
  const outputs = gathered === null || RETURN_A !== 1 ? results : [gathered, ...results];
  for (const output of outputs) f.output(output);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, ...weights, ...results, ...(gathered === null ? [] : [gathered])])
    tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  for (const tensor of [...results, ...(gathered === null ? [] : [gathered])]) tensor.axis(0).parallelize("Stream");
  return f;
});
