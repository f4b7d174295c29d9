/**
 * The part of AssemblyScript's compiler that the generators use. Its own declarations change those of the global
 * `Array`, `Map` and `String` for everything that is checked with them: `at`, `get` and `pop` would never be undefined.
 */

/** Sources of the library by name, without suffix. */
export const libraryFiles: Record<string, string>;

declare const asc: {
  /** Compiles with the options of the command line; files are read and written by the callbacks. */
  main(
    args: readonly string[],
    files: {
      readFile(name: string): string | null;
      writeFile(name: string, contents: Uint8Array | string): void;
      listFiles(): string[];
    },
  ): Promise<{ readonly error: Error | null; readonly stderr: { toString(): string } }>;
};
export default asc;
