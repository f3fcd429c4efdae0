import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue } from '../json.ts';
import { BODY_LIMIT, TEXTS } from './wire-texts.ts';

/** Bytes of an oversized body that are read and discarded at most, so that a client that is still sending sees the response. */
const DRAIN_LIMIT = 16 * BODY_LIMIT;

/** Bytes that the bodies of all concurrent requests may occupy, and bytes of each body that do not count toward that. */
const SHARED_LIMIT = 8 * BODY_LIMIT;
const UNCOUNTED = 64 * 1024;

/** Reads a whole body as bytes. `declared` is the length that the request states, in bytes. */
export type CollectBody = (stream: AsyncIterable<Buffer>, declared?: number) => Promise<Buffer>;

/**
 * Creates the collector for the bodies of one app. It reads an oversized body to its end and discards it, so that the client sees the response.
 * Concurrent bodies share a memory limit; a small one always fits. A body whose declared length does not fit is not read at all: hundreds of large
 * ones would become garbage faster than it is collected.
 * @throws RdError `ERR_BODY_TOO_LARGE`; `ERR_NOT_READY` when the shared limit is reached; `ERR_CANCELLED` when the client disconnects.
 */
export function bodyCollector(sharedLimit = SHARED_LIMIT): CollectBody {
  let taken = 0;
  return async (stream, declared = 0) => {
    let parts: Buffer[] = [];
    let size = 0;
    let own = declared > BODY_LIMIT ? 0 : Math.max(0, declared - UNCOUNTED);
    let crowded = false;
    if (taken + own > sharedLimit) throw tooCrowded();
    taken += own;
    try {
      for await (const part of stream) {
        size += part.length;
        if (size > DRAIN_LIMIT) break;
        const needed = Math.max(0, Math.min(size, BODY_LIMIT + 1) - UNCOUNTED - own);
        crowded ||= taken + needed > sharedLimit;
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
      // The client is gone: this is no failure of the service, and there is no one left to respond to.
      throw new RdError('ERR_CANCELLED', 'the client disconnected during the request', { cause });
    } finally {
      taken -= own;
    }
    if (crowded) throw tooCrowded();
    if (size > BODY_LIMIT) throw new RdError('ERR_BODY_TOO_LARGE', TEXTS.bodyTooLong);
    return Buffer.concat(parts);
  };
}

function tooCrowded(): RdError {
  return new RdError('ERR_NOT_READY', 'too many large requests in progress', { advice: 'Try again later.' });
}

/** The bytes of the request; empty when it had no body. */
export function bytesOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** Parses a body as JSON. @throws RdError `ERR_BODY_INVALID` unless it is UTF-8 without excessive nesting. */
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

/** Returns the object in a settings body. `null` counts as `{}`, which the compatible interface accepts. */
export function settingsPayload(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw new RdError('ERR_BODY_INVALID', TEXTS.noSettings);
  const value = parseJson(bytes) ?? {};
  if (!isObject(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notAnObject);
  return value;
}
