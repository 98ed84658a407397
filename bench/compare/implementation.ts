/**
 * Parses the implementations to time: `NAME[;option=value,...]` on the command line, objects in configuration files.
 * Several values of an option are alternatives. An entry stands for all combinations of its options' values.
 *
 *     braid;form=rotated;protocol=get,put;streams=2,8   ->   four implementations
 */
import { fail } from "../../src/diagnostics/diagnostic.ts";
import { isOneOf, keysOf } from "../../src/support/invariant.ts";
import { suggestion } from "../../src/support/wording.ts";
import { type BraidOption, braidOptionNames, braidOptionRow, type BraidOptions } from "./braid/braid-options.ts";

/** Braid's implementations, each with the options that it takes. */
const ownOptions = {
  braid: braidOptionNames,
  serial: ["backend", "protocol", "copyStream", "graph"],
  "compute-only": ["graph"],
  "communication-only": ["backend", "protocol", "copyStream", "graph"],
} as const satisfies Readonly<Record<string, readonly BraidOption[]>>;

export type OwnName = keyof typeof ownOptions;

/** Implementations that run in Python, in PyTorch or JAX, with their names in bench/peers/torch_peer.py. */
export const peerImplementations = {
  "torch-compute-only": "compute-only",
  "torch-nccl": "nccl",
  "torch-nccl-compile": "nccl-compile",
  "torch-async-tp": "async-tp",
  "torch-async-tp-compile": "async-tp-compile",
  "torch-one-shot": "one-shot",
  "torch-two-shot": "two-shot",
  "torch-nccl-graph": "nccl-graph",
  "torch-one-shot-graph": "one-shot-graph",
  "torch-two-shot-graph": "two-shot-graph",
  "transformer-engine": "transformer-engine",
  xla: "xla",
  "xla-shard-map": "xla-shard-map",
} as const;

export type PeerName = keyof typeof peerImplementations;

/** PyTorch's paths, of which the best is compared with. */
export const torchPaths = [
  "torch-nccl",
  "torch-nccl-compile",
  "torch-async-tp",
  "torch-async-tp-compile",
  "torch-one-shot",
  "torch-two-shot",
  "torch-nccl-graph",
  "torch-one-shot-graph",
  "torch-two-shot-graph",
] as const satisfies readonly PeerName[];

export const xlaPaths = ["xla", "xla-shard-map"] as const satisfies readonly PeerName[];

export type Implementation =
  | {
      readonly kind: "braid";
      readonly name: OwnName;
      readonly options: BraidOptions;
      /** The options as the user wrote them: the column `option`. */
      readonly said: string;
    }
  | {
      readonly kind: "peer";
      readonly name: PeerName;
      readonly said: "";
      /** Whether the user named it. A missing default is only reported. */
      readonly asked: boolean;
    };

const ownNames = keysOf(ownOptions);
const peerNames = keysOf(peerImplementations);
export const implementationNames: readonly string[] = [...ownNames, ...peerNames];

/** The alternative values of each option, in the given order. */
export type Alternatives = readonly (readonly [option: string, values: readonly string[]])[];

/** Reads `NAME[;option=value,...]`. Throws `option-value` and `option-unknown`, which name `place`. */
export function parseImplementations(text: string, place: string): readonly Implementation[] {
  const [name = "", ...rest] = text.split(";").map((part) => part.trim());
  const alternatives = rest.map((part): readonly [string, readonly string[]] => {
    const [, option, values] = /^([A-Za-z]+)=(.+)$/.exec(part) ?? [];
    if (option === undefined || values === undefined) return badForm(part, place);
    return [option, values.split(",").map((value) => value.trim())];
  });
  return expandImplementations(name, alternatives, place);
}

/**
 * Every combination of the alternatives. Names may use _ for -, as in DDLB. Throws `option-value` and `option-unknown`.
 */
export function expandImplementations(
  given: string,
  alternatives: Alternatives,
  place: string,
): readonly Implementation[] {
  const name = given.replaceAll("_", "-");
  if (isOneOf(peerNames, name)) {
    for (const [option] of alternatives) unknownOption(name, option, [], place);
    return [{ kind: "peer", name, said: "", asked: true }];
  }
  if (!isOneOf(ownNames, name)) return unknownName(given, place);
  const known: readonly BraidOption[] = ownOptions[name];
  let combinations: readonly { readonly options: BraidOptions; readonly said: string }[] = [{ options: {}, said: "" }];
  const seen = new Set<string>();
  for (const [option, values] of alternatives) {
    if (!isOneOf(known, option)) return unknownOption(name, option, known, place);
    if (seen.has(option)) return twice(option, place);
    seen.add(option);
    const read = values.map((value) => ({ value, options: readValue(option, value, place) }));
    combinations = combinations.flatMap((combination) =>
      read.map(({ value, options }) => ({
        options: { ...combination.options, ...options },
        said: [combination.said, `${option}=${value}`].filter((part) => part !== "").join(", "),
      })),
    );
  }
  return combinations.map((combination) => ({ kind: "braid", name, ...combination }));
}

function readValue(option: BraidOption, text: string, place: string): BraidOptions {
  const { kind } = braidOptionRow(option);
  const value = kind.read(text);
  if (value !== undefined) return { [option]: value };
  return fail({
    code: "option-value",
    message: `option ${option} of an implementation has a bad value`,
    place: { kind: "option", text: place },
    found: `${option}=${text}`,
    expected: kind.expected,
    help: `write it like ${option}=${kind.example}; several values are separated by commas`,
  });
}

function badForm(part: string, place: string): never {
  return fail({
    code: "option-value",
    message: "an implementation cannot be parsed",
    place: { kind: "option", text: place },
    found: part === "" ? "nothing after a ;" : part,
    expected: "NAME[;option=value,...]",
    help: 'write it like "braid;form=rotated;protocol=get,put", in quotation marks',
  });
}

function unknownName(name: string, place: string): never {
  return fail({
    code: "option-unknown",
    message: `there is no implementation ${name}`,
    place: { kind: "option", text: place },
    found: name === "" ? "nothing" : name,
    expected: `one of ${implementationNames.join(", ")}`,
    help: suggestion(name, implementationNames, "name one of these"),
  });
}

function unknownOption(name: string, option: string, known: readonly string[], place: string): never {
  return fail({
    code: "option-unknown",
    message: `${name} has no option ${option}`,
    place: { kind: "option", text: place },
    found: option,
    expected: known.length === 0 ? "no options" : `one of ${known.join(", ")}`,
    help: suggestion(option, known, "leave it out"),
  });
}

function twice(option: string, place: string): never {
  return fail({
    code: "option-value",
    message: `option ${option} of an implementation is given twice`,
    place: { kind: "option", text: place },
    found: `${option}=... a second time`,
    expected: "each option once, its values separated by commas",
    help: `join the values: ${option}=A,B`,
  });
}
