import type { TestService, TestServiceOptions } from '../helpers/service.ts';
import type { RawReply } from './raw.ts';

/** A service and a function that sends requests to it. */
export interface Wire extends TestService {
  /** `send('PUT /v1/settings', {…})`: objects are sent as JSON, strings unchanged. */
  send(
    request: string,
    body?: string | Buffer | object,
    headers?: Record<string, string | undefined>,
  ): Promise<RawReply>;
}

/** One exchange: the request and the exact response. */
export interface Row {
  /** Method and target as on the request line. */
  request: string;
  /** The source: a section of the interface facts, or of the seed. */
  fact: string;
  /** What is special about this row, where the request does not show it. */
  when?: string;
  body?: string | Buffer | object;
  /** In place of `body`, when it depends on the service. */
  bodyFor?: (wire: Wire) => object;
  headers?: Record<string, string | undefined>;
  /** The body is accepted although the description is stricter. */
  loose?: true;
  /** Statuses of earlier responses. */
  interim?: number[];
  status: number;
  /** Media type, abbreviated; `none` for an empty response. */
  type: 'text' | 'json' | 'metrics' | 'none';
  /** The body: a string is exact, a pattern matches, any other value is JSON (and may contain vitest matchers). */
  reply?: string | RegExp | object;
  /** Response headers by lower-case name; `null`: must be absent. */
  replyHeaders?: Record<string, string | RegExp | null>;
  /** How the service is started. */
  given?: TestServiceOptions;
  /** What happens before. `converged` waits for the desired state of the backend. */
  before?: 'converged' | ((wire: Wire) => Promise<unknown>);
  /** What must hold afterwards. */
  after?: (wire: Wire, reply: RawReply) => Promise<unknown>;
}

/** JSON with two spaces and a final newline, like most bodies of the compatible interface. */
export function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
