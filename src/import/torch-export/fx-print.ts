/** An exported program as PyTorch prints it, which fx-text.ts reads. The values of weights stay in the file. */
import { atenOverloads } from "./build.ts";
import { type Argument, type ExportedGraph, type GraphNode, isList, isValue, torchDTypesByName } from "./graph.ts";
import type { ExportedProgram } from "./read.ts";

type IsNamed = (node: GraphNode, place: number, i: number) => boolean;

/** `isNamed`: whether argument `place` of a node is printed by name; by default one that the op has no place for. */
export function printFxText({ graph }: Pick<ExportedProgram, "graph">, isNamed: IsNamed = hasNoPlace): string {
  let file = "";
  const lines = graph.nodes.flatMap((node, i) => {
    const { target, inputs, outputs, source } = node;
    const args = [...inputs].map(([name, argument], place) =>
      isNamed(node, place, i) ? `${name} = ${printed(argument)}` : printed(argument),
    );
    const call = `${target}(${args.join(", ")})`;
    const [output] = outputs;
    // Checks of assumptions have no results, and no row.
    if (output === undefined) return [];
    const from = source === null ? "# No stacktrace" : `# File: ${source.path}:${source.line} in forward`;
    const comment = from === file ? [] : [from];
    file = from;
    if (outputs.length === 1) return [...comment, `${annotated(graph, output)} = ${call}`];
    const parts = outputs.map((name, part) =>
      name === "" ? [] : [`${annotated(graph, name)} = results_${i}[${part}]`],
    );
    return [...comment, `results_${i} = ${call}`, ...parts.flat()];
  });
  const parameters = graph.inputs.flatMap((input) => (input.kind === "fixed" ? [] : [annotated(graph, input.value)]));
  const body = [...lines, `return (${graph.outputs.join(", ")},)`];
  return [
    "ExportedProgram:",
    "    class GraphModule(torch.nn.Module):",
    `        def forward(self, ${parameters.join(", ")}):`,
    ...body.map((line) => `            ${line}`),
    "",
    "Graph signature:",
    ...graph.inputs.flatMap((input) =>
      input.kind === "user" || input.kind === "fixed"
        ? []
        : [`    ${input.value}: ${signatureWords[input.kind]} target='${input.name}'`],
    ),
    "",
  ].join("\n");
}

const signatureWords = { parameter: "PARAMETER", buffer: "BUFFER", constant: "CONSTANT_TENSOR" } as const;

const hasNoPlace: IsNamed = ({ target, inputs }, place) => {
  const { parameters } = atenOverloads.get(target) ?? {};
  return parameters !== undefined && [...inputs.keys()].slice(0, place + 1).some((name, i) => parameters[i] !== name);
};

/** As PyTorch's generated code has it. */
function printed(argument: Argument): string {
  if (argument === null) return "None";
  if (typeof argument === "boolean") return argument ? "True" : "False";
  if (typeof argument === "number") return String(argument).replace("Infinity", "inf").replace("NaN", "nan");
  if (typeof argument === "string") return `'${argument}'`;
  if (isList(argument)) return `[${argument.map(printed).join(", ")}]`;
  if (isValue(argument)) return argument.name;
  return argument.kind === "dtype" ? `torch.${argument.dtype.name}` : "device(type='cpu')";
}

const shortNames = new Map([...torchDTypesByName].map(([short, { name }]) => [name, short]));

function annotated({ tensors }: ExportedGraph, name: string): string {
  const meta = tensors.get(name);
  if (meta === undefined) return name;
  const sizes = meta.sizes.map((size) => (typeof size === "number" ? size : size.expression));
  return `${name}: "${shortNames.get(meta.dtype.name) ?? ""}[${sizes.join(", ")}]"`;
}
