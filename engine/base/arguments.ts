/**
 * Checks of API arguments. In: a value, and its name in words. Out: the value, or an error that names the argument and
 * its value, and for a misspelled name the nearest known one. Invariant: each getter of the value runs at most once.
 */

/** A value, formatted for an error message. */
export function inWords(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
    case "bigint":
      return `${value}n`;
    case "function":
      return "a function";
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    default:
      return String(value);
  }
}

/** Returns `value` if it is a whole number of at most `most`; throws RangeError, prefixed with `what`, otherwise. */
export function wholeNumber(value: unknown, what: string, most: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most) return value;
  const bound = most === Number.MAX_SAFE_INTEGER ? "of at least 0" : `from 0 to ${most}`;
  throw new RangeError(`${what} must be a whole number ${bound}, not ${inWords(value)}`);
}

/** Throws unless `value` is a boolean or undefined. */
export function requireBoolean(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== "boolean") {
    throw new TypeError(`${what} must be true or false, not ${inWords(value)}`);
  }
}

/** The bytes in `value`. Throws TypeError, prefixed with `what`, unless it is a Uint8Array or an ArrayBuffer. */
export function bytesIn(value: unknown, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new TypeError(`${what} must be a Uint8Array or an ArrayBuffer, not ${inWords(value)}`);
}

/** Throws unless `value` is an array of strings or undefined. */
export function requireTexts(value: unknown, what: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value)) throw new TypeError(`${what} must be an array of strings, not ${inWords(value)}`);
  for (const text of value) {
    if (typeof text !== "string") throw new TypeError(`${what} must be an array of strings, without ${inWords(text)}`);
  }
}

/** Throws unless `value` is an object with named fields. */
export function requireRecord(value: unknown, what: string): asserts value is object {
  if (!isRecord(value)) throw new TypeError(`${what} must be an object, not ${inWords(value)}`);
}

/** Whether `value` is an object with named fields. */
export function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Throws for names that are not in `known`, own or inherited: a misspelled option must not be ignored. The last object
 * of the prototype chain does not count, since programs add enumerable properties to Object.prototype.
 */
export function requireKnownNames(what: string, given: object, known: object): void {
  let holder: object | null = given;
  while (holder !== null) {
    const next: object | null = Object.getPrototypeOf(holder);
    if (next === null && holder !== given) return;
    for (const name of Object.keys(holder)) {
      if (!Object.hasOwn(known, name)) throw unknownName(what, name, Object.keys(known));
    }
    holder = next;
  }
}

/** The error for an unknown name. */
export function unknownName(what: string, name: string, known: readonly string[]): TypeError {
  const near = nearestName(name, known);
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  return new TypeError(`Unknown ${what} "${name}"${hint}`);
}

/** The known name that `name` probably means: in another case, or with at most a third of its characters wrong. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let least = Math.floor(Math.max(wanted.length, 3) / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/**
 * Edit distance of two short names: insertions, deletions, replacements and transpositions (optimal string alignment).
 */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let k = 0; k < b.length; k++) {
      const swapped = i > 0 && k > 0 && a[i] === b[k - 1] && a[i - 1] === b[k] ? before[k - 1] + 1 : Infinity;
      next.push(Math.min(row[k] + (a[i] === b[k] ? 0 : 1), row[k + 1] + 1, next[k] + 1, swapped));
    }
    [before, row] = [row, next];
  }
  return row[b.length];
}
