/**
 * Metrics of the registry: requests by route and class of status, and their times. In: requests that have ended. Out:
 * the text for a scraper, which a listener of its own serves. Invariant: labels take values from tables of the program
 * only, so their number is bounded.
 */
import { Histogram, type MetricRow, metricsText, type Samples, seriesName } from "../project/base/prometheus.ts";

const REQUESTS = "waft_registry_requests_total";
const SECONDS = "waft_registry_request_seconds";

const ROWS: readonly MetricRow[] = [
  { name: REQUESTS, type: "counter", help: "Requests that have ended, by route and class of status." },
  { name: SECONDS, type: "histogram", help: "Time from a request to its answer, by route." },
];

/** The upper bounds of the buckets, in seconds: there is a histogram for each route. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];

/** Counters of one process. */
export class Metrics {
  readonly #requests: Samples = {};
  readonly #seconds = new Map<string, Histogram>();

  /** Counts a request and how long it took. */
  request(route: string, status: number, seconds: number): void {
    const series = seriesName(REQUESTS, { route, status: `${Math.floor(status / 100)}xx` });
    this.#requests[series] = (this.#requests[series] ?? 0) + 1;
    let histogram = this.#seconds.get(route);
    if (histogram === undefined) this.#seconds.set(route, histogram = new Histogram(BUCKETS));
    histogram.observe(seconds);
  }

  /** The text that a scraper reads. */
  format(): string {
    const samples: Samples = {};
    for (const series of Object.keys(this.#requests).sort()) samples[series] = this.#requests[series];
    for (const route of [...this.#seconds.keys()].sort()) {
      Object.assign(samples, this.#seconds.get(route)?.samples(SECONDS, { route }));
    }
    return metricsText(ROWS, samples);
  }
}
