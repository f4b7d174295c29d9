/**
 * The metrics of `waft serve`. In: reports of requests, and the load of the server. Out: samples of one process, which
 * the processes of one address add up.
 */
import process from "node:process";
import type { RequestReport, ServerLoad } from "@waft/component/internal/http/server";
import { TrapError } from "@waft/engine/internal/errors";
import { Histogram, type MetricRow, type Samples, seriesName } from "../../base/prometheus.ts";
import { VERSION } from "../../base/version_string.ts";

/** The metrics, in the order of the text. */
export const SERVE_METRICS: readonly MetricRow[] = [
  {
    name: "waft_http_requests_total",
    type: "counter",
    help: "Requests that have ended, by method and status; status 0: the connection ended without an answer.",
  },
  {
    name: "waft_http_request_duration_seconds",
    type: "histogram",
    help: "Time from the head of a request to the end of its answer.",
  },
  { name: "waft_http_response_bytes_total", type: "counter", help: "Bytes of the bodies of answers." },
  { name: "waft_http_requests_handling", type: "gauge", help: "Requests that instances handle." },
  { name: "waft_http_requests_queued", type: "gauge", help: "Requests that wait for an instance." },
  { name: "waft_http_connections", type: "gauge", help: "Open connections." },
  { name: "waft_http_connections_total", type: "counter", help: "Connections that have been accepted." },
  {
    name: "waft_limits_reached_total",
    type: "counter",
    help: "Requests and connections that a limit of the server refused, or that ended at a limit of the component.",
  },
  { name: "waft_traps_total", type: "counter", help: "Requests that ended in a trap, by its code." },
  { name: "waft_failures_total", type: "counter", help: "Requests that the component failed without a trap." },
  { name: "waft_instances", type: "gauge", help: "Instances of the component, by state." },
  { name: "waft_guest_memory_bytes", type: "gauge", help: "Bytes of the memories and tables of all instances." },
  { name: "waft_fuel_used_total", type: "counter", help: "Fuel that requests have used; only with --fuel." },
  { name: "waft_workers", type: "gauge", help: "Worker processes that accept connections." },
  { name: "waft_worker_restarts_total", type: "counter", help: "Workers that ended unexpectedly." },
  { name: "waft_reloads_total", type: "counter", help: "Replacements of all workers, by their result." },
  { name: "waft_build_info", type: "gauge", help: "The version of waft." },
  { name: "process_resident_memory_bytes", type: "gauge", help: "Resident memory of all processes." },
  { name: "process_cpu_seconds_total", type: "counter", help: "Processor time of all processes." },
];

/** Methods with a series of their own; those that clients invent share one. */
const METHODS: ReadonlySet<string> = new Set([
  "CONNECT",
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "POST",
  "PUT",
  "TRACE",
]);

/** The state of the instances of a process. */
export interface InstanceLoad {
  readonly idle: number;
  readonly taken: number;
  readonly memoryBytes: number;
  /** Undefined if fuel is not limited. */
  readonly fuelUsed: number | undefined;
}

/** Counts the requests of one process. */
export class ServeMetrics {
  readonly #counts: Samples = { waft_http_response_bytes_total: 0, waft_failures_total: 0 };
  readonly #durations = new Histogram();
  /** The series of the last request, which is usually that of the next one. */
  #last:
    | { readonly report: Pick<RequestReport, "component" | "method" | "status">; readonly series: string }
    | undefined;

  /** Counts a request that has ended. */
  readonly record = (report: RequestReport): void => {
    const { milliseconds, bytes, error } = report;
    this.#countSeries(this.#requestSeries(report));
    this.#counts["waft_http_response_bytes_total"] += bytes;
    this.#durations.observe(milliseconds / 1000);
    if (error instanceof TrapError) {
      this.#count("waft_traps_total", { code: error.code });
      const limit = limitOf(error);
      if (limit !== undefined) this.#count("waft_limits_reached_total", { limit });
    } else if (error !== undefined) this.#counts["waft_failures_total"]++;
  };

  #requestSeries({ component, method, status }: RequestReport): string {
    const last = this.#last;
    if (last?.report.method === method && last.report.status === status && last.report.component === component) {
      return last.series;
    }
    const labels = { method: METHODS.has(method) ? method : "other", status: String(status) };
    const series = seriesName(
      "waft_http_requests_total",
      component === undefined ? labels : { component, ...labels },
    );
    const report = component === undefined ? { method, status } : { component, method, status };
    this.#last = { report, series };
    return series;
  }

  #count(name: string, labels: { readonly [label: string]: string }): void {
    this.#countSeries(seriesName(name, labels));
  }

  #countSeries(series: string): void {
    this.#counts[series] = (this.#counts[series] ?? 0) + 1;
  }

  /** The samples of this moment. */
  samples(load: ServerLoad, instances: InstanceLoad): Samples {
    return {
      ...this.#counts,
      ...this.#durations.samples("waft_http_request_duration_seconds"),
      waft_http_requests_handling: load.handling,
      waft_http_requests_queued: load.queued,
      waft_http_connections: load.connections,
      waft_http_connections_total: load.acceptedConnections,
      [seriesName("waft_limits_reached_total", { limit: "concurrent" })]: load.refusedRequests,
      [seriesName("waft_limits_reached_total", { limit: "connections" })]: load.refusedConnections,
      [seriesName("waft_instances", { state: "idle" })]: instances.idle,
      [seriesName("waft_instances", { state: "busy" })]: instances.taken,
      waft_guest_memory_bytes: instances.memoryBytes,
      ...(instances.fuelUsed === undefined ? {} : { waft_fuel_used_total: instances.fuelUsed }),
      ...processSamples(),
    };
  }
}

/** The memory and the processor time of this process. */
export function processSamples(): Samples {
  const { user, system } = process.cpuUsage();
  return {
    process_resident_memory_bytes: process.memoryUsage().rss,
    process_cpu_seconds_total: (user + system) / 1e6,
  };
}

/** The constant that names the version. */
export function buildSamples(): Samples {
  return { [seriesName("waft_build_info", { version: VERSION })]: 1 };
}

/** The limit of a request that a trap reports, by the name of its option. */
function limitOf({ code, detail = "" }: TrapError): string | undefined {
  if (code === "out-of-fuel") return "fuel";
  if (code !== "interrupted") return undefined;
  return detail.endsWith("of processor time") ? "processor-time" : "timeout";
}
