/** Reads a text of one or more modules, which `// -----` separates, with their functions. */
import { type AttributeAliases, noAttributes, readAtom, readDictionary, readType } from "./attributes.ts";
import type { Attribute, BlockArgument, MlirFunction, MlirModule, Operation, Type } from "./nodes.ts";
import { readArgumentRest, readArguments, readOperation, readRegion, skipLocation } from "./operations.ts";
import {
  createMlirScanner,
  expectMlir,
  expectForm,
  failExpectedMlir,
  isNext,
  peekMlir,
  peekWord,
  type MlirScanner,
  takeMlir,
  takeForm,
  unquoted,
} from "./scanner.ts";

export function readModules(text: string, file: string): readonly MlirModule[] {
  const modules: MlirModule[] = [];
  const separator = /^\/\/ -----[^\n]*$/gmu;
  for (let start = 0; start <= text.length;) {
    separator.lastIndex = start;
    const found = separator.exec(text);
    const end = found?.index ?? text.length;
    // Positions stay those of the whole text.
    const scanner = createMlirScanner(file, end === text.length ? text : text.slice(0, end), start);
    const definitions: AttributeAliases = {
      aliases: new Map(),
      types: new Map(),
      lines: new Map(),
    };
    const open: OpenModule = { attributes: noAttributes, functions: new Map(), operations: [] };
    readTop(scanner, definitions, open, null);
    modules.push(open);
    start = found === null ? text.length + 1 : end + found[0].length;
  }
  return modules;
}

interface OpenModule {
  attributes: ReadonlyMap<string, Attribute>;
  readonly functions: Map<string, MlirFunction>;
  readonly operations: Operation[];
}

/** What stands in a module, or beside modules: `#alias = ..`, `module`, functions, ops. */
function readTop(scanner: MlirScanner, definitions: AttributeAliases, module: OpenModule, opened: number | null): void {
  for (;;) {
    const code = peekMlir(scanner);
    if (Number.isNaN(code)) {
      if (opened === null) return;
      failExpectedMlir(scanner, '"}" for the "{" of the module', opened);
    }
    if (opened !== null && takeMlir(scanner, "}")) return;
    if (code === hash || code === bang) readAlias(scanner, definitions);
    else readTopLevel(scanner, definitions, module);
  }
}

const [hash, bang] = [35, 33];

/** `#loc1 = loc("x")` and `#map = affine_map<..>`; types with a name are only skipped. */
function readAlias(scanner: MlirScanner, definitions: AttributeAliases): void {
  const name = expectForm(scanner, "alias", "a definition");
  expectMlir(scanner, "=");
  if (name.startsWith("!")) return void readType(scanner, definitions);
  if (peekWord(scanner) === "loc") return skipLocation(scanner);
  definitions.aliases.set(name.slice(1), readAtom(scanner, definitions));
}

function readTopLevel(scanner: MlirScanner, definitions: AttributeAliases, module: OpenModule): void {
  const { position } = scanner;
  const word = peekWord(scanner);
  if (word === "module" || word === "builtin.module") {
    takeForm(scanner, "word");
    takeForm(scanner, "symbol");
    if (takeWord(scanner, "attributes")) module.attributes = readDictionary(scanner, definitions);
    const opened = scanner.position;
    expectMlir(scanner, "{");
    readTop(scanner, definitions, module, opened);
    return skipLocation(scanner);
  }
  if (word === "func.func" || word === "func") {
    takeForm(scanner, "word");
    return addFunction(scanner, module, readFunction(scanner, definitions, position));
  }
  const operation = readOperation(scanner, definitions);
  if (operation.name === "builtin.module") {
    module.attributes = operation.attributes;
    for (const each of operation.regions[0]?.operations ?? []) addOperation(scanner, module, each);
  } else addOperation(scanner, module, operation);
}

function addOperation(scanner: MlirScanner, module: OpenModule, operation: Operation): void {
  if (operation.name === "func.func") addFunction(scanner, module, genericFunction(scanner, operation));
  else module.operations.push(operation);
}

function addFunction(scanner: MlirScanner, { functions }: OpenModule, made: MlirFunction): void {
  if (functions.has(made.name)) failExpectedMlir(scanner, `one function @${made.name}`, made.position);
  functions.set(made.name, made);
}

function takeWord(scanner: MlirScanner, word: string): boolean {
  if (peekWord(scanner) !== word) return false;
  takeForm(scanner, "word");
  return true;
}

/** `public @main(%arg0: t {..}) -> (t {..}) attributes {..} { ops }`, after `func.func`. */
function readFunction(scanner: MlirScanner, definitions: AttributeAliases, position: number): MlirFunction {
  const visibility = ["public", "private", "nested"].find((word) => takeWord(scanner, word)) ?? "public";
  const name = unquoted(expectForm(scanner, "symbol", "the name of a function"));
  expectMlir(scanner, "(");
  const isDeclared = peekMlir(scanner) !== percent;
  const given = isDeclared ? readUnnamed(scanner, definitions) : readArguments(scanner, definitions);
  const results = takeMlir(scanner, "->") ? readResultTypes(scanner, definitions) : [];
  if (takeWord(scanner, "attributes")) readDictionary(scanner, definitions);
  const body = isNext(scanner, "{") ? readRegion(scanner, definitions, []).operations : null;
  skipLocation(scanner);
  return {
    name,
    isPublic: visibility === "public",
    arguments: given,
    resultTypes: results.map(({ type }) => type),
    resultAttributes: results.map(({ attributes }) => attributes),
    body,
    position,
  };
}

const percent = 37;

/** The arguments of a declaration have no names. */
function readUnnamed(scanner: MlirScanner, definitions: AttributeAliases): readonly BlockArgument[] {
  const list: BlockArgument[] = [];
  while (!takeMlir(scanner, ")")) {
    if (list.length > 0) expectMlir(scanner, ",");
    list.push(readArgumentRest(scanner, definitions, `%arg${list.length}`, scanner.position));
  }
  return list;
}

function readResultTypes(
  scanner: MlirScanner,
  definitions: AttributeAliases,
): readonly { readonly type: Type; readonly attributes: ReadonlyMap<string, Attribute> }[] {
  if (!takeMlir(scanner, "(")) return [{ type: readType(scanner, definitions), attributes: noAttributes }];
  return readUnnamed(scanner, definitions);
}

/** `"func.func"() <{sym_name = "main", function_type = (t) -> t, ..}> ({ ^bb0(%arg0: t): ops }) : () -> ()` */
function genericFunction(scanner: MlirScanner, { attributes, regions, position }: Operation): MlirFunction {
  const name = attributes.get("sym_name");
  const [region] = regions;
  if (name?.kind !== "string" || region === undefined) {
    return failExpectedMlir(scanner, "a function with sym_name and one region", position);
  }
  const visibility = attributes.get("sym_visibility");
  const listed = (key: string): readonly ReadonlyMap<string, Attribute>[] => {
    const list = attributes.get(key);
    const items = list?.kind === "group" ? list.items : [];
    return items.map((item) => (item.kind === "group" ? item.entries : noAttributes));
  };
  const [own, ofResults] = [listed("arg_attrs"), listed("res_attrs")];
  const resultTypes = region.operations.at(-1)?.operandTypes ?? [];
  return {
    name: name.text,
    isPublic: visibility?.kind !== "string" || visibility.text === "public",
    arguments: region.arguments.map((each, i) => ({ ...each, attributes: own[i] ?? each.attributes })),
    resultTypes,
    resultAttributes: resultTypes.map((_, i) => ofResults[i] ?? noAttributes),
    body: region.operations,
    position,
  };
}
