/**
 * Component plugins that wait for the network: a request by `wasi:http` over the loopback interface leaves the event
 * loop free, and waits no longer than the deadline of the guest's call.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InstanceGraph } from "../../project/plugins/plugin_host.ts";
import { componentPlugin, INTERFACE, MEMORY } from "./component_plugin.ts";
import { CONTRACT, guestModule, hostOf, type TestPlugin } from "./plugin_project.ts";

/** The part of WASI that the plugin uses. */
const PACKAGES = `
  package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
  package wasi:http@0.2.0 {
    interface types {
      use wasi:io/poll@0.2.0.{pollable};
      variant scheme { HTTP, HTTPS, other(string) }
      record dns-error { rcode: option<string>, info-code: option<u16> }
      record tls-alert { alert-id: option<u8>, alert-message: option<string> }
      record field-size { field-name: option<string>, field-size: option<u32> }
      variant error-code {
        DNS-timeout, DNS-error(dns-error), destination-not-found, destination-unavailable, destination-IP-prohibited,
        destination-IP-unroutable, connection-refused, connection-terminated, connection-timeout,
        connection-read-timeout, connection-write-timeout, connection-limit-reached, TLS-protocol-error,
        TLS-certificate-error, TLS-alert-received(tls-alert), HTTP-request-denied, HTTP-request-length-required,
        HTTP-request-body-size(option<u64>), HTTP-request-method-invalid, HTTP-request-URI-invalid,
        HTTP-request-URI-too-long, HTTP-request-header-section-size(option<u32>),
        HTTP-request-header-size(option<field-size>), HTTP-request-trailer-section-size(option<u32>),
        HTTP-request-trailer-size(field-size), HTTP-response-incomplete,
        HTTP-response-header-section-size(option<u32>), HTTP-response-header-size(field-size),
        HTTP-response-body-size(option<u64>), HTTP-response-trailer-section-size(option<u32>),
        HTTP-response-trailer-size(field-size), HTTP-response-transfer-coding(option<string>),
        HTTP-response-content-coding(option<string>), HTTP-response-timeout, HTTP-upgrade-failed,
        HTTP-protocol-error, loop-detected, configuration-error, internal-error(option<string>)
      }
      resource fields { constructor(); }
      resource request-options { constructor(); }
      resource outgoing-request {
        constructor(headers: fields);
        set-scheme: func(scheme: option<scheme>) -> result;
        set-authority: func(authority: option<string>) -> result;
      }
      resource incoming-response { status: func() -> u16; }
      resource future-incoming-response {
        subscribe: func() -> pollable;
        get: func() -> option<result<result<incoming-response, error-code>>>;
      }
    }
    interface outgoing-handler {
      use types.{outgoing-request, request-options, future-incoming-response, error-code};
      handle: func(request: outgoing-request, options: option<request-options>)
        -> result<future-incoming-response, error-code>;
    }
  }`;

/** A plugin whose function `status` makes a request to `authority` and returns the status of the response. */
function fetcher(authority: string): TestPlugin {
  const types = "wasi:http/types@0.2.0";
  const wat = `(module
    (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
    (import "${types}" "[constructor]fields" (func $fields (result i32)))
    (import "${types}" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
    (import "${types}" "[method]outgoing-request.set-scheme"
      (func $set-scheme (param i32 i32 i32 i32 i32) (result i32)))
    (import "${types}" "[method]outgoing-request.set-authority" (func $set-authority (param i32 i32 i32 i32) (result i32)))
    (import "${types}" "[method]incoming-response.status" (func $status (param i32) (result i32)))
    (import "${types}" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
    (import "${types}" "[method]future-incoming-response.get" (func $get (param i32 i32)))
    (import "wasi:http/outgoing-handler@0.2.0" "handle" (func $handle (param i32 i32 i32 i32)))
    ${MEMORY}
    (data (i32.const 1024) "${authority}")
    (func $require (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
    (func (export "${INTERFACE}#status") (result i32) (local $request i32) (local $future i32)
      (local.set $request (call $request (call $fields)))
      (call $require (i32.eqz
        (call $set-scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))))
      (call $require (i32.eqz
        (call $set-authority (local.get $request) (i32.const 1) (i32.const 1024) (i32.const ${authority.length}))))
      (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 16))
      (call $require (i32.eqz (i32.load8_u (i32.const 16))))
      (local.set $future (i32.load (i32.const 24)))
      (call $block (call $subscribe (local.get $future)))
      ;; option<result<result<incoming-response, error-code>>>: some, ok, ok.
      (call $get (local.get $future) (i32.const 32))
      (call $require (i32.load8_u (i32.const 32)))
      (call $require (i32.eqz (i32.load8_u (i32.const 40))))
      (call $require (i32.eqz (i32.load8_u (i32.const 48))))
      (call $status (i32.load (i32.const 56)))))`;
  return componentPlugin("status: func() -> u32;", wat, {
    imports: "import wasi:io/poll@0.2.0; import wasi:http/types@0.2.0; import wasi:http/outgoing-handler@0.2.0;",
    packages: PACKAGES,
    provides: ["status ->i32"],
    requests: { "net.connect": { hosts: [authority] } },
  });
}

const GUEST = `(module (import "${CONTRACT}@1" "status" (func $status (result i32)))
  (func (export "status") (result i32) (call $status)))`;

/** Runs a guest with the plugin, and a server of this thread that `answer` is the listener of. */
async function withServer(answer: RequestListener, work: (graph: InstanceGraph) => Promise<void>): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const root = mkdtempSync(join(tmpdir(), "waft-plugins-"));
  try {
    const host = hostOf([fetcher(`127.0.0.1:${(server.address() as AddressInfo).port}`)], root);
    assert.ok(host.waits);
    const graph = await host.startAsync(guestModule(GUEST));
    try {
      await work(graph);
    } finally {
      await graph.closeAsync();
    }
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(root, { recursive: true, force: true });
  }
}

Deno.test("component plugins: a request over loopback waits while the event loop of the host runs", async () => {
  let turns = 0;
  // The server is on the thread that runs the guest: it answers only if the plugin's wait leaves the event loop free.
  const answer: RequestListener = (_, response) => {
    setTimeout(() => {
      turns++;
      response.writeHead(203).end();
    }, 5);
  };
  await withServer(answer, async (graph) => {
    for (let k = 1; k <= 3; k++) {
      assert.equal(await graph.callAsync({}, "status"), 203);
      assert.equal(turns, k);
    }
  });
});

Deno.test("component plugins: a wait for a server that never answers ends at the deadline", async () => {
  // On a busy machine, a short deadline may pass before the request is sent: the next one is longer.
  for (let requests = 0, deadline = 500; requests === 0; deadline *= 3) {
    assert.ok(deadline < 60_000, "no request reached the server");
    await withServer(() => void requests++, async (graph) => {
      await assert.rejects(Promise.resolve(graph.callAsync({ deadline }, "status")), /interrupted/);
    });
  }
});
