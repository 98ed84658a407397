/** Back ends by the names that `on` takes. Each is loaded when it is first asked for, so that a browser loads none of Node's. */
import type { Backend } from "../backends/backend.ts";
import type { Target } from "../compile/compile.ts";
import { requireOptions } from "../compile/resolve-options.ts";

const loaders: { readonly [K in Target]: () => Promise<Backend> } = {
  cpu: async () => (await import("../cpu.ts")).cpuBackend,
  cuda: async () => (await import("../cuda.ts")).cudaBackend,
};

/** The back end itself, or the one of that name. Throws `bad-option` for an unknown name. */
export async function loadBackend(on: Target | Backend): Promise<Backend> {
  if (typeof on !== "string") return on;
  requireOptions(["on"], { on });
  return loaders[on]();
}
