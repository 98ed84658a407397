/**
 * Random fusions in every idiom of communication, on 1 to 8 devices and streams, lowered: the verifier finds nothing
 * wrong with any. 2026-11-21, npm run test:campaign -- random-programs: 10,000 programs of 1,231,186 commands, 7,930
 * with several streams, 7,689 with communication: no false alarm.
 */
import { expect, it } from "vitest";
import { checkPrograms } from "./false-alarms.ts";
import { runs } from "../../support/suite.ts";

const count = runs({ quick: 25, long: 500 });

it(`${count} random programs without a false alarm`, () => {
  const { programs, withStreams, withCommunication } = checkPrograms(count);
  expect(programs).toBe(count);
  // The checked programs have enough streams for mistakes to be possible.
  expect(withStreams).toBeGreaterThan(0.6 * count);
  expect(withCommunication).toBeGreaterThan(0.6 * count);
}, 120_000);
