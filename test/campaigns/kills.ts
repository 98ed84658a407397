import process from "node:process";
import { createRandom } from "../../src/support/random.ts";
import { isAlive, runRanks } from "../launch/run-ranks.ts";
import type { Campaign } from "./campaign.ts";

const worldSize = 3;
const mostSeconds = 8;
/** Ranks start, meet, exchange and leave within this time. */
const mostMilliseconds = 300;

export const kills: Campaign = {
  what: `one of ${worldSize} ranks is killed or stopped at a random moment: the others end within ${mostSeconds} s, and no process is left`,
  count: 2000,
  run: async (count) => {
    const random = createRandom(1);
    let struck = 0;
    let failures = 0;
    for (let i = 0; i < count; i++) {
      const [rank, signal] = [random.integer(worldSize), random.integer(2) === 0 ? "SIGKILL" : "SIGSTOP"];
      const delay = random.integer(mostMilliseconds);
      const started: number[] = [];
      const timer = setTimeout(() => {
        const pid = started[rank];
        if (pid === undefined || !isAlive(pid)) return;
        process.kill(pid, signal);
        struck++;
      }, delay);
      const { seconds, pids } = await runRanks(worldSize, [], {
        timeout: 2000,
        grace: 500,
        onStart: (pid) => started.push(pid),
      });
      clearTimeout(timer);
      if (seconds <= mostSeconds && !pids.some(isAlive)) continue;
      failures++;
      console.log(`${signal} to rank ${rank} after ${delay} ms: ended after ${seconds.toFixed(1)} s`);
    }
    return { ok: failures === 0, text: `${struck} struck while they ran, ${failures} failures` };
  },
};
