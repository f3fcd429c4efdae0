import { RdError } from '../../errors.ts';

/**
 * Refusals of the compatible API: the message is the body that scripts match, and the cause is the actual error. `id` is the image as
 * requested.
 */
export function invalidMetadata(id: string, cause: unknown): RdError {
  return new RdError('ERR_EXTENSION_INVALID', `The image ${id} has invalid extension metadata`, { cause });
}

/** `what` is one of the wire texts: `Could not copy icon file /icon.svg`. */
export function failedInstall(id: string, what: string, cause: unknown): RdError {
  return new RdError('ERR_EXTENSION_INVALID', `The image ${id} failed to install: ${what}`, { cause });
}

export function notAllowed(id: string, why: string, advice: string): RdError {
  return new RdError('ERR_FORBIDDEN', `The image ${id} is not an allowed extension`, {
    cause: new RdError('ERR_FORBIDDEN', why, { advice }),
  });
}

/** Any error without a specific response. */
export function otherwiseFailed(cause: unknown): RdError {
  return new RdError('ERR_INTERNAL', 'Internal Server Error', { cause });
}

/** The readable error behind a refusal; undefined where the message suffices. */
export function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof RdError) || !(error.cause instanceof Error)) return undefined;
  const { cause } = error;
  const advice = cause instanceof RdError && cause.advice !== undefined ? `. ${cause.advice}` : '';
  return `${cause.message}${advice}`;
}
