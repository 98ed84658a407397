import { startingDumps } from "./test/host/parse/fuzz-dumps.ts";
import { mutatedDump } from "./test/host/parse/mutate-dump.ts";
console.log(mutatedDump(30181065, startingDumps));
