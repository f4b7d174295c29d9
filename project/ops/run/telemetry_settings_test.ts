/** The variables of OpenTelemetry. */
import assert from "node:assert/strict";
import { telemetrySettings } from "./telemetry_settings.ts";

const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";

/** The settings for variables, and the warnings. */
function read(variables: Record<string, string>) {
  const warnings: string[] = [];
  const settings = telemetrySettings((message) => warnings.push(message), variables);
  return { settings, warnings };
}

Deno.test("addresses, headers and times of both signals follow the variables of OpenTelemetry", () => {
  const { settings, warnings } = read({
    [ENDPOINT]: "http://localhost:4318/base/",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://metrics.example/push",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x, b = 2",
    OTEL_EXPORTER_OTLP_TIMEOUT: "500",
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "600",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=ignored,zone=eu",
    OTEL_SERVICE_NAME: "shop",
    OTEL_BSP_MAX_QUEUE_SIZE: "100",
  });
  assert.deepEqual(warnings, []);
  const headers = { authorization: "Bearer x", b: "2" };
  assert.deepEqual(settings?.traces, { url: "http://localhost:4318/base/v1/traces", headers, timeoutMs: 600 });
  assert.deepEqual(settings?.metrics, { url: "https://metrics.example/push", headers, timeoutMs: 500 });
  assert.deepEqual(settings?.resource, { "service.name": "shop", zone: "eu" });
  assert.deepEqual([settings?.maxQueuedSpans, settings?.maxBatchSpans, settings?.spanDelayMs], [100, 100, 5000]);
});

Deno.test("nothing is sent without an address, by grpc, or where a variable says so", () => {
  assert.equal(read({}).settings, undefined);
  assert.equal(read({ [ENDPOINT]: "http://a", OTEL_SDK_DISABLED: "TRUE" }).settings, undefined);
  assert.equal(read({ [ENDPOINT]: "http://a", OTEL_TRACES_EXPORTER: "none" }).settings?.traces, undefined);
  const grpc = read({ [ENDPOINT]: "http://a", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" });
  assert.equal(grpc.settings, undefined);
  assert.match(grpc.warnings[0], /with the protocol grpc, traces are not sent/);
});

Deno.test("values that are not valid are reported and ignored", () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ OTEL_BSP_MAX_QUEUE_SIZE: "many" }, /OTEL_BSP_MAX_QUEUE_SIZE is not a number/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "secret" }, /^OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=VALUE[^:]*$/],
    [{ OTEL_RESOURCE_ATTRIBUTES: "a=%zz" }, /OTEL_RESOURCE_ATTRIBUTES is not a list/],
    [{ OTEL_TRACES_SAMPLER: "jaeger_remote" }, /OTEL_TRACES_SAMPLER is not a sampler that waft has: jaeger_remote/],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, /OTEL_TRACES_SAMPLER_ARG is not a number/],
    [{ OTEL_METRICS_EXPORTER: "prometheus" }, /OTEL_METRICS_EXPORTER is neither otlp nor none: prometheus/],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "collector:4318" }, /not an address with http or https: collector:4318/],
  ];
  for (const [variables, warning] of cases) {
    const { settings, warnings } = read({ [ENDPOINT]: "http://localhost:4318", ...variables });
    assert.ok(warnings.some((message) => warning.test(message)), `${warnings}`);
    assert.equal(settings?.sampler("0".repeat(32), undefined), true);
  }
});

Deno.test("samplers decide by the client, and by a ratio of all traces", () => {
  const sampler = (name: string, argument = "1") => {
    const variables = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument };
    return read({ [ENDPOINT]: "http://a", ...variables }).settings?.sampler ?? assert.fail();
  };
  const [low, high] = [`${"0".repeat(18)}${"1".repeat(14)}`, `${"0".repeat(18)}${"e".repeat(14)}`];
  assert.equal(sampler("always_off")(low, true), false);
  assert.equal(sampler("parentbased_always_off")(low, true), true);
  assert.equal(sampler("parentbased_always_on")(low, false), false);
  assert.equal(sampler("parentbased_always_on")(low, undefined), true);
  assert.deepEqual([low, high].map((trace) => sampler("traceidratio", "0.5")(trace, undefined)), [false, true]);
  assert.equal(sampler("parentbased_traceidratio", "0")(high, undefined), false);
  assert.equal(sampler("traceidratio", "1")("0".repeat(32), undefined), true);
});
