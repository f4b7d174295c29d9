/**
 * Constants as AssemblyScript. In: a name and a value that was computed when the module loaded. Out: a declaration on
 * one line: an integer, a number, a truth value, a namespace for an object of integers, static data for a typed array
 * or an array of integers; undefined for values that the compiler's code cannot use.
 */

const ELEMENTS: ReadonlyMap<string, string> = new Map([
  ["Uint8Array", "u8"],
  ["Int8Array", "i8"],
  ["Uint16Array", "u16"],
  ["Int16Array", "i16"],
  ["Int32Array", "i32"],
  ["Float64Array", "f64"],
]);

/** Names that no field of a namespace can have. */
const RESERVED = new Set(["throw", "delete", "new", "return", "switch", "default", "import", "export"]);

function isInteger(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= -0x80000000 && value <= 0xffffffff &&
    !Object.is(value, -0);
}

function numberText(name: string, value: number, isFloat: boolean): string {
  if (!isFloat && isInteger(value)) return `const ${name}: i32 = ${value | 0};`;
  return `const ${name}: f64 = ${Number.isInteger(value) ? `${value}.0` : value};`;
}

/** The declaration of constant `name`; `isFloat`: the source declares a number that is no integer. */
export function constantText(name: string, value: unknown, isExported: boolean, isFloat = false): string | undefined {
  const text = plainText(name, value, isFloat);
  return text !== undefined && isExported ? `export ${text}` : text;
}

function plainText(name: string, value: unknown, isFloat: boolean): string | undefined {
  if (typeof value === "number") return numberText(name, value, isFloat);
  if (typeof value === "boolean") return `const ${name}: bool = ${value};`;
  if (typeof value !== "object" || value === null) return undefined;
  const element = ELEMENTS.get(value.constructor?.name ?? "");
  if (element !== undefined) {
    return `const ${name}: StaticArray<${element}> = [${(value as Uint8Array).join(", ")}];`;
  }
  if (Array.isArray(value)) {
    if (value.length === 0 || !value.every(isInteger)) return undefined;
    return `const ${name}: StaticArray<i32> = [${value.map((n) => n | 0).join(", ")}];`;
  }
  const entries = Object.entries(value);
  if (entries.length === 0 || !entries.every(([, field]) => isInteger(field))) return undefined;
  const fields = entries.filter(([key]) => /^[A-Za-z_]\w*$/.test(key) && !RESERVED.has(key))
    .map(([key, field]) => `export const ${key}: i32 = ${(field as number) | 0};`);
  return `namespace ${name} { ${fields.join(" ")} }`;
}
