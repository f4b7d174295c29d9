/**
 * Progress display of a slow compilation: a line on the terminal, drawn by a separate thread. Out: a function that
 * starts the display.
 */

/** Returns a function that starts the progress line of a compilation; the function it returns in turn ends the line. */
export async function compileProgress(): Promise<(what: string) => () => void> {
  const { default: process } = await import("node:process");
  return process.stderr.isTTY === true ? (await import("../../base/progress.ts")).startBlocking : () => () => {};
}
