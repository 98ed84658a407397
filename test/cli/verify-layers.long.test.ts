/** `braid verify` of many equal layers, of which few are proven, or all. */
import { expect, it } from "vitest";
import { cli } from "./captured-cli.ts";

const layered = [
  "verify",
  "examples/hosts/llama.ts",
  "--on",
  "cuda",
  "--devices",
  "2",
  "--set",
  "LAYERS=14,BACKWARD=1",
];

it("says in JSON how many layers others stood for", async () => {
  const { out } = await cli(...layered, "--json");
  expect(JSON.parse(out)).toMatchObject({ ok: true, missingLayers: 10 });
});

it("proves all layers of a schedule that orders them by their memory", async () => {
  const verify = async (...flags: readonly string[]): Promise<string> => {
    const { out } = await cli(...layered, "--backend", "cuda", "--schedule", "computeStreams=1", ...flags);
    return out.replace(/; [\d.]+ ms\n/, "\n");
  };
  const every = await verify("--verify", "full");
  expect(every).toMatch(/: ok; 2 devices, /);
  expect(await verify()).toBe(every);
});
