/** Starts PyTorch's process of this rank. The processes of all ranks form a process group on a free port. */
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../src/backends/package-file.ts";
import type { World } from "../../../src/launch/join-world.ts";
import type { Environment } from "../../../src/support/environment.ts";
import type { Exchange } from "../../../src/launch/exchange.ts";
import type { PeerStart } from "../run-bench.ts";
import { startPeer } from "./torch-peer.ts";

const script = fileURLToPath(packageFile("bench/peers/torch_peer.py"));
/** Milliseconds. PyTorch's import and NCCL's first connection take tens of seconds on a cold machine. */
const startTimeout = 180_000;
const loopback = "127.0.0.1";

/** Collective: all ranks call it together; a failure on one rank is one on all. */
export async function startTorch(
  world: World,
  exchange: Exchange,
  python: string,
  timeout: number,
  environment: Environment,
): Promise<PeerStart> {
  const port = await exchange({ kind: "done", value: [world.rank === 0 ? await freePort() : 0] });
  if (port.kind === "failed") return port;
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith("TORCHELASTIC_"));
  const started = await startPeer({
    command: [python, script],
    env: {
      ...Object.fromEntries(kept),
      RANK: String(world.rank),
      WORLD_SIZE: String(world.worldSize),
      LOCAL_RANK: String(world.localRank),
      MASTER_ADDR: world.hostNames.length > 1 ? (environment.MASTER_ADDR ?? loopback) : loopback,
      MASTER_PORT: String(port.value[0]?.[0]),
    },
    timeout,
    startTimeout,
  });
  const all = await exchange(started.kind === "failed" ? started : { kind: "done", value: [] });
  if (all.kind === "done") return started;
  if (started.kind === "done") await started.value.close();
  return all;
}

/** The port is free now. If another process takes it before PyTorch does, the peers report that. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, loopback, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
