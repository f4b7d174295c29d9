/**
 * For configure_test.ts: a separate realm whose namespace caches compiled modules in the folder that it receives in a
 * message.
 */
import { configure, WebAssembly } from "@waft/engine/webassembly";
import { serve } from "../support/test_worker.ts";
import { wasm } from "./subject.ts";

serve((directory: string) => {
  configure({ tier: "optimizing", cache: { directory } });
  const module = new WebAssembly.Module(wasm(`(module (func (export "f") (result i32) (i32.const 42)))`));
  const { f } = new WebAssembly.Instance(module).exports as { f(): number };
  let late = "";
  try {
    configure({});
  } catch (error) {
    late = (error as Error).message;
  }
  return { answer: f(), late };
});
