/** `mpirun braid run --on mpi`, under the mpirun of each library that is installed. */
import { describe, expect, it } from "vitest";
import { fingerprintOf, launchers, underMpi } from "./under-mpi.ts";

const example = "examples/ring-allgather-matmul.ts";

describe.each(launchers)("braid run --on mpi by $abi", (launcher) => {
  const { obstacle } = launcher;
  it.skipIf(obstacle !== "")(
    `has the bits of --on cpu${obstacle}`,
    async () => {
      const args = [example, "--devices", "4", "--backend", "cuda", "--repeat", "2", "--json"];
      const { status, out } = await underMpi(launcher, 2, [...args, "--on", "mpi"]);
      expect(status).toBe(0);
      expect(await fingerprintOf(out)).toEqual(await fingerprintOf(null, args));
    },
    60_000,
  );
});
