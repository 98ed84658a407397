/**
 * Turns commander's errors into Diagnostics: the same form as every other message, with the known names and the nearest
 * one.
 */
import type { Command, CommanderError } from "commander";
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { nearest, suggestion } from "../../support/nearest.ts";

/** `command`: the command whose arguments were parsed. */
export function usageError(error: CommanderError, command: Command): DiagnosticError {
  return new DiagnosticError([diagnosticOf(error, command)]);
}

function diagnosticOf(error: CommanderError, command: Command): Diagnostic {
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
      return { code: "option-value", message: text, place, found: extra, expected: usage(command), help };
    }
    case "commander.missingMandatoryOptionValue":
      return {
        code: "option-value",
        message: `option ${found ?? message} is missing`,
        place,
        found: "nothing",
        expected: `${commandPath(command)} ${found ?? message}`,
        help,
      };
    case "commander.missingArgument":
      return { code: "option-value", message, place, found: "nothing", expected: usage(command), help };
    case "commander.optionMissingArgument": {
      const flags = found ?? message;
      const [name = flags] = flags.split(" ");
      const text = `option ${name} has no value`;
      return { code: "option-value", message: text, place, found: `nothing after ${name}`, expected: flags, help };
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
