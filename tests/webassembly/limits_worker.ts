/** For configure_test.ts: a separate realm that sets limits of the namespace, and reports what exceeds them. */
import { configure, WebAssembly } from "@waft/engine/webassembly";
import { serve } from "../support/test_worker.ts";
import { wasm } from "./subject.ts";

/** The result of `action`, or its error in words. */
function attempt(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
}

const LIST = wasm(`(module
  (type $list (struct (field (ref null $list)))) (global $list (mut (ref null $list)) (ref.null $list))
  (func (export "f") (loop $next (global.set $list (struct.new $list (global.get $list))) (br $next))))`);

serve(() => {
  const unknown = attempt(() => configure({ limits: { maxPages: 3 } as object }));
  configure({ limits: { maxMemoryPages: 3, maxTableElements: 8, maxHeapBytes: 131072 } });
  const memory = new WebAssembly.Memory({ initial: 2, maximum: 100 });
  const table = new WebAssembly.Table({ element: "anyfunc", initial: 7 });
  const module = (pages: number) =>
    new WebAssembly.Module(
      wasm(`(module (memory ${pages}) (func (export "grow") (result i32) (memory.grow (i32.const 3))))`),
    );
  const answers = {
    memory: attempt(() => new WebAssembly.Memory({ initial: 4 })),
    grown: `${memory.grow(1)}, ${attempt(() => memory.grow(1))}`,
    shared: attempt(() => new WebAssembly.Memory({ initial: 4, maximum: 4, shared: true })),
    table: attempt(() => new WebAssembly.Table({ element: "externref" as "anyfunc", initial: 9 })),
    elements: `${table.grow(1)}, ${attempt(() => table.grow(1))}`,
    module: attempt(() => new WebAssembly.Instance(module(4))),
    code: (new WebAssembly.Instance(module(1)).exports as { grow(): number }).grow(),
    objects: attempt(() => (new WebAssembly.Instance(new WebAssembly.Module(LIST)).exports as { f(): void }).f()),
    unknown,
  };
  return answers;
});
