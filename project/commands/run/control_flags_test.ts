/** Limits of the command line: plain numbers, numbers with units, those that are refused, and the start of the time. */
import assert from "node:assert/strict";
import { UsageError } from "../../base/failure.ts";
import { controlledEngine, runContext } from "./control_flags.ts";

Deno.test("limits: times in milliseconds or with a unit", () => {
  const time = (text: string) => runContext({ processorTime: text }).processorTime;
  for (
    const [text, ms] of [
      ["0", 0],
      ["1500", 1500],
      ["5ms", 5],
      ["5s", 5000],
      ["1.5s", 1500],
      ["2m", 120_000],
      [
        "1h",
        3_600_000,
      ],
      ["0.0001s", 1],
      ["8784h", 8784 * 3_600_000],
    ] as const
  ) {
    assert.equal(time(text), ms, text);
  }
  for (const text of ["", "5 s", "-1", "1.5", "5S", "5sec", "1e3", "s", "0x10", "5constructor"]) {
    assert.throws(
      () => time(text),
      (error: unknown) => error instanceof UsageError && /such as 5s/.test(error.message),
    );
  }
  for (const text of ["9000h", "99999999999", "9".repeat(400)]) assert.throws(() => time(text), /at most a year/, text);
  const { deadline } = runContext({ timeout: "1h" });
  assert.ok(Math.abs(Number(deadline) - Date.now() - 3_600_000) < 60_000);
});

Deno.test("limits: sizes of memories in pages or with a unit", () => {
  const pages = (text: string) => controlledEngine({}, { maxMemory: text }).limits?.maxMemoryPages;
  for (
    const [text, count] of [["0", 0], ["16", 16], ["64KiB", 1], ["100KiB", 1], ["256MiB", 4096], ["1.5GiB", 24576], [
      "16TiB",
      2 ** 28,
    ]] as const
  ) {
    assert.equal(pages(text), count, text);
  }
  for (const text of ["", "1KiB", "0.5KiB", "256MB", "256mib", "1.5", "-1", "256 MiB", "toString"]) {
    assert.throws(
      () => pages(text),
      (error: unknown) => error instanceof UsageError && /such as 256MiB/.test(error.message),
      text,
    );
  }
  for (const text of ["17TiB", "268435457", "9".repeat(400)]) {
    assert.throws(() => pages(text), /at most 268435456/, text);
  }
});

Deno.test("limits: the heap in the same units", () => {
  const limits = controlledEngine({ limits: { maxTableElements: 1 } }, { maxHeap: "2.5MiB", maxMemory: "1" }).limits;
  assert.deepEqual(limits, { maxTableElements: 1, maxMemoryPages: 1, maxHeapBytes: 2.5 * 2 ** 20 });
  assert.throws(() => controlledEngine({}, { maxHeap: "1MB" }), /--max-heap takes pages of 64 KiB/);
});

Deno.test("the time of --timeout runs from the first reading of the deadline", () => {
  const { now } = Date;
  let time = 1000;
  Date.now = () => time;
  try {
    const context = runContext({ timeout: "100", fuel: "5" });
    time = 5000;
    assert.deepEqual({ ...context }, { fuel: 5, deadline: new Date(5100) });
    time = 9000;
    assert.deepEqual(context.deadline, new Date(5100));
    assert.equal("deadline" in runContext({}), false);
    assert.throws(() => runContext({ timeout: "soon" }), /such as 5s/);
  } finally {
    Date.now = now;
  }
});
