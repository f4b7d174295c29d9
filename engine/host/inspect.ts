/**
 * Formatting of public objects in logs. In: a prototype and the words for its objects. Out: `console.log` and
 * `util.inspect` print one line on Deno, Node and Bun. Invariant: the declared types have no member for this.
 */

/** The keys of the methods by which runtimes let objects format themselves: Node and Bun, Deno. */
const KEYS = [Symbol.for("nodejs.util.inspect.custom"), Symbol.for("Deno.customInspect")];

/** Formats the objects of `prototype` by `words`. */
export function formatAs<T extends object>(prototype: T, words: (object: T) => string): void {
  const value = function (this: T): string {
    return words(this);
  };
  for (const key of KEYS) Object.defineProperty(prototype, key, { value, configurable: true, writable: true });
}
