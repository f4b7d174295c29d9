/**
 * Runs scripts for testharness.js, in which the tests of the JavaScript interface are written. In: the text of a script
 * and of the files that it names, and a namespace. Out: the outcome of each of its tests. Covers the functions that
 * those scripts use.
 */

/** The outcome of a test; undefined if it passed. */
interface TestOutcome {
  readonly name: string;
  readonly failure: string | undefined;
}

class AssertionFailure extends Error {}

function check(condition: boolean, message: string, description?: unknown): void {
  if (!condition) {
    throw new AssertionFailure(description === undefined ? message : `${String(description)}: ${message}`);
  }
}

function show(value: unknown): string {
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "object" && value !== null ? Object.prototype.toString.call(value) : String(value);
}

type ErrorClass = new (...args: never[]) => unknown;

function isError(error: unknown, kind: ErrorClass): boolean {
  return typeof error === "object" && error !== null && (error as Error).constructor === kind;
}

/** The functions for assertions. */
const ASSERTIONS = {
  assert_true: (value: unknown, about?: string) => check(value === true, `${show(value)} is not true`, about),
  assert_false: (value: unknown, about?: string) => check(value === false, `${show(value)} is not false`, about),
  assert_equals: (actual: unknown, expected: unknown, about?: string) =>
    check(Object.is(actual, expected), `${show(actual)} is not ${show(expected)}`, about),
  assert_not_equals: (actual: unknown, expected: unknown, about?: string) =>
    check(!Object.is(actual, expected), `${show(actual)} is unexpected`, about),
  assert_array_equals(actual: ArrayLike<unknown>, expected: ArrayLike<unknown>, about?: string) {
    const lists = `${show(actual)} is not ${show(expected)}`;
    check(actual.length === expected.length, lists, about);
    for (let i = 0; i < expected.length; i++) check(Object.is(actual[i], expected[i]), `${lists} at ${i}`, about);
  },
  assert_class_string: (value: unknown, name: string, about?: string) =>
    check(Object.prototype.toString.call(value) === `[object ${name}]`, `${show(value)} is not a ${name}`, about),
  assert_own_property: (object: object, name: string, about?: string) =>
    check(Object.hasOwn(object, name), `${String(name)} is missing`, about),
  assert_not_own_property: (object: object, name: string, about?: string) =>
    check(!Object.hasOwn(object, name), `${String(name)} is unexpected`, about),
  assert_unreached: (about?: string) => check(false, "reached", about),
  assert_implements: (value: unknown, about?: string) => check(Boolean(value), "not implemented", about),
  assert_throws_js(kind: ErrorClass, action: () => unknown, about?: string): void {
    let thrown: unknown;
    let ended = false;
    try {
      action();
      ended = true;
    } catch (error) {
      thrown = error;
    }
    check(!ended, `no ${kind.name}`, about);
    check(isError(thrown, kind), `${show(thrown)} is not a ${kind.name}`, about);
  },
  async promise_rejects_js(_test: unknown, kind: ErrorClass, promise: Promise<unknown>, about?: string) {
    const thrown = await promise.then(() => undefined, (error: unknown) => error);
    check(isError(thrown, kind), `${show(thrown)} is not a ${kind.name}`, about);
  },
  /** The form of assert_throws_js before it had a name of its own. */
  assert_throws(expected: Error, action: () => unknown, about?: string): void {
    ASSERTIONS.assert_throws_js(expected.constructor as ErrorClass, action, about);
  },
  /** The form of promise_rejects_js before it had a name of its own. */
  async promise_rejects(_test: unknown, expected: Error, promise: Promise<unknown>, about?: string) {
    const thrown = await promise.then(() => undefined, (error: unknown) => error);
    check((thrown as Error)?.name === expected.name, `${show(thrown)} is not a ${expected.name}`, about);
  },
  format_value: show,
  setup: (action: unknown) => typeof action === "function" ? action() : undefined,
} as const;

/** Actions for the end of the current test. */
const cleanups: (() => void)[] = [];

/** The object of a test. */
const TEST = {
  step: (action: () => unknown) => action(),
  unreached_func: (about: string) => () => ASSERTIONS.assert_unreached(about),
  add_cleanup: (action: () => void) => void cleanups.push(action),
};

/** Runs `scripts`, the last of which has the tests, with `namespace` as `WebAssembly`. */
export async function runScripts(scripts: readonly string[], namespace: object): Promise<TestOutcome[]> {
  const tests: { name: string; run: () => unknown }[] = [];
  const add = (run: (test: object) => unknown, name = `test ${tests.length + 1}`) => {
    tests.push({ name, run: () => run(TEST) });
  };
  const scope = { ...ASSERTIONS, test: add, promise_test: add };
  const globals = { WebAssembly: namespace, self: { ...globalThis, WebAssembly: namespace }, ...scope };
  const program = new Function(...Object.keys(globals), scripts.join("\n;\n"));
  program(...Object.values(globals));
  const outcomes: TestOutcome[] = [];
  for (const { name, run } of tests) {
    let failure: string | undefined;
    try {
      await run();
    } catch (error) {
      failure = error instanceof Error ? `${error.name}: ${error.message}` : show(error);
    }
    for (const action of cleanups.splice(0)) action();
    outcomes.push({ name, failure });
  }
  return outcomes;
}
