/** Random fusions in every idiom of communication, on 1 to 8 devices and streams, lowered: the verifier finds nothing wrong with any. */
import { expect, it } from "vitest";
import { checkPrograms } from "./false-alarms.ts";

it("500 random programs without a false alarm", () => {
  const { programs, withStreams, withCommunication } = checkPrograms(500);
  expect(programs).toBe(500);
  // What is checked has something to be wrong about.
  expect(withStreams).toBeGreaterThan(150);
  expect(withCommunication).toBeGreaterThan(150);
}, 120_000);
