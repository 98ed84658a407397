/** What the launcher writes to a rank's standard input to get its flight record: the run has failed, or goes on. */
export const flightRequests = { failed: "f", goesOn: "g" } as const;
