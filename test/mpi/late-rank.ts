/** Leaves MPI with a second for MPI_Finalize; the second process comes two seconds later. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { enterMpi } from "../../src/backends/mpi/mpi-messages.ts";
import { startMpi } from "../../src/backends/mpi/start-mpi-in-time.ts";

// oxlint-disable-next-line node/no-process-env -- the launcher's
const { library, messages: entered } = startMpi(process.env);
const { functions } = library;
// MPI cannot be entered twice.
const messages = enterMpi({ ...library, functions: { ...functions, MPI_Init_thread: () => 0 } }, 1);
if (entered.rank === 1) await sleep(2000);
messages.close();
console.log("left");
