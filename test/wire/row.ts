import type { TestService, TestServiceOptions } from '../helpers/service.ts';
import type { RawReply } from './raw.ts';

/** A service with a way to send requests to it. */
export interface Wire extends TestService {
  /** `send('PUT /v1/settings', {…})`: objects are sent as JSON, strings as they are. */
  send(
    request: string,
    body?: string | Buffer | object,
    headers?: Record<string, string | undefined>,
  ): Promise<RawReply>;
}

/** One exchange that is held to: what is sent and exactly what has to come back. */
export interface Row {
  /** Method and target as on the request line. */
  request: string;
  /** Where it is written that this is so: a section of the interface facts, or of the seed. */
  fact: string;
  /** What is special about this row, where the request does not show it. */
  when?: string;
  body?: string | Buffer | object;
  /** Instead of `body`, where it depends on the service. */
  bodyFor?: (wire: Wire) => object;
  headers?: Record<string, string | undefined>;
  /** The body is taken although the description asks for something stricter. */
  loose?: true;
  /** Statuses of the answers that come before. */
  interim?: number[];
  status: number;
  /** Media type, in short; `none` for an empty answer. */
  type: 'text' | 'json' | 'none';
  /** The body: as a string to the letter, as a pattern, or for JSON as a value (matchers of vitest may stand in it). */
  reply?: string | RegExp | object;
  /** Headers of the answer, by name in lower case; `null`: must not be there. */
  replyHeaders?: Record<string, string | RegExp | null>;
  /** How the service is begun. */
  given?: TestServiceOptions;
  /** What happens before. `converged` waits until the backend is as wanted. */
  before?: 'converged' | ((wire: Wire) => Promise<unknown>);
  /** What has to be true afterwards. */
  after?: (wire: Wire, reply: RawReply) => Promise<unknown>;
}

/** JSON with two spaces and a final newline, as most bodies of the compatible interface are. */
export function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
