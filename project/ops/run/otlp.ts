/**
 * Messages of OTLP 1 in JSON: spans of requests, and samples of metrics. In: reports of `waft serve` and its samples.
 * Out: plain objects that serialize to the requests of a collector. Invariant: 64-bit integers are decimal text and
 * identifiers hexadecimal, as OTLP asks in JSON.
 */
import type { RequestReport } from "@waft/component/internal/http/server";
import type { RequestSpan } from "@waft/component/internal/http/trace";
import { TrapError } from "@waft/engine/internal/errors";
import { type MetricRow, parseSeries, type Samples } from "../../base/prometheus.ts";
import { VERSION } from "../../base/version_string.ts";

/** Attributes by name. */
export type Attributes = Readonly<Record<string, string | number>>;

/** A value with its name. */
interface KeyValue {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
}

/** A span as a collector reads it. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly [field: string]: unknown;
}

const SCOPE = { name: "waft", version: VERSION };
const SPAN_KIND_SERVER = 2;
const STATUS_ERROR = 2;
/** Values since the start of the process, in place of those since the last message. */
const CUMULATIVE = 2;
const FIRST_SERVER_ERROR = 500;

const attributesOf = (attributes: Attributes): KeyValue[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === "string" ? { stringValue: value } : { intValue: String(value) },
  }));

/** Nanoseconds since 1970 of a time in milliseconds. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

/** The span of a request that ended at `end`, in milliseconds since 1970, with the names of the HTTP conventions. */
export function spanOf(report: RequestReport, { trace, span, parent, state }: RequestSpan, end: number): OtlpSpan {
  const { method, path, status, milliseconds, client, version, bytes, component, error } = report;
  const [target, query] = splitQuery(path);
  const isFailed = error !== undefined || status === 0 || status >= FIRST_SERVER_ERROR;
  const reason = error instanceof TrapError ? error.code : error === undefined ? String(status) : "component";
  return {
    traceId: trace,
    spanId: span,
    ...(parent === undefined ? {} : { parentSpanId: parent }),
    ...(state === undefined ? {} : { traceState: state }),
    name: method,
    kind: SPAN_KIND_SERVER,
    startTimeUnixNano: nanoseconds(end - milliseconds),
    endTimeUnixNano: nanoseconds(end),
    attributes: attributesOf({
      "http.request.method": method,
      "url.path": target,
      ...(query === undefined ? {} : { "url.query": query }),
      ...(status === 0 ? {} : { "http.response.status_code": status }),
      "http.response.body.size": bytes,
      "network.protocol.version": version.replace(/\.0$/, ""),
      ...(client === "" ? {} : { "client.address": client }),
      ...(component === undefined ? {} : { "waft.component": component }),
      ...(isFailed ? { "error.type": reason } : {}),
    }),
    status: isFailed ? { code: STATUS_ERROR } : {},
  };
}

function splitQuery(target: string): [string, string?] {
  const at = target.indexOf("?");
  return at < 0 ? [target] : [target.slice(0, at), target.slice(at + 1)];
}

/** The message with these spans. */
export function spansMessage(resource: Attributes, spans: readonly OtlpSpan[]): object {
  return {
    resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [{ scope: SCOPE, spans }] }],
  };
}

/** The message with the samples of one moment; times are milliseconds since 1970. */
export function metricsMessage(
  resource: Attributes,
  rows: readonly MetricRow[],
  samples: Samples,
  times: { readonly start: number; readonly now: number },
): object {
  const period = { startTimeUnixNano: nanoseconds(times.start), timeUnixNano: nanoseconds(times.now) };
  const series = Object.entries(samples).map(([key, value]) => ({ ...parseSeries(key), value }));
  const metrics = rows.flatMap((row): object[] => {
    const own = series.filter(({ name }) => name === row.name || name === `${row.name}_bucket`);
    if (own.length === 0) return [];
    const about = { name: row.name, description: row.help };
    if (row.type === "histogram") {
      const totals = { sum: samples[`${row.name}_sum`], count: String(samples[`${row.name}_count`]) };
      const dataPoints = [{ ...period, ...bucketsOf(own), ...totals }];
      return [{ ...about, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } }];
    }
    const dataPoints = own.map(({ labels, value }) => ({
      ...period,
      attributes: attributesOf(labels),
      asDouble: value,
    }));
    return row.type === "gauge"
      ? [{ ...about, gauge: { dataPoints } }]
      : [{ ...about, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }];
  });
  return {
    resourceMetrics: [{ resource: { attributes: attributesOf(resource) }, scopeMetrics: [{ scope: SCOPE, metrics }] }],
  };
}

/** The counts of single buckets; those of Prometheus contain the ones before them. */
function bucketsOf(
  series: readonly { readonly labels: { readonly [label: string]: string }; readonly value: number }[],
): { explicitBounds: number[]; bucketCounts: string[] } {
  return {
    explicitBounds: series.slice(0, -1).map(({ labels }) => Number(labels["le"])),
    bucketCounts: series.map(({ value }, k) => String(value - (k === 0 ? 0 : series[k - 1].value))),
  };
}
