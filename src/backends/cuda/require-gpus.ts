/** Checks whether this machine can run the CUDA back end, before processes are started for it. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { driverPrototypes, type Out } from "./bindings/driver-api.ts";
import { loadLibrary } from "./bindings/native-library.ts";

/** Throws `backend-unavailable` if there is no driver, or fewer than `count` GPUs. */
export function requireGpus(count: number): void {
  const { functions } = loadLibrary("driver", driverPrototypes);
  const found: Out = [0];
  const status = functions.cuInit(0) || functions.cuDeviceGetCount(found);
  if (status === 0 && Number(found[0]) >= count) return;
  const gpus = Number(found[0]);
  fail({
    code: "backend-unavailable",
    message: gpus === 0 ? "this machine has no GPU that the driver can use" : "this machine has too few GPUs",
    place: { kind: "option", text: "--on cuda --devices" },
    found: status === 0 ? `${gpus} GPU${gpus === 1 ? "" : "s"}` : `CUDA error ${status} when the driver starts`,
    expected: `${count} GPU${count === 1 ? "" : "s"}, one per device`,
    help:
      gpus === 0
        ? "run on the CPU (--on cpu), or see `braid doctor`"
        : `use --devices ${gpus}, or check CUDA_VISIBLE_DEVICES`,
  });
}
