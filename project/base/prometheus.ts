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

/** A histogram of times. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  /** `bounds`: the upper bounds of its buckets, in seconds. */
  constructor(bounds: readonly number[] = BUCKETS) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(seconds: number): void {
    const bucket = this.#bounds.findIndex((bound) => seconds <= bound);
    this.#counts[bucket < 0 ? this.#bounds.length : bucket]++;
    this.#sum += seconds;
  }

  /** Its series, each with `labels`; a bucket contains those before it. */
  samples(name: string, labels: { readonly [label: string]: string } = {}): Samples {
    const samples: Samples = {};
    let count = 0;
    this.#counts.forEach((inBucket, i) => {
      count += inBucket;
      const le = i < this.#bounds.length ? String(this.#bounds[i]) : "+Inf";
      samples[seriesName(`${name}_bucket`, { ...labels, le })] = count;
    });
    samples[seriesName(`${name}_sum`, labels)] = this.#sum;
    samples[seriesName(`${name}_count`, labels)] = count;
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

const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

/** The name and the labels of a series, as `seriesName` takes them. */
export function parseSeries(series: string): {
  readonly name: string;
  readonly labels: { readonly [label: string]: string };
} {
  const labels = [...series.matchAll(LABEL)].map(([, label, value]) => [label, unescaped(value)]);
  return { name: series.split("{", 1)[0], labels: Object.fromEntries(labels) as { [label: string]: string } };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, escaped: string) => escaped === "n" ? "\n" : escaped);
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
