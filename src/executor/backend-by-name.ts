/** Back ends by the names that `on` takes. Each is loaded when it is first asked for, so that a browser loads none of Node's. */
import type { Backend } from "../backends/backend.ts";
import type { Target } from "../compile/compile.ts";
import { fail } from "../diagnostics/diagnostic.ts";

const loaders: { readonly [K in Target]: () => Promise<Backend> } = {
  cpu: async () => (await import("../cpu.ts")).cpuBackend,
  cuda: async () => (await import("../cuda.ts")).cudaBackend,
};

const backendNames: readonly string[] = Object.keys(loaders);

/** The back end itself, or the one of that name. Throws `bad-argument` for an unknown name. */
export async function loadBackend(on: Target | Backend): Promise<Backend> {
  if (typeof on !== "string") return on;
  if (Object.hasOwn(loaders, on)) return loaders[on]();
  return fail({
    code: "bad-argument",
    message: `there is no back end ${String(on)}`,
    place: { kind: "call", text: "MultiDeviceExecutor.create(fusion, { on })" },
    found: String(on),
    expected: `one of ${backendNames.join(", ")}`,
    help: "name one of these back ends",
  });
}
