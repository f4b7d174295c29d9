/**
 * Requests and responses of wasi:http 0.3. In: the fields and bodies that a guest sets, or a message that has
 * arrived. Out: the resources of wasi:http/types, and messages of 0.2, which go to the network. Invariant: 0.3 refuses
 * every message that 0.2 refuses.
 */
import { type Holding, type HostShare, SHARES } from "../../async/host_quota.ts";
import { Outcome } from "../../async/host_streams.ts";
import { ComponentError } from "../../abi/traps.ts";
import type { Preview1 } from "../../wasi/preview1.ts";
import type { HttpError, IncomingBody } from "../body.ts";
import { Fields } from "../fields.ts";
import {
  checkAuthority,
  checkedMethod,
  checkedScheme,
  checkPath,
  checkStatus,
  type IncomingRequest,
  type IncomingResponse,
  type Method,
  OutgoingRequest,
  OutgoingResponse,
  RequestOptions,
  type Scheme,
} from "../messages.ts";
import { arriving, type Body, endOf, sendBody } from "./body.ts";

type Stream = ReadableStream<Uint8Array>;
type Sent = Outcome<{ tag: "ok" } | { tag: "err"; val: HttpError }>;

/** wasi:http/types fields. */
export class AsyncFields extends Fields {
  constructor() {
    super(true);
  }

  static override fromList(entries: Parameters<typeof Fields.fromList>[0]): Fields {
    return Fields.filled(new AsyncFields(), entries);
  }
}

/** wasi:http/types request-options. */
export class AsyncRequestOptions extends RequestOptions {
  #isMutable = true;

  getConnectTimeout(): bigint | undefined {
    return this.connectTimeout();
  }

  override setConnectTimeout(duration: bigint | undefined): void {
    this.#change();
    super.setConnectTimeout(duration);
  }

  getFirstByteTimeout(): bigint | undefined {
    return this.firstByteTimeout();
  }

  override setFirstByteTimeout(duration: bigint | undefined): void {
    this.#change();
    super.setFirstByteTimeout(duration);
  }

  getBetweenBytesTimeout(): bigint | undefined {
    return this.betweenBytesTimeout();
  }

  override setBetweenBytesTimeout(duration: bigint | undefined): void {
    this.#change();
    super.setBetweenBytesTimeout(duration);
  }

  #change(): void {
    if (!this.#isMutable) throw new ComponentError({ tag: "immutable" });
  }

  clone(): AsyncRequestOptions {
    const copy = new AsyncRequestOptions();
    copy.setConnectTimeout(this.connectTimeout());
    copy.setFirstByteTimeout(this.firstByteTimeout());
    copy.setBetweenBytesTimeout(this.betweenBytesTimeout());
    return copy;
  }

  /** A copy that cannot be changed. */
  view(): AsyncRequestOptions {
    const copy = this.clone();
    copy.#isMutable = false;
    return copy;
  }
}

/** The error of messages that nothing has sent. */
const TERMINATED: HttpError = { tag: "connection-terminated" };

/** The common part of requests and responses: fields, and a body that is taken once. */
class Message implements Holding {
  readonly fields: Fields;
  readonly [SHARES]: readonly HostShare[];
  #body: Body | undefined;

  /** `shares` are those of a message that has arrived. */
  constructor(fields: Fields, body: Body, shares: readonly HostShare[] = []) {
    this.fields = fields;
    this[SHARES] = [...fields[SHARES], ...shares];
    this.#body = body;
  }

  getHeaders(): Fields {
    return this.fields.view();
  }

  /** Takes the body. Throws an Error if the message has been sent or consumed. */
  takeBody(): Body {
    const body = this.#body;
    if (body === undefined) throw new Error("The message has been used");
    this.#body = undefined;
    return body;
  }

  /** Ends a message that was not used, or that could not be sent for the reason `val`. */
  refuse(val: HttpError): void {
    const body = this.#body;
    this.#body = undefined;
    if (body === undefined) return;
    if (body.contents instanceof ReadableStream) body.contents.cancel().catch(() => {});
    else body.contents?.[Symbol.asyncIterator]().return?.();
    body.settle({ tag: "err", val });
  }

  [Symbol.dispose](): void {
    this.refuse(TERMINATED);
  }

  protected static consumed(message: Message, res: unknown): [unknown, unknown] {
    const body = message.takeBody();
    const settle = (result: unknown) => body.settle(result as Parameters<Body["settle"]>[0]);
    // A future that is dropped says nothing about the body.
    Promise.resolve(res).then(settle, () => settle({ tag: "err", val: TERMINATED }));
    return [body.contents ?? [], body.trailers];
  }
}

/** The body that a guest gives to a message, and the future of its transmission. */
function given(contents: Stream | undefined, trailers: unknown): { body: Body; sent: Sent } {
  const sent: Sent = new Outcome();
  return { body: { contents, trailers, settle: (result) => sent.settle(result) }, sent };
}

/** The body of a message that arrives. `close` is called once the guest no longer reads it. */
function arrived(body: IncomingBody, close: () => void): Body {
  const [contents, trailers] = arriving(body, close);
  return { contents, trailers, settle: () => {} };
}

/** wasi:http/types request. */
export class AsyncRequest extends Message {
  #method: Method = { tag: "get" };
  #path: string | undefined;
  #scheme: Scheme | undefined;
  #authority: string | undefined;
  #options: AsyncRequestOptions | undefined;

  static new(
    headers: Fields,
    contents: Stream | undefined,
    trailers: unknown,
    options: AsyncRequestOptions | undefined,
  ): [AsyncRequest, Sent] {
    const { body, sent } = given(contents, trailers);
    const request = new AsyncRequest(headers, body);
    request.#options = options;
    return [request, sent];
  }

  /** A request that a server has received. */
  static arrived(incoming: IncomingRequest): AsyncRequest {
    const fields = Fields.arrived(incoming.message.rawHeaders, true);
    const request = new AsyncRequest(fields, arrived(incoming.consume(), () => {}), incoming[SHARES]);
    request.#method = incoming.method();
    request.#path = incoming.pathWithQuery();
    request.#scheme = incoming.scheme();
    request.#authority = incoming.authority();
    return request;
  }

  static consumeBody(request: AsyncRequest, res: unknown): [unknown, unknown] {
    return Message.consumed(request, res);
  }

  /**
   * The request for the network, whose body is being sent, and the end of that. `transmission` is the end of the
   * network's part: undefined, or the error with which it failed.
   */
  send(
    preview1: Preview1,
    transmission: Promise<HttpError | undefined>,
  ): { readonly outgoing: OutgoingRequest; readonly sent: Promise<void> } {
    const outgoing = this.#checked(preview1);
    const body = this.takeBody();
    const isBodiless = body.contents === undefined && this.fields.contentLength === undefined;
    const sent = sendMessage(body, outgoing, isBodiless, transmission);
    return { outgoing, sent };
  }

  #checked(preview1: Preview1): OutgoingRequest {
    const outgoing = new OutgoingRequest(preview1, this.fields);
    outgoing.setMethod(this.#method);
    outgoing.setPathWithQuery(this.#path);
    outgoing.setScheme(this.#scheme);
    outgoing.setAuthority(this.#authority);
    return outgoing;
  }

  getMethod(): Method {
    return this.#method;
  }

  setMethod(method: Method): void {
    this.#method = checkedMethod(method);
  }

  getPathWithQuery(): string | undefined {
    return this.#path;
  }

  setPathWithQuery(path: string | undefined): void {
    checkPath(path);
    this.#path = path;
  }

  getScheme(): Scheme | undefined {
    return this.#scheme;
  }

  setScheme(scheme: Scheme | undefined): void {
    this.#scheme = checkedScheme(scheme);
  }

  getAuthority(): string | undefined {
    return this.#authority;
  }

  setAuthority(authority: string | undefined): void {
    checkAuthority(authority);
    this.#authority = authority;
  }

  getOptions(): AsyncRequestOptions | undefined {
    return this.#options?.view();
  }

  /** The timeouts of the request. */
  get options(): AsyncRequestOptions | undefined {
    return this.#options;
  }
}

/** Starts to send a body. Without one, the message has ended. */
async function sendMessage(
  body: Body,
  outgoing: OutgoingRequest | OutgoingResponse,
  isBodiless: boolean,
  transmission?: Promise<HttpError | undefined>,
): Promise<void> {
  if (!isBodiless) return await sendBody(body, outgoing.body(), transmission);
  const end = await endOf(body);
  const error = end.tag === "err" ? end.val : await transmission;
  body.settle(error === undefined ? { tag: "ok" } : { tag: "err", val: error });
}

/** wasi:http/types response. */
export class AsyncResponse extends Message {
  #status = 200;

  static new(headers: Fields, contents: Stream | undefined, trailers: unknown): [AsyncResponse, Sent] {
    const { body, sent } = given(contents, trailers);
    return [new AsyncResponse(headers, body), sent];
  }

  /** A response to a request of a guest. */
  static arrived(incoming: IncomingResponse): AsyncResponse {
    const fields = Fields.arrived(incoming.message.rawHeaders, true);
    const close = () => {
      if (!incoming.message.complete) incoming.message.destroy();
    };
    const response = new AsyncResponse(fields, arrived(incoming.consume(), close), incoming[SHARES]);
    response.#status = incoming.status();
    return response;
  }

  static consumeBody(response: AsyncResponse, res: unknown): [unknown, unknown] {
    return Message.consumed(response, res);
  }

  /**
   * The response for the network, whose body is being sent, and the end of that. `isBodiless` is true for the answer to
   * a request that gets no body.
   */
  send(
    preview1: Preview1,
    isBodiless: (status: number) => boolean,
  ): { readonly outgoing: OutgoingResponse; readonly sent: Promise<void> } {
    const outgoing = new OutgoingResponse(preview1, this.fields);
    outgoing.setStatusCode(this.#status);
    const body = this.takeBody();
    const mayLack = isBodiless(this.#status) || this.fields.contentLength === undefined;
    const sent = sendMessage(body, outgoing, body.contents === undefined && mayLack);
    return { outgoing, sent };
  }

  getStatusCode(): number {
    return this.#status;
  }

  setStatusCode(status: number): void {
    checkStatus(status);
    this.#status = status;
  }
}
