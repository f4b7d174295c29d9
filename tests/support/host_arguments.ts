/**
 * How a child process of the JavaScript runtime that runs the tests is given a program: in: the program's file; out: arguments for
 * `process.execPath`. Deno needs a word and permissions, Node and Bun need neither.
 */

/** Arguments that run `path` with all permissions. */
export function hostArguments(path: string): string[] {
  return (globalThis as { Deno?: unknown }).Deno === undefined ? [path] : ["run", "-A", path];
}
