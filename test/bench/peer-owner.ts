/** A process that starts bench/peers/torch_peer.py on a stand-in of PyTorch, writes that it is ready, and stays. */
import process from "node:process";
import { startPeer } from "../../bench/compare/torch/torch-peer.ts";

const [script = "", modules = ""] = process.argv.slice(2);
const started = await startPeer({
  // oxlint-disable-next-line node/no-process-env -- Python needs its own variables
  command: ["python3", script],
  env: { ...process.env, PYTHONPATH: modules, RANK: "0", WORLD_SIZE: "2" },
  timeout: 60_000,
  startTimeout: 60_000,
});
process.stdout.write(`${started.kind === "done" ? "ready" : started.why}\n`);
setInterval(() => {}, 1000);
