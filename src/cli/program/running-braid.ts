/**
 * The modules that a program file gets for `import "braid"` and its subpaths. They are those of the running Braid, so
 * that only one instance exists, whatever is installed near the file.
 */
import * as cpu from "../../cpu.ts";
import * as cuda from "../../cuda.ts";
import * as braid from "../../index.ts";
import { suggestion } from "../../support/nearest.ts";

export const runningBraid: Readonly<Record<string, object>> = {
  braid: strict("braid", braid),
  "braid/cpu": strict("braid/cpu", cpu),
  "braid/cuda": strict("braid/cuda", cuda),
};

/** Names that module interop looks for in every module. */
const interopNames: ReadonlySet<string | symbol> = new Set(["__esModule", "default", "then", "module.exports"]);

/** A module that throws when a missing export is used, like Node's own linking. */
function strict(name: string, module: object): object {
  return new Proxy(module, {
    get(target, key, receiver): unknown {
      if (typeof key === "string" && !(key in target) && !interopNames.has(key)) {
        const help = suggestion(key, Object.keys(target), `it exports ${Object.keys(target).join(", ")}`);
        throw new SyntaxError(`"${name}" has no export named ${key}: ${help}`);
      }
      return Reflect.get(target, key, receiver);
    },
  });
}
