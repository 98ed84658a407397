/** One table of kernels for all ranks: kernels that compute the same are one, so that a back end prepares each once. */
import { makeId } from "../../support/ids.ts";
import type { KernelId } from "../command.ts";
import type { Kernel } from "../kernel.ts";

export interface MergedKernels {
  readonly kernels: readonly Kernel[];
  /** idOf[rank][kernel of that rank's list]. */
  readonly idOf: readonly (readonly KernelId[])[];
}

/** `kernelsOf[rank]` becomes one table in order. Equal means equal as JSON; ranks record in the same order of keys. */
export function mergeKernels(kernelsOf: readonly (readonly Kernel[])[]): MergedKernels {
  const kernels: Kernel[] = [];
  const known = new Map<string, KernelId>();
  const idOf = kernelsOf.map((own) =>
    own.map((kernel) => {
      const key = JSON.stringify(kernel);
      const id = known.get(key) ?? makeId<KernelId>(kernels.length);
      if (id === kernels.length) {
        kernels.push(kernel);
        known.set(key, id);
      }
      return id;
    }),
  );
  return { kernels, idOf };
}
