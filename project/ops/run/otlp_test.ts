/** Messages of OTLP: the names, units and counts that a collector reads. */
import assert from "node:assert/strict";
import { Histogram, type MetricRow, seriesName } from "../../base/prometheus.ts";
import { metricsMessage, spanOf, spansMessage } from "./otlp.ts";

const SPAN = { trace: "a".repeat(32), span: "b".repeat(16), isSampled: true };
const REPORT = { method: "GET", path: "/a?b", status: 0, milliseconds: 1.5, client: "", version: "1.1", bytes: 7 };

Deno.test("a span has the times of its request in nanoseconds, and says why it failed", () => {
  const span = spanOf({ ...REPORT, component: "shop" }, { ...SPAN, parent: "c".repeat(16), state: "d=1" }, 1000);
  assert.deepEqual(span, {
    traceId: SPAN.trace,
    spanId: SPAN.span,
    parentSpanId: "c".repeat(16),
    traceState: "d=1",
    name: "GET",
    kind: 2,
    startTimeUnixNano: "998500000",
    endTimeUnixNano: "1000000000",
    attributes: [
      { key: "http.request.method", value: { stringValue: "GET" } },
      { key: "url.path", value: { stringValue: "/a" } },
      { key: "url.query", value: { stringValue: "b" } },
      { key: "http.response.body.size", value: { intValue: "7" } },
      { key: "network.protocol.version", value: { stringValue: "1.1" } },
      { key: "waft.component", value: { stringValue: "shop" } },
      { key: "error.type", value: { stringValue: "0" } },
    ],
    status: { code: 2 },
  });
  const { status, parentSpanId } = spanOf({ ...REPORT, status: 404 }, SPAN, 1000);
  assert.deepEqual([status, parentSpanId], [{}, undefined]);
  const { resourceSpans: [{ resource }] } = spansMessage({ "service.name": "s" }, [span]) as {
    resourceSpans: { resource: object }[];
  };
  assert.deepEqual(resource, { attributes: [{ key: "service.name", value: { stringValue: "s" } }] });
});

Deno.test("counters are cumulative sums, and buckets of histograms do not contain each other", () => {
  const rows: MetricRow[] = [
    { name: "a_total", type: "counter", help: "A." },
    { name: "seconds", type: "histogram", help: "Times." },
    { name: "open", type: "gauge", help: "Open." },
    { name: "absent", type: "gauge", help: "Not measured." },
  ];
  const histogram = new Histogram();
  for (const seconds of [0.0005, 0.003, 0.003, 100]) histogram.observe(seconds);
  const hostile = 'a"b\\c\nd';
  const samples = { [seriesName("a_total", { x: hostile })]: 3, open: 2, ...histogram.samples("seconds") };
  const message = metricsMessage({}, rows, samples, { start: 1, now: 2 });
  const { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] } = message as {
    resourceMetrics: { scopeMetrics: { metrics: Record<string, unknown>[] }[] }[];
  };
  assert.deepEqual(metrics.map(({ name }) => name), ["a_total", "seconds", "open"]);
  const period = { startTimeUnixNano: "1000000", timeUnixNano: "2000000" };
  assert.deepEqual(metrics[0]["sum"], {
    aggregationTemporality: 2,
    isMonotonic: true,
    dataPoints: [{ ...period, attributes: [{ key: "x", value: { stringValue: hostile } }], asDouble: 3 }],
  });
  const { dataPoints: [point] } = metrics[1]["histogram"] as {
    dataPoints: { explicitBounds: number[]; bucketCounts: string[]; count: string }[];
  };
  assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1);
  assert.equal(point.bucketCounts.reduce((sum, count) => sum + Number(count), 0), Number(point.count));
  assert.deepEqual(point.bucketCounts.slice(0, 4), ["1", "0", "0", "2"]);
  assert.deepEqual(metrics[2]["gauge"], { dataPoints: [{ ...period, attributes: [], asDouble: 2 }] });
});
