import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue } from '../json.ts';
import { BODY_LIMIT, TEXTS } from './wire-texts.ts';

/** A client that is still sending reads the refusal only afterwards; beyond this size we do not wait for it. */
const DRAIN_LIMIT = 16 * BODY_LIMIT;

/** Memory for the bodies of all concurrent requests, and the bytes of each body that do not count. */
const SHARED_LIMIT = 8 * BODY_LIMIT;
const UNCOUNTED = 64 * 1024;

/** Reads a whole body as bytes. `declared`: the length that the request states. */
export type CollectBody = (stream: AsyncIterable<Buffer>, declared?: number) => Promise<Buffer>;

/**
 * Reads the bodies of one app. An oversized one is read to its end and discarded, so that the client sees the response.
 * Concurrent bodies share a memory limit; a small one always fits. One whose declared length does not fit is not read at all: hundreds of
 * large ones would be garbage faster than it is collected.
 * @throws RdError `ERR_BODY_TOO_LARGE`; `ERR_NOT_READY` when the shared limit is reached; `ERR_CANCELLED` when the client
 * disconnects.
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
      // Not a failure of ours, and there is no one left to respond to.
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

/** @throws RdError `ERR_BODY_INVALID` unless it is JSON in UTF-8 without excessive nesting. */
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

/** The object in a settings body; `null` counts as `{}`, as in the compatible interface. */
export function settingsPayload(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw new RdError('ERR_BODY_INVALID', TEXTS.noSettings);
  const value = parseJson(bytes) ?? {};
  if (!isObject(value)) throw new RdError('ERR_BODY_INVALID', TEXTS.notAnObject);
  return value;
}
