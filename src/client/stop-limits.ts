/** Milliseconds that a stopping service waits for its backend, and again for cancelled work on it. */
export const BACKEND_STOP_MS = 60_000;

/**
 * Milliseconds after which a stopping service counts as hung: both waits for the backend, and as much again for
 * everything else.
 */
export const SERVICE_STOP_MS = 3 * BACKEND_STOP_MS;
