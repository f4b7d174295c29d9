/**
 * Stands in for `Deno.test` on other JavaScript runtimes: in: what test files register; out: the list, which test_runner.ts runs. A module of
 * its own, since the runner waits for test files and they cannot wait for it.
 */

/** What tests use of Deno's test context. */
export interface TestContext {
  step(name: string, run: (context: TestContext) => unknown): Promise<boolean>;
}

type TestFunction = (context: TestContext) => unknown;

/** A test as it was registered. */
export interface Test {
  readonly name: string;
  readonly ignore?: boolean;
  readonly fn: TestFunction;
}

/** What was registered and not taken yet. */
export const tests: Test[] = [];

/** Stands in for `Deno.test` in the forms that this tree uses. */
export function registerTest(
  first: string | (Omit<Test, "name"> & { readonly name: string }),
  second?: TestFunction | { readonly ignore?: boolean },
  third?: TestFunction,
): void {
  if (typeof first !== "string") tests.push(first);
  else if (typeof second === "function") tests.push({ name: first, fn: second });
  else tests.push({ name: first, ...second, fn: third! });
}
