/**
 * Back ends start a thread per core, each of which takes a tenth of a second: one in the quick suite, where hundreds of
 * tests open one, and as many as there are in the long suite. Tests of threads say how many they want.
 */
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { inject } from "vitest";

if (inject("suite") === "quick") {
  os.availableParallelism = () => 1;
  syncBuiltinESMExports();
}
