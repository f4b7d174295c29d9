/** Samples of metrics: their sum over processes, histograms, and the text. */
import assert from "node:assert/strict";
import { addSamples, cumulativeSamples, Histogram, type MetricRow, metricsText, seriesName } from "./prometheus.ts";

const ROWS: readonly MetricRow[] = [
  { name: "requests_total", type: "counter", help: "Requests." },
  { name: "seconds", type: "histogram", help: "Times." },
  { name: "open", type: "gauge", help: "Open now." },
];

Deno.test("samples of processes add up, and those of ended processes keep their counters", () => {
  const ended = { [seriesName("requests_total", { status: "200" })]: 3, open: 5 };
  const sum = cumulativeSamples(ROWS, ended);
  addSamples(sum, { [seriesName("requests_total", { status: "200" })]: 4, open: 1 });
  assert.deepEqual(sum, { 'requests_total{status="200"}': 7, open: 1 });
});

Deno.test("a histogram has cumulative buckets, a sum and a count", () => {
  const histogram = new Histogram();
  for (const seconds of [0.0005, 0.003, 0.003, 100]) histogram.observe(seconds);
  const samples = histogram.samples("seconds");
  const bucket = (le: string) => samples[seriesName("seconds_bucket", { le })];
  assert.deepEqual(["0.0005", "0.0025", "0.005", "30", "+Inf"].map(bucket), [1, 1, 3, 3, 4]);
  assert.equal(samples["seconds_count"], 4);
  assert.ok(Math.abs(samples["seconds_sum"] - 100.0065) < 1e-9);
});

Deno.test("the text has the order of the rows, and escapes labels", () => {
  const text = metricsText(ROWS, { open: 2, [seriesName("requests_total", { path: 'a"b\\c\nd' })]: 1, unknown: 9 });
  assert.equal(
    text,
    [
      "# HELP requests_total Requests.",
      "# TYPE requests_total counter",
      'requests_total{path="a\\"b\\\\c\\nd"} 1',
      "# HELP open Open now.",
      "# TYPE open gauge",
      "open 2",
      "",
    ].join("\n"),
  );
});
