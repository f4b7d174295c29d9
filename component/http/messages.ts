/**
 * Requests and responses of wasi:http. In: values that a guest sets, or a message that has arrived. Out: the resources
 * of wasi:http/types. Invariant: method, path and authority have no character that could end the line or the field that
 * they are in.
 */
import type { IncomingMessage } from "node:http";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import type { Preview1 } from "../wasi/preview1.ts";
import { BodySink, type HttpError, IncomingBody, type MessageKind, messageShare, OutgoingBody } from "./body.ts";
import { Fields } from "./fields.ts";

/** A method: its name in lower case, or another one. */
export type Method = { readonly tag: "other"; readonly val: string } | {
  readonly tag: string;
  readonly val?: undefined;
};
export type Scheme = { readonly tag: "HTTP" | "HTTPS" } | { readonly tag: "other"; readonly val: string };

const METHODS = new Set(["get", "head", "post", "put", "delete", "connect", "options", "trace", "patch"]);
const METHOD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;
const TARGET = /^[\x21-\x7e]{1,8192}$/;
/** The maximum number of characters of a scheme, and of an authority. */
const MAX_SCHEME = 64;
const MAX_AUTHORITY = 512;

const AUTHORITY = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%-]+)(?::\d{1,5})?$/;

/** The name of a method as a request line has it. */
export function methodName(method: Method): string {
  return method.val ?? method.tag.toUpperCase();
}

function methodOf(name: string): Method {
  const tag = name.toLowerCase();
  return METHODS.has(tag) && name === tag.toUpperCase() ? { tag } : { tag: "other", val: name };
}

/** The scheme and the authority of a request's target, which only requests to proxies have. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/([^/?]*)/i;

function targetAuthority({ url = "" }: IncomingMessage): string | undefined {
  return ABSOLUTE.exec(url)?.[1];
}

/** Fields that HTTP/2 does not have (RFC 9113, section 8.2.2). */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** The values of a field of a message that has arrived, each as it was sent. */
function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let k = 0; k + 1 < rawHeaders.length; k += 2) {
    const given = rawHeaders[k];
    if (given.length === name.length && given.toLowerCase() === name) values.push(rawHeaders[k + 1]);
  }
  return values;
}

/**
 * Whether a request can be passed on, because all servers interpret it alike: it has one host, which the target does
 * not contradict, and its body has no transfer coding except chunks.
 */
export function isSound(message: IncomingMessage, scheme: "HTTP" | "HTTPS" = "HTTP"): boolean {
  const { url = "", httpVersion } = message;
  if (httpVersion === "2.0") return isSoundHttp2(message);
  const hosts = valuesOf(message, "host");
  const authority = targetAuthority(message);
  const codings = valuesOf(message, "transfer-encoding");
  return /^[\x21\x22\x24-\x7e]*$/.test(url) &&
    hosts.length <= 1 && hosts.every((host) => host === "" || AUTHORITY.test(host)) &&
    (authority === undefined ||
      (url.slice(0, url.indexOf(":")).toUpperCase() === scheme && AUTHORITY.test(authority))) &&
    (authority === undefined || hosts.every((host) => host.toLowerCase() === authority.toLowerCase())) &&
    (codings.length === 0 || (codings.length === 1 && /^chunked$/i.test(codings[0].trim()) && httpVersion === "1.1"));
}

/** The same for a request of HTTP/2, whose frames delimit its body. */
function isSoundHttp2(message: IncomingMessage): boolean {
  const { url, method, rawHeaders } = message;
  const names = rawHeaders.filter((_, k) => k % 2 === 0);
  const pseudo = names.filter((name) => name.startsWith(":"));
  const [authority, ...others] = [...new Set([...valuesOf(message, ":authority"), ...valuesOf(message, "host")])];
  return url !== undefined && (/^\/[\x21\x22\x24-\x7e]*$/.test(url) || (url === "*" && method === "OPTIONS")) &&
    authority !== undefined && AUTHORITY.test(authority) && others.length === 0 &&
    new Set(pseudo).size === pseudo.length && !names.some((name) => CONNECTION_FIELDS.has(name)) &&
    valuesOf(message, "host").length <= 1;
}

/** The authority of a request: that of its target, or its host. */
function authorityOf(message: IncomingMessage): string | undefined {
  const { ":authority": authority, host } = message.headers;
  return targetAuthority(message) ?? (typeof authority === "string" ? authority : host);
}

/** The host that a request is for, without its port, and the path; a request to a proxy has them in its target. */
export function destinationOf(message: IncomingMessage): { readonly host: string; readonly path: string } {
  const authority = authorityOf(message) ?? "";
  return { host: authority.replace(/\.?(?::\d*)?$/, ""), path: pathOf(message).split("?", 1)[0] };
}

/** The path and the query, which a request to a proxy has after the authority. */
function pathOf({ url = "/" }: IncomingMessage): string {
  return url.replace(ABSOLUTE, "").replace(/^(?=\?|$)/, "/");
}

/** The fields of a request with another `traceparent`. */
function withField({ rawHeaders }: IncomingMessage, traceparent: string): string[] {
  const isKept = (k: number) => rawHeaders[k - k % 2].toLowerCase() !== "traceparent";
  return [...rawHeaders.filter((_, k) => isKept(k)), "traceparent", traceparent];
}

function refuse(): never {
  throw new ComponentError(undefined);
}

/** A part of a message that can be obtained once. */
class Once<T> {
  #value: T | undefined;

  constructor(value: T) {
    this.#value = value;
  }

  take(): T {
    const value = this.#value;
    this.#value = undefined;
    return value ?? refuse();
  }
}

/** The common part of requests to a server and responses to a client: a message whose body arrives. */
class Incoming implements Holding {
  readonly message: IncomingMessage;
  readonly #share = messageShare();
  /** Its head and what arrives of its body. */
  readonly [SHARES]: readonly HostShare[] = [this.#share];
  readonly #headers: Fields;
  readonly #body: Once<() => IncomingBody>;

  constructor(
    preview1: Preview1,
    message: IncomingMessage,
    kind: MessageKind,
    headers: readonly string[] = message.rawHeaders,
  ) {
    this.message = message;
    this.#headers = Fields.arrived(headers);
    this.#body = new Once(() => new IncomingBody(preview1, message, kind, this.#share));
  }

  headers(): Fields {
    return this.#headers.view();
  }

  consume(): IncomingBody {
    return this.#body.take()();
  }
}

/** wasi:http/types incoming-request. */
export class IncomingRequest extends Incoming {
  readonly #scheme: "HTTP" | "HTTPS";

  /** `traceparent` takes the place of the client's field. */
  constructor(
    preview1: Preview1,
    message: IncomingMessage,
    { scheme = "HTTP", traceparent }: { readonly scheme?: "HTTP" | "HTTPS"; readonly traceparent?: string } = {},
  ) {
    super(preview1, message, "request", traceparent === undefined ? undefined : withField(message, traceparent));
    this.#scheme = scheme;
  }

  method(): Method {
    return methodOf(this.message.method ?? "GET");
  }

  pathWithQuery(): string | undefined {
    return pathOf(this.message);
  }

  scheme(): Scheme {
    return { tag: this.#scheme };
  }

  authority(): string | undefined {
    return authorityOf(this.message);
  }
}

/** wasi:http/types incoming-response. */
export class IncomingResponse extends Incoming {
  constructor(preview1: Preview1, message: IncomingMessage) {
    super(preview1, message, "response");
  }

  status(): number {
    return this.message.statusCode ?? 0;
  }

  /** Ends the connection unless the body is being read. */
  [Symbol.dispose](): void {
    if (this.message.listenerCount("readable") === 0) this.message.destroy();
  }
}

/** The common part of requests and responses of a guest. */
class Outgoing implements Holding {
  readonly fields: Fields;
  readonly #preview1: Preview1;
  readonly #kind: MessageKind;
  readonly #bodyShare = new HostShare();
  #sink: BodySink | undefined;

  constructor(preview1: Preview1, kind: MessageKind, fields: Fields) {
    this.#preview1 = preview1;
    this.#kind = kind;
    this.fields = fields.clone();
  }

  headers(): Fields {
    return this.fields.view();
  }

  /** Its fields, and the bytes of its body before it has a receiver. */
  get [SHARES](): readonly HostShare[] {
    return [...this.fields[SHARES], this.#bodyShare];
  }

  body(): OutgoingBody {
    if (this.#sink !== undefined) refuse();
    return new OutgoingBody(this.#preview1, this.#sink = this.#makeSink());
  }

  #makeSink(): BodySink {
    try {
      return new BodySink(this.#kind, this.fields.contentLength, this.#bodyShare);
    } catch {
      return refuse();
    }
  }

  /**
   * The bytes of the body, which is empty if the guest has not requested it. Throws an Error if the message announces
   * bytes that can no longer be written: its receiver would read the next message in their place. `isBodiless` is true
   * for messages that may announce a body that they do not have.
   */
  takeSink(isBodiless: boolean): BodySink {
    if (this.#sink !== undefined) return this.#sink;
    const length = this.fields.contentLength ?? 0;
    if (length > 0 && !isBodiless) throw new TypeError(`the ${this.#kind} announces ${length} bytes and has no body`);
    const sink = new BodySink(this.#kind, undefined);
    sink.finish([]);
    return sink;
  }

  /** Ends a message that was not sent. */
  [Symbol.dispose](): void {
    this.#sink?.discard();
  }
}

/** The first status of a final response; those below are of interim responses. */
export const FIRST_FINAL_STATUS = 200;

/** Throws for a status that HTTP does not have (RFC 9110, section 15). */
export function checkStatus(status: number): void {
  if (!Number.isInteger(status) || status < 100 || status > 599) refuse();
}

/** A method in its one form: a known one that is given as another has its own case. Throws for an invalid name. */
export function checkedMethod(method: Method): Method {
  const name = methodName(method);
  if (!METHOD_NAME.test(name)) refuse();
  return methodOf(name);
}

export function checkPath(path: string | undefined): void {
  if (path !== undefined && path !== "" && (!TARGET.test(path) || !/^[/?*]/.test(path))) refuse();
}

/** A scheme in its one form: a known one that is given as another has its own case. Throws for an invalid name. */
export function checkedScheme(scheme: Scheme | undefined): Scheme | undefined {
  if (scheme?.tag !== "other") return scheme;
  if (scheme.val.length > MAX_SCHEME || !/^[a-z][a-z0-9+.-]*$/i.test(scheme.val)) refuse();
  const name = scheme.val.toUpperCase();
  return name === "HTTP" || name === "HTTPS" ? { tag: name } : scheme;
}

export function checkAuthority(authority: string | undefined): void {
  if (authority !== undefined && (authority.length > MAX_AUTHORITY || !AUTHORITY.test(authority))) refuse();
}

/** The class outgoing-response of one guest. */
export class OutgoingResponse extends Outgoing {
  #status = 200;

  constructor(preview1: Preview1, headers: Fields) {
    super(preview1, "response", headers);
  }

  statusCode(): number {
    return this.#status;
  }

  setStatusCode(status: number): void {
    checkStatus(status);
    this.#status = status;
  }
}

/** The class outgoing-request of one guest. */
export class OutgoingRequest extends Outgoing {
  #method: Method = { tag: "get" };
  #path: string | undefined;
  #scheme: Scheme | undefined;
  #authority: string | undefined;

  constructor(preview1: Preview1, headers: Fields) {
    super(preview1, "request", headers);
  }

  method(): Method {
    return this.#method;
  }

  setMethod(method: Method): void {
    this.#method = checkedMethod(method);
  }

  pathWithQuery(): string | undefined {
    return this.#path;
  }

  setPathWithQuery(path: string | undefined): void {
    checkPath(path);
    this.#path = path;
  }

  scheme(): Scheme | undefined {
    return this.#scheme;
  }

  setScheme(scheme: Scheme | undefined): void {
    this.#scheme = checkedScheme(scheme);
  }

  authority(): string | undefined {
    return this.#authority;
  }

  setAuthority(authority: string | undefined): void {
    checkAuthority(authority);
    this.#authority = authority;
  }
}

/** wasi:http/types request-options: durations in nanoseconds. */
export class RequestOptions {
  #connect: bigint | undefined;
  #firstByte: bigint | undefined;
  #betweenBytes: bigint | undefined;

  connectTimeout(): bigint | undefined {
    return this.#connect;
  }

  setConnectTimeout(duration: bigint | undefined): void {
    this.#connect = duration;
  }

  firstByteTimeout(): bigint | undefined {
    return this.#firstByte;
  }

  setFirstByteTimeout(duration: bigint | undefined): void {
    this.#firstByte = duration;
  }

  betweenBytesTimeout(): bigint | undefined {
    return this.#betweenBytes;
  }

  setBetweenBytesTimeout(duration: bigint | undefined): void {
    this.#betweenBytes = duration;
  }
}

/** The answer of a guest to a request. */
export type Answer = { readonly tag: "ok"; readonly val: OutgoingResponse } | {
  readonly tag: "err";
  readonly val: HttpError;
};

/** wasi:http/types response-outparam: passes the answer to the server. */
export class ResponseOutparam {
  readonly #answer: (answer: Answer) => void;

  constructor(answer: (answer: Answer) => void) {
    this.#answer = answer;
  }

  sendInformational(): never {
    throw new ComponentError({ tag: "internal-error", val: "informational responses are not available" });
  }

  static set(param: ResponseOutparam, answer: Answer): void {
    param.#answer(answer);
  }
}
