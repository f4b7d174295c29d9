/**
 * The replacement for `Deno.test` on other JavaScript runtimes. In: the tests that files register. Out: the list that
 * test_runner.ts runs. A separate module, since the runner imports the test files and they import this.
 */

/** The used subset of Deno's test context. */
export interface TestContext {
  step(name: string, run: (context: TestContext) => unknown): Promise<boolean>;
}

type TestFunction = (context: TestContext) => unknown;

/** A registered test. */
interface Test {
  readonly name: string;
  readonly ignore?: boolean;
  readonly fn: TestFunction;
}

/** The registered tests. */
export const tests: Test[] = [];

/** Replaces `Deno.test` in the forms that this tree uses. */
export function registerTest(
  first: string | (Omit<Test, "fn"> & { readonly fn?: TestFunction }),
  second?: TestFunction | { readonly ignore?: boolean },
  third?: TestFunction,
): void {
  if (typeof first !== "string") tests.push({ ...first, fn: first.fn ?? second as TestFunction });
  else if (typeof second === "function") tests.push({ name: first, fn: second });
  else tests.push({ name: first, ...second, fn: third! });
}
