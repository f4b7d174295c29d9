/** Contexts and options: unknown names and wrong values are refused with a sentence that suggests the known name. */
import assert from "node:assert/strict";
import { type Context, Engine, NewEngine } from "@waft/engine";
import { promising } from "@waft/engine";
import { Wasi } from "@waft/engine/wasi";

const module = NewEngine({ interruptible: true, fuel: true }).compile(`(module
  (func (export "f") (result i32) (i32.const 1)) (func (export "spin") (loop (br 0))))`);
const instance = module.instantiate();

/** Contexts that a program might pass by mistake, and the sentence for each. */
const WRONG: readonly (readonly [context: unknown, message: string])[] = [
  [{ deadLine: 50 }, 'Unknown context field "deadLine"; did you mean "deadline"?'],
  [{ timeout: 50 }, 'Unknown context field "timeout"'],
  [{ fule: 5 }, 'Unknown context field "fule"; did you mean "fuel"?'],
  [{ deadline: 5, Signal: undefined }, 'Unknown context field "Signal"; did you mean "signal"?'],
  [{ limit: {} }, 'Unknown context field "limit"; did you mean "limits"?'],
  [Object.create({ deadLine: 50 }), 'Unknown context field "deadLine"; did you mean "deadline"?'],
  [undefined, "The first argument must be a context, such as {}, not undefined"],
  [null, "The first argument must be a context, such as {}, not null"],
  ["f", 'The first argument must be a context, such as {}, not "f"'],
  [5, "The first argument must be a context, such as {}, not 5"],
  [[], "The first argument must be a context, such as {}, not an array"],
  [() => {}, "The first argument must be a context, such as {}, not a function"],
];

const SIGNALS: readonly (readonly [signal: unknown, words: string])[] = [
  [5, "5"],
  ["abort", '"abort"'],
  [null, "null"],
  [{}, "an object"],
  [{ aborted: true }, "an object"],
];

Deno.test("contexts: other values are refused with a sentence, by every operation", async () => {
  for (const [given, message] of WRONG) {
    const context = given as Context;
    assert.throws(() => instance.call(context, "f"), { name: "TypeError", message });
    await assert.rejects(instance.callAsync(context, "f"), { name: "TypeError", message });
    if (given === undefined) continue; // the default
    assert.throws(() => module.instantiate(context), { name: "TypeError", message });
    await assert.rejects(module.instantiateAsync(context), { name: "TypeError", message });
    assert.throws(() => promising(instance.exports["f"] as () => number, context), { name: "TypeError", message });
    if (given !== null) assert.throws(() => module.pool({ context }), { name: "TypeError", message });
  }
});

Deno.test("contexts: a value other than a signal is refused with a sentence", async () => {
  for (const [signal, words] of SIGNALS) {
    const context = { signal } as Context;
    const expected = { name: "TypeError", message: `The context's signal must be an AbortSignal, not ${words}` };
    assert.throws(() => instance.call(context, "f"), expected);
    await assert.rejects(instance.callAsync(context, "f"), expected);
  }
});

Deno.test("contexts: settings of an instantiation are checked", () => {
  assert.throws(
    () => module.instantiate({ promises: "wait" as never }),
    /The context field promises must be "await" or "values"/,
  );
  assert.throws(() => module.instantiate({ errors: {} as never }), /The context field errors must be a function/);
  assert.throws(
    () => module.instantiate({ resettable: 1 as never }),
    /The context field resettable must be true or false/,
  );
  assert.throws(
    () => module.instantiate({ limits: { maxMemorypages: 5 } as never }),
    /did you mean "maxMemoryPages"\?/,
  );
});

Deno.test("contexts: a call without one names the first argument", () => {
  assert.throws(
    () => instance.call("f" as never, 2 as never),
    /^TypeError: The first argument must be a context, such as {}, not "f"$/,
  );
  assert.throws(() => instance.call({}, 5 as never), /^TypeError: The name of an export must be a string, not 5$/);
  assert.equal(instance.call({ deadline: undefined, fuel: undefined, signal: undefined }, "f"), 1);
});

/** Options with a mistake, and the sentence. */
const OPTIONS: readonly (readonly [make: () => unknown, message: RegExp])[] = [
  [() => NewEngine({ interruptable: true } as never), /Unknown option "interruptable"; did you mean "interruptible"\?/],
  [() => new Engine({ limit: {} } as never), /Unknown option "limit"; did you mean "limits"\?/],
  [() => NewEngine({ features: { SIMD: true } } as never), /Unknown feature "SIMD"; did you mean "simd"\?/],
  [
    () => NewEngine({ optimizations: { inlin: true } } as never),
    /Unknown optimization "inlin"; did you mean "inline"\?/,
  ],
  [() => NewEngine({ limits: { maxPages: 1 } } as never), /Unknown limit "maxPages"/],
  [() => NewEngine({ cache: { folder: "x" } } as never), /Unknown cache option "folder"/],
  [() => NewEngine({ interruptible: "yes" } as never), /option interruptible must be true or false, not "yes"/],
  [() => NewEngine({ fuel: 1000 } as never), /option fuel must be true or false, not 1000/],
  [() => NewEngine({ features: { simd: 1 } } as never), /feature simd must be true or false, not 1/],
  [() => NewEngine(5 as never), /options of an engine must be an object, not 5/],
  [() => module.pool({ sise: 5 } as never), /Unknown pool option "sise"; did you mean "size"\?/],
  [() => new Wasi({ preopen: [] } as never), /Unknown WASI option "preopen"; did you mean "preopens"\?/],
  [() => new Wasi({ stdio: [0, 1] } as never), /stdio is three descriptors/],
  [
    () => NewEngine().load("text" as never),
    /^TypeError: An artifact must be a Uint8Array or an ArrayBuffer, not "text"$/,
  ],
  [() => module.restore(null as never), /^TypeError: A snapshot must be a Uint8Array or an ArrayBuffer, not null$/],
];

Deno.test("options: an option without effect is refused", () => {
  for (const [make, message] of OPTIONS) assert.throws(make, message);
});
