#!/usr/bin/env node
/** The executable: runs the command line on the process's arguments and streams. */
import process from "node:process";
import { runCli } from "./cli.ts";
import { processTerminal } from "./terminal.ts";

// A reader that has seen enough (`braid lower ... | head`) closes the pipe: no error of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

process.exitCode = await runCli(process.argv.slice(2), processTerminal());
