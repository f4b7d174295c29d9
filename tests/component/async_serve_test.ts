/**
 * The HTTP server with components of wasi:http 0.3: answers, streams, the client, limits, failures. In:
 * fixtures/async_http.wat.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { compileComponent, type Component } from "../../component/mod.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import { type Sampler, TraceContext } from "../../component/http/trace.ts";
import { ComponentServer, type RequestReport } from "../../component/http/server.ts";
import { ComponentWasi, type NetworkOptions } from "../../component/wasi/mod.ts";
import { allRequests, ask, until } from "../support/http_requests.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/async_http.wat", import.meta.url));
const engine = NewEngine({ interruptible: true, fuel: true });
const text = new TextDecoder().decode(readFile(FIXTURE));
const service = compileComponent(engine, text);
/** The same with the handler of the world `middleware` in place of the client. */
const middleware = compileComponent(
  engine,
  text.replace('(import "wasi:http/client@0.3.0"', '(import "wasi:http/handler@0.3.0"')
    .replace('(export "send" ', '(export "handle" ').replace('(func $client "send")', '(func $client "handle")'),
);

/** The same, with the number of its answers in the first letter of the body: `i` for the first one. */
const counter = compileComponent(
  engine,
  text.replace(
    "(call $drop-request (local.get $request))\n",
    "(call $drop-request (local.get $request))\n" +
      "(i32.store8 (i32.const 16) (i32.add (i32.load8_u (i32.const 16)) (i32.const 1)))\n",
  ),
);

/** A guard for requests that must be answered. */
const NEVER = 60_000;

interface Setup {
  readonly context?: () => { deadline?: number; processorTime?: number; fuel?: number };
  readonly network?: NetworkOptions;
  readonly component?: Component;
  readonly maxReuse?: number;
  readonly sampler?: Sampler;
}

/** Runs `action` with a server on a free port of the loopback interface. */
async function withService(
  { context = () => ({ deadline: NEVER }), network, component = service, maxReuse = 1, sampler }: Setup,
  action: (port: number, reports: RequestReport[], made: () => number) => Promise<void>,
): Promise<void> {
  const wasi = new ComponentWasi({ waitInEventLoop: true, ...(network === undefined ? {} : { network }) });
  const traces = new TraceContext(sampler);
  const imports = { ...wasi.imports, ...httpInterfaces(wasi, traces) };
  let instances = 0;
  const counted = {
    ...component,
    instantiate: (...args: Parameters<typeof component.instantiate>) => {
      instances++;
      return component.instantiate(...args);
    },
  };
  const pool = component.pool.call(counted, { size: 4, imports });
  const reports: RequestReport[] = [];
  const limits = { concurrent: 4, waiting: 4 };
  const onRequest = (report: RequestReport) => void reports.push(report);
  const server = new ComponentServer({
    traces,
    routes: allRequests({ pool, preview1: wasi.preview1, limits, context, maxReuse }),
    onRequest,
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 }) as AddressInfo;
  try {
    await action(port, reports, () => instances);
  } finally {
    await server.stop();
    pool.close();
    wasi.close();
  }
}

Deno.test("a service of WASI 0.3 answers, and its instances are reused", async () => {
  await withService({}, async (port, reports, made) => {
    for (let k = 0; k < 10; k++) {
      const { status, headers, body } = await ask(port, "/hello");
      assert.deepEqual([status, headers["x-guest"], body], [200, "async", "hello\n"]);
      await until(() => reports.length === k + 1);
    }
    assert.ok(reports.every(({ status, error }) => status === 200 && error === undefined));
    assert.equal(made(), 1, "one instance is reset and used again");
    const bodiless = await ask(port, "/bodiless");
    assert.deepEqual([bodiless.status, bodiless.headers["x-guest"], bodiless.body], [200, "async", ""]);
    assert.equal((await ask(port, "/hello", { method: "HEAD" })).body, "");
  });
});

Deno.test("an instance of a service is reused as often as permitted, and reset after a failure", async () => {
  await withService({ component: counter, maxReuse: 3 }, async (port, reports, made) => {
    const bodies: string[] = [];
    for (const path of ["/hello", "/hello", "/hello", "/hello", "/trap", "/hello"]) {
      bodies.push((await ask(port, path)).body);
      await until(() => reports.length === bodies.length);
      if (bodies.length === 4) assert.equal(made(), 1);
    }
    assert.deepEqual(bodies, ["iello\n", "jello\n", "kello\n", "iello\n", "Internal Server Error\n", "iello\n"]);
  });
});

Deno.test("a service of WASI 0.3 streams bodies both ways", async () => {
  await withService({}, async (port, reports) => {
    assert.equal((await ask(port, "/echo", { method: "POST", body: "a body" })).body, "a body");
    const long = "0123456789".repeat(100_000);
    assert.equal((await ask(port, "/echo", { method: "POST", body: long })).body, long);
    await until(() => reports.length === 2);
    assert.ok(reports.every(({ error }) => error === undefined), String(reports.map(({ error }) => error)));
  });
});

Deno.test("a failure of a service of WASI 0.3 is status 500, or a cut connection once the answer has begun", async () => {
  await withService({}, async (port, reports) => {
    assert.equal((await ask(port, "/trap")).status, 500);
    assert.equal((await ask(port, "/xerror")).status, 500);
    await assert.rejects(ask(port, "/stream"));
    assert.equal((await ask(port, "/hello")).body, "hello\n");
    await until(() => reports.length === 4);
    const errors = reports.map(({ error }) => String(error));
    assert.match(errors[0], /unreachable/);
    assert.match(errors[1], /internal-error/);
    assert.match(errors[2], /unreachable/);
    assert.equal(errors[3], "undefined");
  });
});

Deno.test("deadline, processor time and fuel end a task of a service that goes on after its answer", async () => {
  await withService({ context: () => ({ deadline: 60 }) }, async (port, reports) => {
    await assert.rejects(ask(port, "/forever"));
    await until(() => reports.length === 1);
    assert.match(String(reports[0].error), /interrupted/);
  });
  await withService({ context: () => ({ deadline: NEVER, processorTime: 60 }) }, async (port, reports) => {
    await assert.rejects(ask(port, "/forever"));
    await until(() => reports.length === 1);
    assert.match(String((reports[0].error as { detail?: string }).detail), /60 ms of processor time/);
  });
  await withService({ context: () => ({ deadline: NEVER, fuel: 100_000 }) }, async (port, reports) => {
    await assert.rejects(ask(port, "/forever"));
    await until(() => reports.length === 1);
    assert.match(String(reports[0].error), /fuel/);
    assert.equal((await ask(port, "/hello")).body, "hello\n");
  });
});

Deno.test("requests of a service carry the trace context of the request that it handles", async () => {
  const arrived: Record<string, unknown>[] = [];
  const upstream = createServer(({ headers: { traceparent, tracestate } }, response) => {
    arrived.push({ traceparent, tracestate });
    response.end(String(traceparent));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const { port: target } = upstream.address() as AddressInfo;
  try {
    await withService({ network: { connect: [`127.0.0.1:${target}`] } }, async (port) => {
      const ids = ["1", "2", "3", "4"].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`);
      const send = (headers: Record<string, string>) => ask(port, `/client?${target}`, { headers });
      const answers = await Promise.all(ids.map((traceparent) => send({ traceparent, tracestate: "a=1" })));
      assert.deepEqual(answers.map(({ body }) => body), ids);
      assert.deepEqual(arrived.map(({ tracestate }) => tracestate), ["a=1", "a=1", "a=1", "a=1"]);
      for (const traceparent of ["00-0-0-0", `00-${"0".repeat(32)}-${"1".repeat(16)}-01`, `ff${ids[0].slice(2)}`]) {
        assert.equal((await send({ traceparent, tracestate: "a=1" })).body, "undefined");
        assert.equal(arrived.at(-1)?.["tracestate"], undefined);
      }
    });
  } finally {
    upstream.close();
  }
});

Deno.test("with spans of the server, requests of a service are their children", async () => {
  const upstream = createServer(({ headers: { traceparent, tracestate } }, response) => {
    response.end(`${traceparent} ${tracestate}`);
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const { port: target } = upstream.address() as AddressInfo;
  try {
    const sampler: Sampler = (_, parent) => parent ?? true;
    await withService({ sampler, network: { connect: [`127.0.0.1:${target}`] } }, async (port, reports) => {
      const trace = "1".repeat(32);
      const headers = { traceparent: `00-${trace}-${"2".repeat(16)}-00`, tracestate: "a=1" };
      const { body } = await ask(port, `/client?${target}`, { headers });
      const alone = (await ask(port, `/client?${target}`)).body;
      await until(() => reports.length === 2);
      const [{ span: first }, { span: second }] = reports;
      assert.equal(body, `00-${trace}-${first?.span}-00 a=1`);
      assert.deepEqual(first, { trace, span: first?.span, parent: "2".repeat(16), state: "a=1", isSampled: false });
      assert.equal(alone, `00-${second?.trace}-${second?.span}-01 undefined`);
      assert.deepEqual([second?.parent, second?.isSampled], [undefined, true]);
      assert.notEqual(first.span, second?.span);
    });
  } finally {
    upstream.close();
  }
});

for (const [name, component] of [["a service", service], ["middleware without a service", middleware]] as const) {
  Deno.test(`${name} of WASI 0.3 sends requests within its grants`, async () => {
    const upstream = createServer((request, response) => {
      response.setHeader("x-upstream", `${request.method} ${request.url} ${request.headers["x-guest"]}`);
      response.end("from upstream");
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const { port: target } = upstream.address() as AddressInfo;
    try {
      await withService({ component, network: { connect: [`127.0.0.1:${target}`] } }, async (port) => {
        const { status, headers, body } = await ask(port, `/client?${target}`);
        assert.deepEqual([status, headers["x-upstream"], body], [200, "GET / async", "from upstream"]);
        assert.equal((await ask(port, "/client?1")).status, 500, "another port");
      });
      await withService({ component }, async (port, reports) => {
        assert.equal((await ask(port, `/client?${target}`)).status, 500);
        await until(() => reports.length === 1);
        assert.match(String(reports[0].error), /HTTP-request-denied/);
      });
    } finally {
      upstream.close();
    }
  });
}
