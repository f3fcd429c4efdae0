/** Milliseconds: how long a service that stops waits for its backend, and then once more for the work on it that was called off. */
export const BACKEND_STOP_MS = 60_000;

/** Milliseconds after which a service that was asked to stop hangs: both waits for the backend, and as long for all else. */
export const SERVICE_STOP_MS = 3 * BACKEND_STOP_MS;
