/**
 * task.return with a resource of another type than the lifted function's: the number behind a handle of one resource
 * type must not become a handle of another one, which belongs to the host or to another component.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";

/**
 * An inner component passes a resource of its own with a number of its choice for a file of the host. Messages call the
 * types of both `resource`.
 */
function forging(returned: string): string {
  return `(component
  (import "host" (instance $host (export "resource" (type $f (sub resource)))
    (export "open" (func (result (own $f)))) (export "use" (func (param "f" (borrow $f)) (result u32)))))
  (alias export $host "resource" (type $file))
  (component $inner
    (import "file" (type $file (sub resource)))
    (import "open" (func $open (result (own $file))))
    (type $fake (resource (rep i32)))
    (core func $new (canon resource.new $fake))
    (core func $open (canon lower (func $open)))
    (core func $return (canon task.return (result (own ${returned}))))
    (core module $m
      (import "" "new" (func $new (param i32) (result i32)))
      (import "" "open" (func $open (result i32)))
      (import "" "return" (func $return (param i32)))
      (func (export "get") (result i32)
        (call $return ${returned === "$fake" ? "(call $new (i32.const 1))" : "(call $open)"}) (i32.const 0))
      (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
    (core instance $i (instantiate $m (with "" (instance
      (export "new" (func $new)) (export "open" (func $open)) (export "return" (func $return))))))
    (alias core export $i "callback" (core func $callback))
    (func (export "get") async (result (own $file))
      (canon lift (core func $i "get") async (callback $callback))))
  (alias export $host "open" (func $open))
  (instance $inner (instantiate $inner (with "file" (type $file)) (with "open" (func $open))))
  (core func $get (canon lower (func $inner "get")))
  (core func $use (canon lower (func $host "use")))
  (core module $m
    (import "" "get" (func $get (result i32))) (import "" "use" (func $use (param i32) (result i32)))
    (func (export "f") (result i32) (call $use (call $get))))
  (core instance $i (instantiate $m (with "" (instance (export "get" (func $get)) (export "use" (func $use))))))
  (func (export "f") async (result u32) (canon lift (core func $i "f"))))`;
}

class Resource {
  readonly number: number;
  constructor(number: number) {
    this.number = number;
  }
}

const use = (file: Resource | undefined) => file?.number ?? 99;

Deno.test("task.return takes handles of the function's own resource type only", async () => {
  const imports = { host: { Resource, open: () => new Resource(7), use } };
  const run = (returned: string) =>
    compileComponent(NewEngine(), forging(returned)).instantiate<{ f(): Promise<number> }>({}, imports).exports.f();
  assert.equal(await run("$file"), 7);
  await assert.rejects(run("$fake"), /invalid task.return signature: the result has another type/);
});
