/** Limits of calls of components: enforced where calls are synchronous, refused where tasks outlive them. */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";

const engine = NewEngine({ interruptible: true, fuel: true });

/** An instance whose function `f` returns 7 and whose `spin` never returns. */
function instanceWith(definitions: string) {
  const text = `(component
    (core module $m (func (export "f") (result i32) (i32.const 7)) (func (export "spin") (loop (br 0))))
    (core instance $i (instantiate $m))
    ${definitions}
    (func (export "f") (result u32) (canon lift (core func $i "f")))
    (func (export "spin") (canon lift (core func $i "spin"))))`;
  return compileComponent(engine, componentToBinary(text)).instantiate();
}

Deno.test("a synchronous component's calls are stopped by deadline and fuel", () => {
  assert.equal(instanceWith("").call({ deadline: 60_000, fuel: 1000 }, "f"), 7);
  assert.throws(() => instanceWith("").call({ deadline: 20 }, "spin"), { code: "interrupted" });
  assert.throws(() => instanceWith("").call({ fuel: 1000 }, "spin"), { code: "out-of-fuel" });
});

Deno.test("a component that uses async refuses limits, which nothing would enforce", () => {
  const definitions = "(core func (canon backpressure.inc))";
  const instance = instanceWith(definitions);
  const { signal } = new AbortController();
  for (const context of [{ deadline: 1000 }, { fuel: 1000 }, { processorTime: 1000 }, { signal }]) {
    const message = `Calls of a component that uses async cannot have the limit "${Object.keys(context)[0]}" yet`;
    assert.throws(() => instance.call(context, "f"), { name: "TypeError", message });
  }
});
