/** Addresses at which rank 0 cannot open the rendezvous: a diagnostic at once, not a stack. */
import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { enterWorld } from "../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import type { Environment } from "../../src/support/environment.ts";

let server: Server | null = null;
afterEach(() => {
  server?.close();
  server = null;
});

const environment = (host: string, port: number): Environment => ({
  RANK: "0",
  WORLD_SIZE: "2",
  LOCAL_RANK: "0",
  MASTER_ADDR: host,
  MASTER_PORT: String(port),
  BRAID_TOKEN: "0123456789abcdef0123456789abcdef",
});

async function enter(host: string, port: number): Promise<unknown> {
  const env = environment(host, port);
  const place = rankEnvironment(env);
  return place === null ? null : enterWorld(place, env, 2000);
}

/** A port that this test listens on. */
function takenPort(): Promise<number> {
  return new Promise((resolve) => {
    const own = createServer().listen({ host: "127.0.0.1", port: 0 }, () => {
      const address = own.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
    server = own;
  });
}

describe("rank 0 cannot open the rendezvous", () => {
  it("where the port after MASTER_PORT is taken", async () => {
    const port = await takenPort();
    await expect(enter("127.0.0.1", port - 1)).rejects.toThrow(
      new RegExp(
        String.raw`rendezvous-failed.*\n.*127\.0\.0\.1:${port}\n.*EADDRINUSE[^]*set MASTER_PORT to another port`,
      ),
    );
  });

  it("at the address of another machine", async () => {
    await expect(enter("203.0.113.1", 29_500)).rejects.toThrow(/rendezvous-failed[^]*set MASTER_ADDR to an address/);
  });

  it("after the last port", async () => {
    await expect(enter("127.0.0.1", 65_535)).rejects.toThrow(/launcher-environment[^]*MASTER_PORT below 65535/);
    await expect(enter("127.0.0.1", 65_536)).rejects.toThrow(/launcher-environment[^]*of at most 65535/);
  });
});
