/** The first of two processes enters MPI and waits for the other, which does something else for 20 seconds. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { joinMpi } from "@braid-compiler/braid/mpi";
import { launcherOf } from "../../src/backends/mpi/launcher-of.ts";

// oxlint-disable-next-line node/no-process-env -- the launcher's
if (launcherOf(process.env)?.rank === 0) joinMpi({ timeout: 1 });
else await sleep(20_000);
