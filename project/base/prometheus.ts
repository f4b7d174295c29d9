/**
 * Metrics in the Prometheus text format (version 0.0.4). In: rows that define metrics, and events. Out: samples, plain
 * records that processes can exchange and add up, and the text that a scraper reads. Invariant: labels take values
 * from tables of the program, so the number of series is bounded.
 */

/** A metric: its name, its type and its description. */
export interface MetricRow {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
}

/** Values by series: the name of a metric and its labels, as `requests_total{status="200"}`. */
export type Samples = { [series: string]: number };

/** The upper bounds of a histogram's buckets, in seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The content type of the text. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A histogram of times without labels. */
export class Histogram {
  readonly #counts = new Array<number>(BUCKETS.length + 1).fill(0);
  #sum = 0;

  observe(seconds: number): void {
    const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
    this.#counts[bucket < 0 ? BUCKETS.length : bucket]++;
    this.#sum += seconds;
  }

  /** Its series; a bucket contains those before it. */
  samples(name: string): Samples {
    const samples: Samples = {};
    let count = 0;
    this.#counts.forEach((inBucket, i) => {
      count += inBucket;
      samples[seriesName(`${name}_bucket`, { le: i < BUCKETS.length ? String(BUCKETS[i]) : "+Inf" })] = count;
    });
    samples[`${name}_sum`] = this.#sum;
    samples[`${name}_count`] = count;
    return samples;
  }
}

/** The key of a series. */
export function seriesName(name: string, labels: { readonly [label: string]: string }): string {
  const parts = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
  return parts.length === 0 ? name : `${name}{${parts.join(",")}}`;
}

function escaped(text: string): string {
  return text.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
}

/** Adds `more` to `samples`. */
export function addSamples(samples: Samples, more: Samples): void {
  for (const [series, value] of Object.entries(more)) samples[series] = (samples[series] ?? 0) + value;
}

/** The samples of metrics that only grow. */
export function cumulativeSamples(rows: readonly MetricRow[], samples: Samples): Samples {
  const gauges = new Set(rows.filter(({ type }) => type === "gauge").map(({ name }) => name));
  return Object.fromEntries(Object.entries(samples).filter(([series]) => !gauges.has(series.split("{", 1)[0])));
}

/** The text of the samples, in the order of the rows. */
export function metricsText(rows: readonly MetricRow[], samples: Samples): string {
  const entries = Object.entries(samples);
  const lines: string[] = [];
  for (const { name, type, help } of rows) {
    const names = type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
    const own = entries.filter(([series]) => names.includes(series.split("{", 1)[0]));
    if (own.length === 0) continue;
    lines.push(
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...own.map(([series, value]) => `${series} ${value}`),
    );
  }
  return `${lines.join("\n")}\n`;
}
