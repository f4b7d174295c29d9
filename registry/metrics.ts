/**
 * Counters and one histogram in the Prometheus text format, served on a separate listener.
 *
 * Labels take values from tables of the program only (routes, status classes), so their number is bounded.
 */

const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];

/** Counters of one process. */
export class Metrics {
  readonly #counters = new Map<string, number>();
  readonly #buckets = new Map<string, number[]>();
  readonly #sums = new Map<string, number>();

  /** Counts an event. */
  count(name: string, labels: { readonly [label: string]: string } = {}): void {
    const key = `${name}${labelText(labels)}`;
    this.#counters.set(key, (this.#counters.get(key) ?? 0) + 1);
  }

  /** Counts a request and how long it took. */
  request(route: string, status: number, seconds: number): void {
    this.count("waft_registry_requests_total", { route, status: `${Math.floor(status / 100)}xx` });
    let row = this.#buckets.get(route);
    if (row === undefined) this.#buckets.set(route, row = new Array<number>(BUCKETS.length + 1).fill(0));
    const i = BUCKETS.findIndex((limit) => seconds <= limit);
    row[i < 0 ? BUCKETS.length : i]++;
    this.#sums.set(route, (this.#sums.get(route) ?? 0) + seconds);
  }

  /** The text that a scraper reads. */
  format(): string {
    const lines: string[] = [];
    let last = "";
    for (const [key, value] of [...this.#counters].sort(([a], [b]) => a < b ? -1 : 1)) {
      const name = key.replace(/\{.*$/, "");
      if (name !== last) lines.push(`# TYPE ${name} counter`);
      last = name;
      lines.push(`${key} ${value}`);
    }
    const name = "waft_registry_request_seconds";
    if (this.#buckets.size > 0) lines.push(`# TYPE ${name} histogram`);
    for (const [route, row] of [...this.#buckets].sort(([a], [b]) => a < b ? -1 : 1)) {
      let sum = 0;
      row.forEach((n, i) => {
        sum += n;
        const le = i < BUCKETS.length ? String(BUCKETS[i]) : "+Inf";
        lines.push(`${name}_bucket${labelText({ route, le })} ${sum}`);
      });
      lines.push(
        `${name}_sum${labelText({ route })} ${this.#sums.get(route)}`,
        `${name}_count${labelText({ route })} ${sum}`,
      );
    }
    return lines.join("\n") + "\n";
  }
}

function labelText(labels: { readonly [label: string]: string }): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/["\\\n]/g, "\\$&")}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
