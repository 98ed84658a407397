/** Worker threads start whatever flags the process has. */
import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import path from "node:path";
import { expect, it } from "vitest";

const library = pathToFileURL(path.resolve(import.meta.dirname, "../../../dist/index.js")).href;

const code = `
import { Fusion, MultiDeviceExecutor, relu, Tensor } from ${JSON.stringify(library)};
const f = new Fusion();
f.output(relu(f.input([2], "float")));
const executor = await MultiDeviceExecutor.create(f, { devices: 1 });
const [y] = await executor.run([Tensor.from([-1, 2])]);
await executor.close();
console.log(y.data.join());`;

it("runs from a module given to node --eval", () => {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8" });
  expect([stdout, stderr]).toEqual(["0,2\n", ""]);
});
