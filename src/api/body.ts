import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { isObject, isTooDeep, type JsonObject, type JsonValue } from '../json.ts';
import { BODY_LIMIT, TEXTS } from './wire-texts.ts';

/** A client that is still sending reads the refusal only when it is done; beyond this we do not wait for it. */
const DRAIN_LIMIT = 16 * BODY_LIMIT;

/**
 * Reads a whole body as bytes. Too much is read on to the end and thrown away, so that the client gets the answer.
 * @throws RdError `ERR_BODY_TOO_LARGE`; `ERR_CANCELLED` when the caller goes away.
 */
export async function collectBody(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  let parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of stream) {
      size += part.length;
      if (size > DRAIN_LIMIT) break;
      if (size > BODY_LIMIT) parts = [];
      else parts.push(part);
    }
  } catch (cause) {
    // Nobody is left who would read the answer; it is no failure of ours.
    throw new RdError('ERR_CANCELLED', 'the caller went away in the middle of the request', { cause });
  }
  if (size > BODY_LIMIT) {
    throw new RdError('ERR_BODY_TOO_LARGE', TEXTS.bodyTooLong);
  }
  return Buffer.concat(parts);
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
