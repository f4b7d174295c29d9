/** `waft serve` under an operator: workers, several components, collectors of OpenTelemetry, systemd. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer as createHttpServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { fixture, get, inHome, Served } from "./served.ts";

const HTTP = fixture("http.wat");

Deno.test({
  name: "waft serve --workers replaces workers that are killed, all of them on SIGHUP, and counts every request",
  // On Bun, the kernel gives connections to workers that end (docs/serve.md).
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    writeFileSync(join(home, "http.wat"), readFileSync(HTTP));
    const admin = ["--admin", "127.0.0.1:0", "--watch"];
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--workers", "2", ...admin, "--json", "http.wat"]);
    const started = () => served.events.filter(({ event }) => event === "worker-started").map(({ pid }) => Number(pid));
    const count = (name: string) => served.events.filter(({ event }) => event === name).length;
    await served.until(() => served.out.includes('"listening"'));
    const { url, admin: operators } = served.events.find(({ event }) => event === "listening") ?? {};
    assert.equal(started().length, 2);
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    let answered = 0;
    const ask = async () => {
      assert.deepEqual(await get(`${url}abc`, agent), { status: 201, body: "/abc" });
      answered++;
    };
    await ask();
    await served.until(() => count("request") === 1);
    process.kill(started()[0], "SIGKILL");
    await served.until(() => started().length === 3);
    const ended = served.events.find(({ event }) => event === "worker-ended");
    assert.deepEqual([ended?.["pid"], ended?.["signal"]], [started()[0], "SIGKILL"]);
    // Requests go on without a pause, over connections that stay open, while all workers are replaced.
    let isReloading = true;
    const clients = Array.from({ length: 4 }, async () => {
      while (isReloading) await ask();
    });
    served.signal("SIGHUP");
    await served.until(() => count("reloaded") === 1);
    // A file that is no component leaves the old workers in place.
    writeFileSync(join(home, "http.wat"), "(module)");
    await served.until(() => count("reloaded") === 2);
    isReloading = false;
    await Promise.all(clients);
    assert.deepEqual(served.events.filter(({ event }) => event === "reloaded").map(({ ok }) => ok), [true, false]);
    assert.match(served.err, /http\.wat: not a component/);
    assert.doesNotMatch(served.err, /Uncaught/);
    assert.equal((await get(`${operators}readyz`)).status, 200);
    let body = "";
    const sample = (series: string) =>
      Number(body.split("\n").find((line) => line.startsWith(`${series} `))?.split(" ")[1]);
    const counted = () => sample('waft_http_requests_total{method="GET",status="201"}');
    // A busy worker tells the process with the metrics of its last requests later. The killed one may not have told
    // about the first request.
    do {
      const { status, body: text } = await get(`${operators}metrics`);
      assert.equal(status, 200);
      body = text;
    } while (!(counted() >= answered - 1));
    assert.ok(counted() <= answered, `${counted()} of ${answered}`);
    assert.equal(sample("waft_workers"), 2);
    assert.equal(sample("waft_worker_restarts_total"), 1);
    assert.equal(sample('waft_reloads_total{result="success"}'), 1);
    agent.destroy();
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0, served.err);
    assert.equal(count("request"), answered);
    assert.equal(served.events.at(-1)?.["event"], "stopped");
  });
});

/** Whether a process has ended; its parent, which is stopped, has not been told yet. */
function isZombie(pid: number): boolean {
  return /^.*\) Z /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

Deno.test({
  name: "the last counts of a worker count when the primary learns first that it has ended",
  ignore: process.platform !== "linux" || "Bun" in globalThis, // Bun: as above
}, async () => {
  await inHome(async (home) => {
    const served = new Served(home, [
      ...["--addr", "127.0.0.1:0", "--workers", "1", "--admin", "127.0.0.1:0", "--json"],
      HTTP,
    ]);
    const started = () => served.events.filter(({ event }) => event === "worker-started").map(({ pid }) => Number(pid));
    await served.until(() => served.out.includes('"listening"'));
    const { url, admin } = served.events.find(({ event }) => event === "listening") ?? {};
    for (let k = 0; k < 20; k++) assert.equal((await get(`${url}abc`)).status, 201);
    const [worker] = started();
    process.kill(served.child.pid!, "SIGSTOP");
    process.kill(worker, "SIGTERM");
    await served.until(() => isZombie(worker));
    // Longer than the primary waits for last counts; its timers fire first when it goes on.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    process.kill(served.child.pid!, "SIGCONT");
    await served.until(() => started().length === 2);
    let body = "";
    for (let scrapes = 0; scrapes < 20 && !body.includes('status="201"} 20\n'); scrapes++) {
      ({ body } = await get(`${admin}metrics`));
    }
    assert.match(body, /status="201"\} 20\n/);
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0, served.err);
  });
});

/** Requests a path of a host. */
function getFrom(
  url: string,
  host: string,
  fields: Record<string, string> = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { agent: false, headers: { host, ...fields } }, (message) => {
      let body = "";
      message.on("data", (part) => body += String(part));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

Deno.test({
  name: "waft serve --config serves several components by host and path, and takes a changed file on reload",
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    copyFileSync(HTTP, join(home, "http.wat"));
    copyFileSync(fixture("async_http.wat"), join(home, "service.wat"));
    const config = (routes: object[]) =>
      writeFileSync(join(home, "serve.json"), JSON.stringify({ addr: "127.0.0.1:0", workers: "1", routes }));
    config([
      { component: "http.wat", path: "/abc" },
      { component: "service.wat", host: "*.example.com", name: "service", maxReuse: 2, timeout: "20s" },
    ]);
    const served = new Served(home, ["--config", "serve.json", "--json", "--admin", "127.0.0.1:0"]);
    await served.until(() => served.out.includes('"listening"'));
    const { url, admin } = served.events.find(({ event }) => event === "listening") ?? {};
    assert.deepEqual(await getFrom(`${url}abc`, "localhost"), { status: 201, body: "/abc" });
    assert.deepEqual(await getFrom(`${url}abcd`, "localhost"), { status: 404, body: "Not Found\n" });
    assert.deepEqual(await getFrom(`${url}hello`, "A.example.com:80"), { status: 200, body: "hello\n" });
    // The worker tells the process with the metrics of its requests a moment later.
    let body = "";
    while (!body.includes('status="404"} 1\n')) ({ body } = await get(`${admin}metrics`));
    assert.match(body, /^waft_http_requests_total\{component="service",method="GET",status="200"\} 1$/m);
    assert.match(body, /^waft_http_requests_total\{component="http\.wat",method="GET",status="201"\} 1$/m);
    assert.match(body, /^waft_http_requests_total\{method="GET",status="404"\} 1$/m);
    config([{ component: "service.wat" }]);
    served.signal("SIGHUP");
    await served.until(() => served.out.includes('"reloaded"'));
    assert.deepEqual(await getFrom(`${url}hello`, "localhost"), { status: 200, body: "hello\n" });
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0, served.err);
    assert.deepEqual(
      served.events.filter(({ event }) => event === "request").map(({ component }) => component),
      ["http.wat", undefined, "service", "service.wat"],
    );
  });
});

/** A collector of OpenTelemetry on the loopback interface. */
interface Collector {
  readonly url: string;
  /** The messages by the last part of their path. */
  readonly messages: { readonly traces: Message[]; readonly metrics: Message[] };
  /** Answers further messages with these statuses, each with `retry-after: 0`. */
  readonly refusals: number[];
  close(): void;
}

/** The parts of a message that the tests read. */
interface Message {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly resourceSpans?: { resource: Resource; scopeSpans: { spans: Span[] }[] }[];
  readonly resourceMetrics?: { resource: Resource; scopeMetrics: { metrics: Metric[] }[] }[];
}
type Attribute = { key: string; value: { stringValue?: string; intValue?: string } };
type Resource = { attributes: Attribute[] };
type Span = { traceId: string; spanId: string; parentSpanId?: string; name: string; attributes: Attribute[] };
type Metric = { name: string; sum?: { dataPoints: { attributes: Attribute[]; asDouble: number }[] } };

/** The value of an attribute. */
function valueOf(attributes: readonly Attribute[] = [], name: string): string | undefined {
  const { stringValue, intValue } = attributes.find(({ key }) => key === name)?.value ?? {};
  return stringValue ?? intValue;
}

async function startCollector(): Promise<Collector> {
  const messages: Collector["messages"] = { traces: [], metrics: [] };
  const refusals: number[] = [];
  const server = createHttpServer((request, response) => {
    let body = "";
    request.on("data", (part) => body += String(part));
    request.on("end", () => {
      const refusal = refusals.shift();
      if (refusal !== undefined) return void response.writeHead(refusal, { "retry-after": "0" }).end();
      const signal = request.url === "/v1/traces" ? "traces" : "metrics";
      messages[signal].push({ headers: request.headers, ...JSON.parse(body) as Omit<Message, "headers"> });
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, messages, refusals, close: () => void server.close() };
}

for (const options of [[], ["--workers", "1"]]) {
  Deno.test({
    name: `spans and metrics reach a collector, the last ones when the server stops: ${
      options.join(" ") || "one process"
    }`,
    ignore: LACKS_POSIX_FILES,
  }, async () => {
    const collector = await startCollector();
    try {
      await inHome(async (home) => {
        collector.refusals.push(503);
        const variables = {
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_HEADERS: "x-key=secret",
          OTEL_SERVICE_NAME: "shop",
          OTEL_BSP_SCHEDULE_DELAY: "1",
        };
        const served = new Served(home, ["--addr", "127.0.0.1:0", "--json", ...options, HTTP], [], variables);
        await served.until(() => served.out.includes('"listening"'));
        const url = String(served.events.find(({ event }) => event === "listening")?.["url"]);
        const trace = "1".repeat(32);
        const ask = (flags: string) =>
          getFrom(`${url}abc?d`, "a", { traceparent: `00-${trace}-${"2".repeat(16)}-${flags}` });
        assert.deepEqual(await ask("01"), { status: 201, body: "/abc?d" });
        await served.until(() => collector.messages.traces.length === 1);
        await ask("00");
        await get(`${url}trap`);
        served.signal("SIGTERM");
        assert.equal(await served.ended, 0, served.err);
        const spans = collector.messages.traces.flatMap(({ resourceSpans = [] }) =>
          resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
        );
        assert.deepEqual(spans.map(({ name, attributes }) => [name, valueOf(attributes, "url.path")]), [
          ["GET", "/abc"],
          ["GET", "/trap"],
        ]);
        const [first, second] = spans;
        assert.deepEqual([first.traceId, first.parentSpanId], [trace, "2".repeat(16)]);
        assert.deepEqual([second.parentSpanId, valueOf(second.attributes, "error.type")], [undefined, "unreachable"]);
        assert.notEqual(second.traceId, trace);
        const [{ headers, resourceSpans }] = collector.messages.traces;
        assert.deepEqual([headers["x-key"], headers["content-type"]], ["secret", "application/json"]);
        assert.equal(valueOf(resourceSpans?.[0].resource.attributes, "service.name"), "shop");
        const metrics = collector.messages.metrics.at(-1)?.resourceMetrics?.[0].scopeMetrics[0].metrics;
        const requests = metrics?.find(({ name }) => name === "waft_http_requests_total")?.sum?.dataPoints ?? [];
        assert.deepEqual(requests.map(({ attributes, asDouble }) => [valueOf(attributes, "status"), asDouble]), [
          ["201", 2],
          ["500", 1],
        ]);
        // The log has the same spans.
        const logged = served.events.filter(({ event }) => event === "request").map(({ span }) =>
          span as { span: string }
        );
        assert.deepEqual([logged[0].span, logged[2].span], [first.spanId, second.spanId]);
      });
    } finally {
      collector.close();
    }
  });
}

Deno.test({
  name: "a collector that does not answer is reported once, and costs no request",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  await inHome(async (home) => {
    const variables = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1/", OTEL_BSP_SCHEDULE_DELAY: "1" };
    const served = new Served(home, ["--addr", "127.0.0.1:0", "--json", HTTP], [], variables);
    await served.until(() => served.out.includes('"listening"'));
    const { url } = served.events[0];
    for (let k = 0; k < 3; k++) assert.equal((await get(`${url}abc`)).status, 201);
    served.signal("SIGTERM");
    assert.equal(await served.ended, 0);
    assert.match(served.err, /^waft: telemetry: the collector at http:\/\/127\.0\.0\.1:1\/ takes nothing: [^\n]+\n$/);
  });
});

/** Passes a listening socket to the command that follows, as systemd does. */
const ACTIVATE = `import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp(sys.argv[1], sys.argv[1:])`;

Deno.test({
  name: "waft serve takes its socket from systemd, and reports its state",
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
}, async () => {
  await inHome(async (home) => {
    const notify = join(home, "systemd-notify");
    writeFileSync(notify, `#!/bin/sh\necho "$@" >> ${home}/notified\n`, { mode: 0o755 });
    const more = { PATH: `${home}:${process.env["PATH"]}`, NOTIFY_SOCKET: join(home, "notify") };
    const notified = () => existsSync(join(home, "notified")) ? readFileSync(join(home, "notified"), "utf8") : "";
    for (const options of [[], ["--workers", "1"]]) {
      rmSync(join(home, "notified"), { force: true });
      const served = new Served(home, [...options, HTTP], ["python3", "-c", ACTIVATE], more);
      await served.until(() => notified().includes("--ready") && served.err.includes("\n"));
      const url = /^Listening on (\S+)\n/.exec(served.err)?.[1] ?? "";
      assert.notEqual(url, "http://127.0.0.1:8080/");
      assert.deepEqual(await get(`${url}abc`), { status: 201, body: "/abc" });
      served.signal("SIGTERM");
      assert.equal(await served.ended, 0);
      assert.equal(notified(), `--pid=${served.child.pid} --ready\n--pid=${served.child.pid} --stopping\n`);
    }
  });
});
