/**
 * Makes the methods of the language's own types constant in the thread of a program file: Braid runs there with the same
 * ones. A file that replaces one throws at that line. New methods may be added, and objects may have their own.
 */

/** Not those of every object, function, error and promise, which packages do set on objects of theirs. */
const types: readonly object[] = [Array, BigInt, Map, Math, Number, Object, Reflect, RegExp, Set, String];

/** What older classes set on the prototypes that they derive. */
const derived: ReadonlySet<string | symbol> = new Set(["constructor", "toString"]);

export function keepBuiltins(): void {
  for (const type of types) {
    keepMethods(type);
    const prototype: unknown = Reflect.get(type, "prototype");
    if (typeof prototype === "object" && prototype !== null && prototype !== Object.prototype) keepMethods(prototype);
  }
}

function keepMethods(owner: object): void {
  for (const key of Reflect.ownKeys(owner)) {
    if (derived.has(key) || typeof Reflect.getOwnPropertyDescriptor(owner, key)?.value !== "function") continue;
    Reflect.defineProperty(owner, key, { writable: false, configurable: false });
  }
}
