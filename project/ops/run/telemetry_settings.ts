/**
 * The settings of OpenTelemetry that `waft serve` takes from the environment, by the names of its specification. In:
 * variables. Out: where traces and metrics go, which requests are traced, what the server is called; undefined if
 * nothing is to be sent. Invariant: as the specification asks, a value that is not valid is reported and ignored.
 */
import { environment } from "@waft/engine/internal/host/process";
import type { Sampler } from "@waft/component/internal/http/trace";
import type { Attributes } from "./otlp.ts";

/** The collector of one signal. */
export interface Destination {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** The settings. */
export interface TelemetrySettings {
  readonly traces?: Destination;
  readonly metrics?: Destination;
  readonly sampler: Sampler;
  readonly resource: Attributes;
  /** The longest time for which spans wait, and the most that wait or are sent at once. */
  readonly spanDelayMs: number;
  readonly maxQueuedSpans: number;
  readonly maxBatchSpans: number;
  readonly metricIntervalMs: number;
}

/** Variables by name. */
type Variables = Readonly<Record<string, string | undefined>>;

const MAX_NUMBER = 2 ** 31 - 1;
/** The part of a trace's identifier that decides with a ratio: 56 bits at its end, as W3C defines them. */
const RATIO_DIGITS = 14;

/** The settings; `warn` is called for each value that is not valid. */
export function telemetrySettings(
  warn: (message: string) => void,
  variables: Variables = environment(),
): TelemetrySettings | undefined {
  const text = (name: string) => variables[name]?.trim() || undefined;
  if (text("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return undefined;
  const number = (name: string, otherwise: number, least = 1) => {
    const given = text(name);
    if (given === undefined) return otherwise;
    const value = /^\d+$/.test(given) ? Number(given) : -1;
    if (value >= least && value <= MAX_NUMBER) return value;
    warn(`${name} is not a number from ${least} to ${MAX_NUMBER}: ${given}`);
    return otherwise;
  };
  const signal = (name: "TRACES" | "METRICS"): Destination | undefined => {
    const exporter = text(`OTEL_${name}_EXPORTER`) ?? "otlp";
    if (exporter !== "otlp") {
      if (exporter !== "none") warn(`OTEL_${name}_EXPORTER is neither otlp nor none: ${exporter}`);
      return undefined;
    }
    const url = urlOf(text(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`), text("OTEL_EXPORTER_OTLP_ENDPOINT"), name, warn);
    if (url === undefined) return undefined;
    const protocol = text(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`) ?? text("OTEL_EXPORTER_OTLP_PROTOCOL");
    if (protocol === "grpc") {
      warn(`waft sends OTLP over HTTP: with the protocol grpc, ${name.toLowerCase()} are not sent`);
      return undefined;
    }
    const headers = text(`OTEL_EXPORTER_OTLP_${name}_HEADERS`) ?? text("OTEL_EXPORTER_OTLP_HEADERS");
    return {
      url,
      headers: pairsOf(headers, "OTEL_EXPORTER_OTLP_HEADERS", warn),
      timeoutMs: number(`OTEL_EXPORTER_OTLP_${name}_TIMEOUT`, number("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)),
    };
  };
  const [traces, metrics] = [signal("TRACES"), signal("METRICS")];
  if (traces === undefined && metrics === undefined) return undefined;
  const attributes = pairsOf(text("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES", warn);
  const name = text("OTEL_SERVICE_NAME");
  const maxQueuedSpans = number("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
  return {
    ...(traces === undefined ? {} : { traces }),
    ...(metrics === undefined ? {} : { metrics }),
    sampler: samplerOf(text("OTEL_TRACES_SAMPLER"), text("OTEL_TRACES_SAMPLER_ARG"), warn),
    resource: { "service.name": "waft", ...attributes, ...(name === undefined ? {} : { "service.name": name }) },
    spanDelayMs: number("OTEL_BSP_SCHEDULE_DELAY", 5000, 0),
    maxQueuedSpans,
    maxBatchSpans: Math.min(maxQueuedSpans, number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)),
    metricIntervalMs: number("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
  };
}

/** The address of a signal: its own, or a path below the common one. */
function urlOf(
  own: string | undefined,
  common: string | undefined,
  name: "TRACES" | "METRICS",
  warn: (message: string) => void,
): string | undefined {
  const given = own ?? common;
  if (given === undefined) return undefined;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    warn(`the address of the collector is not an address with http or https: ${given}`);
    return undefined;
  }
  if (own === undefined) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/${name.toLowerCase()}`;
  return url.href;
}

/** `name=value` pairs with commas between them, as W3C Baggage has them. */
function pairsOf(given: string | undefined, variable: string, warn: (message: string) => void): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const part of given?.split(",") ?? []) {
    if (part.trim() === "") continue;
    const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    try {
      if (key === undefined) throw new URIError();
      pairs[key] = decodeURIComponent(value);
    } catch {
      // Its value may be secret.
      warn(`${variable} is not a list of NAME=VALUE with commas between them`);
    }
  }
  return pairs;
}

/** Decides by the last digits of the trace, so that all services of a trace decide alike. */
function ratioSampler(argument: string | undefined, warn: (message: string) => void): Sampler {
  const ratio = argument === undefined ? 1 : Number(argument);
  if (!(ratio >= 0 && ratio <= 1)) {
    warn(`OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: ${argument}`);
    return () => true;
  }
  return (trace) => parseInt(trace.slice(-RATIO_DIGITS), 16) / 16 ** RATIO_DIGITS >= 1 - ratio;
}

function samplerOf(name: string | undefined, argument: string | undefined, warn: (message: string) => void): Sampler {
  const isParentBased = name === undefined || name.startsWith("parentbased_");
  const root = name === undefined ? "always_on" : name.replace(/^parentbased_/, "");
  const samplers: Readonly<Record<string, () => Sampler>> = {
    always_on: () => () => true,
    always_off: () => () => false,
    traceidratio: () => ratioSampler(argument, warn),
  };
  const make = Object.hasOwn(samplers, root) ? samplers[root] : undefined;
  if (make === undefined) warn(`OTEL_TRACES_SAMPLER is not a sampler that waft has: ${name}`);
  const own = (make ?? samplers["always_on"])();
  return isParentBased ? (trace, parent) => parent ?? own(trace, parent) : own;
}
