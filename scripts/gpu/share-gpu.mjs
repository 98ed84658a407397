/**
 * Lets all ranks of a machine share its GPUs, to see that programs of many ranks are right where there are few. Node
 * loads it before Braid; every process of the command inherits it:
 *
 *     NODE_OPTIONS="--import $PWD/braid-offline/scripts/gpu/share-gpu.mjs" sh braid-offline/braid run FILE --on cuda --devices 4
 *
 * To Braid there are sixteen GPUs that reach each other's memory, and those beyond the real ones are these again. NCCL
 * takes one rank per GPU and host, so each rank tells it, and only it, that it is on a host of its own. Times mean
 * nothing.
 */
import { createRequire } from "node:module";
import process from "node:process";

const gpus = 16;
let found = 1;
const koffi = createRequire(import.meta.url)("koffi");

/** What stands for functions of the driver and of NCCL, made from the function itself. */
const instead = {
  cuDeviceGetCount: (real) => (count) => {
    const status = real(count);
    found = Math.max(1, count[0]);
    if (count[0] > 0) count[0] = gpus;
    return status;
  },
  cuDeviceGet: (real) => (device, ordinal) => real(device, ordinal % found),
  cuDeviceCanAccessPeer: () => (can) => {
    can[0] = 1;
    return 0;
  },
  ncclCommInitRankConfig:
    (real) =>
    (...values) => {
      process.env.NCCL_HOSTID = `rank ${process.env.RANK}`;
      return real(...values);
    },
};

const { load } = koffi;
koffi.load = (...values) => {
  const library = load(...values);
  return new Proxy(library, {
    get: (target, key) =>
      key === "func"
        ? (prototype) => {
            const real = target.func(prototype);
            const name = /(\w+)\(/.exec(prototype)?.[1];
            return instead[name]?.(real) ?? real;
          }
        : Reflect.get(target, key, target),
  });
};
