import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue } from '../json.ts';
import { BODY_LIMIT, TEXTS } from './wire-texts.ts';

/** A client that is still sending reads the refusal only when it is done; beyond this we do not wait for it. */
const DRAIN_LIMIT = 16 * BODY_LIMIT;

/** Bytes that the bodies of all requests under way hold together, and those of each that do not count. */
const ROOM = 8 * BODY_LIMIT;
const FREE = 64 * 1024;

/** Reads a whole body as bytes. */
export type CollectBody = (stream: AsyncIterable<Buffer>) => Promise<Buffer>;

/**
 * What reads the bodies of one app. Too much is read on to the end and thrown away, so that the client gets the answer. Bodies that
 * are under way at the same time share their room; a small one always has it.
 * @throws RdError `ERR_BODY_TOO_LARGE`; `ERR_NOT_READY` when others take all the room; `ERR_CANCELLED` when the caller goes away.
 */
export function bodyCollector(room = ROOM): CollectBody {
  let taken = 0;
  return async (stream) => {
    let parts: Buffer[] = [];
    let size = 0;
    let own = 0;
    let crowded = false;
    try {
      for await (const part of stream) {
        size += part.length;
        if (size > DRAIN_LIMIT) break;
        const needed = Math.max(0, Math.min(size, BODY_LIMIT + 1) - FREE) - own;
        crowded ||= taken + needed > room;
        if (crowded || size > BODY_LIMIT) {
          parts = [];
          taken -= own;
          own = 0;
        } else {
          taken += needed;
          own += needed;
          parts.push(part);
        }
      }
    } catch (cause) {
      // Nobody is left who would read the answer; it is no failure of ours.
      throw new RdError('ERR_CANCELLED', 'the client disconnected during the request', { cause });
    } finally {
      taken -= own;
    }
    if (crowded) {
      throw new RdError('ERR_NOT_READY', 'too many large requests in progress', { advice: 'Try again later.' });
    }
    if (size > BODY_LIMIT) throw new RdError('ERR_BODY_TOO_LARGE', TEXTS.bodyTooLong);
    return Buffer.concat(parts);
  };
}

/** The bytes of the request; empty when it had no body. */
export function bytesOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** @throws RdError `ERR_BODY_INVALID` for what is not UTF-8, not JSON, or nested without measure. */
export function parseJson(bytes: Buffer): JsonValue {
  let text: string;
  let value: JsonValue;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw new RdError('ERR_BODY_INVALID', TEXTS.notJson, { cause });
  }
  if (isTooDeep(text)) throw new RdError('ERR_BODY_INVALID', TEXTS.tooDeep);
  return value;
}

/** The object in a settings body; `null` counts as `{}` (api facts, 8). */
export function settingsPayload(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw new RdError('ERR_BODY_INVALID', TEXTS.noSettings);
  const value = parseJson(bytes) ?? {};
  if (!isObject(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notAnObject);
  return value;
}
