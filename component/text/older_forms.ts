/**
 * Forms of older versions of the component text, which tools wrote until 2025: for messages. In: a word that the
 * current form does not have there. Out: the form to write in its place.
 */

/** The current form by the word of an older one. */
const CURRENT: Readonly<Record<string, string>> = {
  "float32": "`f32`",
  "float64": "`f64`",
  "unit": "a function without a result, or `(tuple)`",
  "union": "`variant`, whose cases have names",
  "expected": "`(result OK (error ERROR))`",
  "refines": "a case of its own",
  "yield": "`thread.yield`",
  "task.yield": "`thread.yield`",
  "task.wait": "`waitable-set.wait`",
  "task.poll": "`waitable-set.poll`",
  "task.backpressure": "`backpressure.inc` and `backpressure.dec`",
  "backpressure.set": "`backpressure.inc` and `backpressure.dec`",
  "thread.spawn": "`thread.spawn-ref`",
  "thread.hw_concurrency": "`thread.available-parallelism`",
  "stream.close-readable": "`stream.drop-readable`",
  "stream.close-writable": "`stream.drop-writable`",
  "future.close-readable": "`future.drop-readable`",
  "future.close-writable": "`future.drop-writable`",
};

/** The form to write in place of an older word; undefined for other words. */
export function currentForm(word: string): string | undefined {
  return Object.hasOwn(CURRENT, word) ? CURRENT[word] : undefined;
}
