/** Verifies 10,000 random programs, and 1,000 that lack an edge against the judge: `jiti scripts/count-random-programs.ts [SEED]`. Some minutes. */
import { checkPrograms } from "../test/verify/random/false-alarms.ts";
import { compareRemovedEdges } from "../test/verify/random/removed-edges.ts";

const [seed = "20261121"] = process.argv.slice(2);
console.log(compareRemovedEdges(1000, Number(seed)));
console.log(checkPrograms(10_000, Number(seed)));
