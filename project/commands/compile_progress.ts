/**
 * How a slow compilation is shown: on a terminal, from a thread of its own. In: nothing. Out: what says that it begins.
 */

/** Starts the line for a compilation; what it returns ends the line. */
export async function compileProgress(): Promise<(what: string) => () => void> {
  const { default: process } = await import("node:process");
  return process.stderr.isTTY === true ? (await import("../base/progress.ts")).startBlocking : () => () => {};
}
