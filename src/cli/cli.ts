/**
 * The command line as a function of its arguments: parses them, runs one command and returns its exit status. It loads
 * only the modules of that command.
 */
import { Command, type CommanderError } from "commander";
import { packageVersion } from "../backends/package-file.ts";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { nearest, suggestion } from "../support/wording.ts";
import { type ExitStatus, exitStatus, statusOf } from "./exit-status.ts";
import { reportError, type Terminal } from "./terminal/terminal.ts";

interface CommandContext {
  readonly terminal: Terminal;
  readonly finish: (status: ExitStatus) => void;
  /** All arguments of the command line, for processes that run it again. */
  readonly args: readonly string[];
}

/** Every command, in the order of the help. */
const commands: Readonly<Record<string, (context: CommandContext) => Promise<Command>>> = {
  lower: async ({ terminal, finish }) => (await import("./lower/command.ts")).lowerCommand(terminal, finish),
  run: async ({ terminal, finish, args }) => (await import("./run/command.ts")).runCommand(terminal, finish, args),
  verify: async ({ terminal, finish }) => (await import("./verify/command.ts")).verifyCommand(terminal, finish),
  explain: async ({ terminal, finish }) => (await import("./explain/command.ts")).explainCommand(terminal, finish),
  compile: async ({ terminal, finish }) => (await import("./compile/command.ts")).compileCommand(terminal, finish),
  bench: async ({ terminal, finish, args }) =>
    (await import("../../bench/cli/command.ts")).benchCommand(terminal, finish, args),
  calibrate: async ({ terminal, finish, args }) =>
    (await import("./calibrate/command.ts")).calibrateCommand(terminal, finish, args),
  playground: async ({ terminal, finish }) =>
    (await import("./playground/command.ts")).playgroundCommand(terminal, finish),
  doctor: async ({ terminal, finish }) => (await import("./doctor/command.ts")).doctorCommand(terminal, finish),
};

/** The commands that a command line may need: the named one; none for the version; all for help and for mistakes. */
function needed([first = ""]: readonly string[]): readonly string[] {
  if (first === "--version") return [];
  return Object.hasOwn(commands, first) ? [first] : Object.keys(commands);
}

/** `help COMMAND` as `COMMAND --help`; a command that does not exist is then an error. */
function asHelp(args: readonly string[]): readonly string[] {
  const [first, name] = args;
  if (first !== "help") return args;
  return name === undefined || Object.hasOwn(commands, name) ? [...args.slice(1, 2), "--help"] : [name];
}

/** Runs one command line, `args` without node and script. Never rejects. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  // Commander's actions return no value, so the action stores its status here.
  let status: ExitStatus = exitStatus.ok;
  const finish = (result: ExitStatus): void => {
    status = result;
  };
  const braid = new Command("braid")
    .description("Compiles sharded tensor programs into host programs that overlap communication with computation.")
    .version(packageVersion(), "--version");
  for (const name of needed(args)) {
    const command = await commands[name]?.({ terminal, finish, args });
    if (command !== undefined) braid.addCommand(command);
  }
  for (const command of [braid, ...braid.commands]) {
    command
      .configureOutput({ writeOut: terminal.out, writeErr: () => {} })
      .configureHelp({
        minWidthToWrap: 24,
        // A value that may be left out is given with =, so that a file can follow the flag.
        optionTerm: ({ flags }) => flags.replace(/ \[(.+)\]$/, "[=$1]"),
      })
      .exitOverride((error) => {
        throw error.exitCode === 0 ? error : usageError(error, command, args);
      });
  }
  let isParsed = false;
  braid.hook("preAction", () => {
    isParsed = true;
  });
  try {
    if (args.length === 0) {
      terminal.err(braid.helpInformation());
      return exitStatus.badInput;
    }
    await braid.parseAsync(withValues(asHelp(args), braid.commands), { from: "user" });
    return status;
  } catch (error) {
    if (!isParsed && error instanceof DiagnosticError) {
      const { afterFirst, isFirstProcess } = await import("./ranks/where-to-run.ts");
      if (!isFirstProcess()) {
        await afterFirst();
        return statusOf(error.diagnostics);
      }
    }
    return reportError(error, terminal, args.includes("--json"));
  }
}

// Flags that may stand alone. Their values follow an equals sign, so that a file after such a flag stays a file.

/** The arguments with the value that each flag alone stands for. */
function withValues(args: readonly string[], commands: readonly Command[]): readonly string[] {
  const alone = new Map(
    commands.flatMap(({ options }) =>
      options.flatMap(({ long, optional, presetArg }) =>
        optional && typeof long === "string" ? [[long, `${long}=${String(presetArg)}`] as const] : [],
      ),
    ),
  );
  return args.map((arg) => alone.get(arg) ?? arg);
}

// Turns commander's errors into Diagnostics: the same form as every other message, with the known names and the nearest
// one.

/** `command`: the command whose arguments were parsed; `args`: all of the command line. */
export function usageError(error: CommanderError, command: Command, args: readonly string[]): DiagnosticError {
  return new DiagnosticError([diagnosticOf(error, command, args)]);
}

/** `--check=full` of `--check full`, a flag that may stand alone; null if no such flag is in front of a value of it. */
function joinedValue({ options, args: given }: Command, args: readonly string[]): string | null {
  const takes = (flag: string | undefined, value: string): boolean => {
    const option = options.find(({ long, optional }) => optional && long === flag);
    try {
      option?.parseArg?.(value, undefined);
      return option !== undefined;
    } catch {
      return false;
    }
  };
  const place = args.findIndex((arg, i) => given.includes(arg) && takes(args[i - 1], arg));
  return place < 0 ? null : `${args[place - 1]}=${args[place]}`;
}

function diagnosticOf(error: CommanderError, command: Command, args: readonly string[]): Diagnostic {
  const message = (error.message.split("\n")[0] ?? "").replace(/^error: /, "").replace(/'-\w, /u, "'");
  const [, found] = /'([^']*)'/.exec(message) ?? [];
  const help = `see ${commandPath(command)} --help`;
  const place = { kind: "option", text: commandPath(command) } as const;
  switch (error.code) {
    case "commander.unknownOption": {
      const flags = command.options.flatMap((option) => option.long ?? []).concat("--help");
      const name = found ?? message;
      // Commands have tens of flags: the nearest one is enough, or the help that lists them.
      return {
        code: "option-unknown",
        message: `there is no option ${name}`,
        place,
        found: name,
        expected: nearest(name, flags) ?? `an option that ${commandPath(command)} --help lists`,
        help: suggestion(name, flags, help),
      };
    }
    case "commander.unknownCommand": {
      const known = command.commands.map((child) => child.name());
      const name = found ?? message;
      return {
        code: "option-unknown",
        message: `there is no command ${name}`,
        place,
        found: name,
        expected: `one of ${known.join(", ")}`,
        help: suggestion(name, known, help),
      };
    }
    case "commander.excessArguments": {
      const extra = command.args.slice(command.registeredArguments.length).join(" ");
      const text = "there are arguments that the command does not take";
      const joined = joinedValue(command, args);
      const fix = joined === null ? help : `write ${joined}: a flag that may stand alone has its value after =`;
      return { code: "option-value", message: text, place, found: extra, expected: usage(command), help: fix };
    }
    case "commander.missingMandatoryOptionValue":
      return {
        code: "option-value",
        message: `option ${found ?? message} is missing`,
        place,
        found: "nothing",
        expected: `${commandPath(command)} ${found ?? message}`,
        help: `add ${found ?? message}`,
      };
    case "commander.missingArgument":
      return { code: "option-value", message, place, found: "nothing", expected: usage(command), help };
    case "commander.optionMissingArgument": {
      const flags = found ?? message;
      const [name = flags] = flags.split(" ");
      const text = `option ${name} has no value`;
      return {
        code: "option-value",
        message: text,
        place,
        found: `nothing after ${name}`,
        expected: flags,
        help: `write ${flags}`,
      };
    }
    default:
      return { code: "option-value", message, place, found: found ?? "nothing", expected: usage(command), help };
  }
}

function usage(command: Command): string {
  return `${commandPath(command)} ${command.usage()}`;
}

/** `braid lower`. */
function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}
