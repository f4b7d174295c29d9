/**
 * The memory of the host that a component holds: handles, fields, bodies, datagrams and entries of tables count against
 * a quota, which dropping and a reset give back.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { hostBytesFor, HostQuota, sharesOf } from "../../component/async/host_quota.ts";
import { Fields } from "../../component/http/fields.ts";
import { OutgoingBody } from "../../component/http/body.ts";
import { OutgoingResponse } from "../../component/http/messages.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import { AsyncFields, AsyncResponse } from "../../component/http/v0_3/messages.ts";
import { DirectoryEntryStream } from "../../component/wasi/filesystem.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";

const engine = NewEngine();
const REASON = { message: /^the component holds more than 4194304 bytes of the host/ };
/** The smallest limit of the host's memory belongs to the smallest limits of memories. */
const SMALL = { limits: { maxMemoryPages: 4 } };

/** A component that makes fields of many entries and clones them: `hog` for ever, `churn` with a drop after each. */
const cloning = (version: string) =>
  compileComponent(
    engine,
    `(component
      (import "wasi:http/types@${version}" (instance $types
        (export "fields" (type $fields (sub resource)))
        (type $bytes (list u8))
        (type $error' (variant (case "invalid-syntax") (case "forbidden") (case "immutable")${
      version === "0.3.0" ? ' (case "size-exceeded") (case "other" (option string))' : ""
    }))
        (export "header-error" (type $error (eq $error')))
        (export "[constructor]fields" (func (result (own $fields))))
        (export "[method]fields.append" (func (param "self" (borrow $fields)) (param "name" string)
          (param "value" $bytes) (result (result (error $error)))))
        (export "[method]fields.clone" (func (param "self" (borrow $fields)) (result (own $fields))))))
      (alias export $types "fields" (type $fields))
      (core module $memory (memory (export "m") 1) (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
        (data (i32.const 1024) "x-kindtext"))
      (core instance $memory (instantiate $memory))
      (core func $new (canon lower (func $types "[constructor]fields")))
      (core func $append (canon lower (func $types "[method]fields.append")
        (memory (core memory $memory "m")) (realloc (core func $memory "realloc"))))
      (core func $clone (canon lower (func $types "[method]fields.clone")))
      (core func $drop (canon resource.drop $fields))
      (core module $main
        (import "h" "new" (func $new (result i32)))
        (import "h" "append" (func $append (param i32 i32 i32 i32 i32 i32)))
        (import "h" "clone" (func $clone (param i32) (result i32)))
        (import "h" "drop" (func $drop (param i32)))
        (func $fill (param $count i32) (result i32) (local $fields i32)
          (local.set $fields (call $new))
          (loop $more
            (call $append (local.get $fields) (i32.const 1024) (i32.const 6) (i32.const 1030) (i32.const 4) (i32.const 0))
            (br_if $more (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
          (local.get $fields))
        (func (export "hog") (param $count i32) (local $fields i32)
          (local.set $fields (call $fill (local.get $count)))
          (loop $more (drop (call $clone (local.get $fields))) (br $more)))
        (func (export "churn") (param $times i32) (local $fields i32)
          (local.set $fields (call $fill (i32.const 100)))
          (loop $more
            (call $drop (call $clone (local.get $fields)))
            (br_if $more (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
          (call $drop (local.get $fields))))
      (core instance $main (instantiate $main (with "h" (instance
        (export "new" (func $new)) (export "append" (func $append)) (export "clone" (func $clone))
        (export "drop" (func $drop))))))
      (func (export "hog") (param "count" u32) (canon lift (core func $main "hog")))
      (func (export "churn") (param "times" u32) (canon lift (core func $main "churn"))))`,
  );

for (const version of ["0.2.0", "0.3.0"]) {
  Deno.test(`fields of wasi:http ${version} count against the host's memory of their instance`, () => {
    const wasi = new ComponentWasi();
    const imports = { ...wasi.imports, ...httpInterfaces(wasi) };
    const instance = cloning(version).instantiate({ ...SMALL, resettable: true }, imports);
    try {
      for (let round = 0; round < 3; round++) {
        instance.call({}, "churn", 2000);
        assert.throws(() => instance.call({}, "hog", round === 0 ? 1 : 1000), REASON);
        instance.reset();
      }
      assert.throws(() => cloning(version).instantiate({}, imports).call({}, "hog", 1000), {
        message: /^the component holds more than 67108864 bytes/,
      });
    } finally {
      instance.close();
      wasi.close();
    }
  });
}

Deno.test("ends of streams and other entries of tables count", () => {
  const component = compileComponent(
    engine,
    `(component
      (type $stream (stream u8))
      (core func $new (canon stream.new $stream))
      (core module $main
        (import "h" "new" (func $new (result i64)))
        (func (export "hog") (loop $more (drop (call $new)) (br $more))))
      (core instance $main (instantiate $main (with "h" (instance (export "new" (func $new))))))
      (func (export "hog") (canon lift (core func $main "hog"))))`,
  );
  assert.throws(() => component.instantiate(SMALL).call({}, "hog"), REASON);
});

/** Counts what an object holds, as a handle of it does. */
function holding(object: object, quota: HostQuota): () => void {
  const shares = sharesOf(object);
  for (const share of shares) share.hold(quota);
  return () => shares.forEach((share) => share.leave(quota));
}

Deno.test("bytes of a body without a receiver count as long as a handle leads to them", () => {
  const wasi = new ComponentWasi();
  const quota = new HostQuota(1 << 20);
  const response = new OutgoingResponse(wasi.preview1, Fields.fromList([["a", Buffer.from("b")]]));
  const dropResponse = holding(response, quota);
  const before = quota.used;
  const body = response.body();
  const dropBody = holding(body, quota);
  const stream = body.write();
  for (let k = 0; k < 100; k++) stream.write(new Uint8Array(1));
  // A part costs more than its bytes.
  assert.ok(quota.used - before > 100 * 100);
  assert.ok(stream.checkWrite() < 65_536n - 100n * 100n);
  dropBody();
  OutgoingBody.finish(body, undefined);
  assert.ok(quota.used - before > 100 * 100, "the response has the bytes still");
  dropResponse();
  response[Symbol.dispose]();
  assert.equal(quota.used, 0);
  wasi.close();
});

Deno.test("bytes of a request's body count until they are sent, or the guest drops the response", () => {
  const wasi = new ComponentWasi({ network: { connect: ["127.0.0.1:9"] } });
  const imports = httpInterfaces(wasi) as Record<string, Record<string, unknown>>;
  const { OutgoingRequest } = imports["wasi:http/types"] as {
    OutgoingRequest: new (headers: Fields) => {
      setAuthority(authority: string): void;
      setScheme(scheme: object): void;
      body(): OutgoingBody;
    };
  };
  const handle = imports["wasi:http/outgoing-handler"]["handle"] as (request: object) => { [Symbol.dispose](): void };
  const quota = new HostQuota(1 << 20);
  const request = new OutgoingRequest(new Fields());
  request.setAuthority("127.0.0.1:9");
  request.setScheme({ tag: "HTTP" });
  const dropRequest = holding(request, quota);
  const body = request.body();
  const dropBody = holding(body, quota);
  body.write().write(new Uint8Array(50_000));
  dropBody();
  OutgoingBody.finish(body, undefined);
  const future = handle(request);
  const dropFuture = holding(future, quota);
  dropRequest();
  assert.ok(quota.used > 50_000, `${quota.used} bytes`);
  dropFuture();
  future[Symbol.dispose]();
  assert.equal(quota.used, 0);
  wasi.close();
});

Deno.test("a view of fields counts what it shows, once for all handles", () => {
  const quota = new HostQuota(1 << 20);
  const list = Array.from({ length: 100 }, (_, k) => [`x-${k}`, Buffer.from("v".repeat(100))] as const);
  const message = AsyncResponse.new(AsyncFields.fromList(list), undefined, undefined)[0];
  const dropMessage = holding(message, quota);
  const { used } = quota;
  assert.ok(used > 100 * 100);
  const dropView = holding(message.getHeaders(), quota);
  assert.equal(quota.used, used);
  dropMessage();
  assert.equal(quota.used, used);
  dropView();
  assert.equal(quota.used, 0);
});

Deno.test("entries of a directory count, and the limit follows that of memories", () => {
  const quota = new HostQuota(hostBytesFor(4));
  const entries = Array.from({ length: 10_000 }, (_, k) => ({ name: `file ${k}`, type: 4 }));
  let streams = 0;
  const hog = () => {
    for (; streams < 100; streams++) holding(new DirectoryEntryStream(entries), quota);
  };
  assert.throws(hog, REASON);
  assert.ok(streams > 2 && streams < 10, `${streams} streams`);
  assert.deepEqual([4, 1024, 16_384, 65_536].map(hostBytesFor), [4 << 20, 4 << 20, 64 << 20, 256 << 20]);
});
