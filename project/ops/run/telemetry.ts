/**
 * Sends traces and metrics of `waft serve` to a collector, by OTLP over HTTP in JSON. In: settings, reports of
 * requests, and a source of samples. Out: requests to the collector. Invariants: at most as many spans wait as the
 * settings say, and further ones are dropped; a collector that is slow or absent delays no answer to a client; its
 * failures are reported once until it answers again.
 */
import { randomUUID } from "node:crypto";
import { clearInterval, setInterval, setTimeout } from "node:timers";
import type { RequestReport } from "@waft/component/internal/http/server";
import type { Samples } from "../../base/prometheus.ts";
import { VERSION } from "../../base/version_string.ts";
import { type Attributes, metricsMessage, type OtlpSpan, spanOf, spansMessage } from "./otlp.ts";
import { SERVE_METRICS } from "./serve_metrics.ts";
import type { Destination, TelemetrySettings } from "./telemetry_settings.ts";

/** Answers after which a message may be sent again, as OTLP lists them. */
const RETRIED = new Set([429, 502, 503, 504]);
const ATTEMPTS = 4;
const FIRST_RETRY_MS = 1000;
/** The longest wait that a collector may ask for. */
const MAX_RETRY_MS = 30_000;

/** Sends messages to one address. */
class Sender {
  readonly #destination: Destination;
  readonly #warn: (message: string) => void;
  #hasFailed = false;
  #isClosing = false;

  constructor(destination: Destination, warn: (message: string) => void) {
    this.#destination = destination;
    this.#warn = warn;
  }

  /** From now on, messages are sent once. */
  close(): void {
    this.#isClosing = true;
  }

  /** Sends a message, again after failures that may pass. Never rejects. */
  async send(message: object): Promise<void> {
    const body = JSON.stringify(message);
    for (let attempt = 1;; attempt++) {
      const { failure, retryMs } = await this.#post(body);
      if (failure === undefined) {
        this.#hasFailed = false;
        return;
      }
      if (retryMs === undefined || attempt === ATTEMPTS || this.#isClosing) {
        if (!this.#hasFailed) this.#warn(`the collector at ${this.#destination.url} takes nothing: ${failure}`);
        this.#hasFailed = true;
        return;
      }
      const delay = Math.min(MAX_RETRY_MS, Math.max(retryMs, FIRST_RETRY_MS * 2 ** (attempt - 1)));
      await new Promise((resolve) => setTimeout(resolve, delay).unref());
    }
  }

  /** Sends once. `retryMs`: the least time before another attempt; undefined if none would help. */
  async #post(body: string): Promise<{ readonly failure?: string; readonly retryMs?: number }> {
    const { url, headers, timeoutMs } = this.#destination;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (response.ok) return {};
      const failure = `status ${response.status}`;
      if (!RETRIED.has(response.status)) return { failure };
      return { failure, retryMs: Number(response.headers.get("retry-after") ?? 0) * 1000 || 0 };
    } catch (error) {
      return { failure: error instanceof Error ? messageOf(error) : String(error), retryMs: 0 };
    }
  }
}

/** Hosts hide the reason of a failed connection behind a general one. */
function messageOf({ message, cause }: Error): string {
  return cause instanceof Error && cause.message !== "" ? cause.message : message;
}

/** Options of the telemetry of a process. */
interface TelemetryOptions {
  readonly settings: TelemetrySettings;
  readonly warn: (message: string) => void;
  /** The samples of all processes; undefined in a worker, whose primary sends them. */
  readonly samples?: () => Promise<Samples>;
}

/** The telemetry of a process. */
export class Telemetry {
  readonly #settings: TelemetrySettings;
  readonly #warn: (message: string) => void;
  readonly #resource: Attributes;
  readonly #traces: Sender | undefined;
  readonly #metrics: Sender | undefined;
  readonly #samples: (() => Promise<Samples>) | undefined;
  readonly #start = Date.now();
  readonly #timers: ReturnType<typeof setInterval>[] = [];
  #spans: OtlpSpan[] = [];
  #hasDropped = false;
  #sending: Promise<void> = Promise.resolve();
  #isSending = false;

  constructor({ settings, warn, samples }: TelemetryOptions) {
    this.#settings = settings;
    this.#warn = warn;
    this.#resource = {
      "service.version": VERSION,
      "service.instance.id": randomUUID(),
      "telemetry.sdk.language": "nodejs",
      "telemetry.sdk.name": "waft",
      "telemetry.sdk.version": VERSION,
      ...settings.resource,
    };
    const { traces, metrics, spanDelayMs, metricIntervalMs } = settings;
    if (traces !== undefined) {
      this.#traces = new Sender(traces, warn);
      this.#timers.push(setInterval(() => this.#flush(), Math.max(1, spanDelayMs)).unref());
    }
    if (metrics === undefined || samples === undefined) return;
    this.#metrics = new Sender(metrics, warn);
    this.#samples = samples;
    this.#timers.push(setInterval(() => void this.#sendMetrics(), metricIntervalMs).unref());
  }

  /** Adds the span of a request that has ended. */
  record(report: RequestReport): void {
    const { span } = report;
    if (this.#traces === undefined || span?.isSampled !== true) return;
    const { maxQueuedSpans, maxBatchSpans } = this.#settings;
    if (this.#spans.length >= maxQueuedSpans) {
      if (!this.#hasDropped) this.#warn(`${maxQueuedSpans} spans wait for the collector; further ones are dropped`);
      this.#hasDropped = true;
      return;
    }
    this.#spans.push(spanOf(report, span, Date.now()));
    if (this.#spans.length >= maxBatchSpans) this.#flush();
  }

  /** Sends the spans that wait, unless others are being sent. */
  #flush(): void {
    if (this.#isSending || this.#spans.length === 0) return;
    this.#isSending = true;
    this.#sending = this.#sendSpans().finally(() => this.#isSending = false);
  }

  async #sendSpans(): Promise<void> {
    while (this.#spans.length > 0) {
      const batch = this.#spans.splice(0, this.#settings.maxBatchSpans);
      this.#hasDropped = false;
      await this.#traces?.send(spansMessage(this.#resource, batch));
    }
  }

  async #sendMetrics(): Promise<void> {
    const samples = await this.#samples?.();
    if (samples === undefined) return;
    const times = { start: this.#start, now: Date.now() };
    await this.#metrics?.send(metricsMessage(this.#resource, SERVE_METRICS, samples, times));
  }

  /** Sends what is left. Resolves when that has been taken or has failed, at the latest after `limitMs`. */
  async close(limitMs: number): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#traces?.close();
    this.#metrics?.close();
    this.#flush();
    const late = new Promise((resolve) => setTimeout(resolve, limitMs));
    await Promise.race([Promise.all([this.#sending, this.#sendMetrics()]), late]);
  }
}
