/**
 * The catalog, one row per expected failure: `status` is the API's reply, `exit` the exit code of the new commands
 * (docs/commands.md; classic commands exit 1), `retry` whether the reconcile loop may retry.
 */
export const ERRORS = {
  ERR_USAGE: { status: 400, exit: 1, retry: false },
  ERR_INTERNAL: { status: 500, exit: 1, retry: false },
  ERR_IO: { status: 500, exit: 1, retry: true },
  ERR_PROFILE_INVALID: { status: 400, exit: 3, retry: false },
  ERR_SETTINGS_INVALID: { status: 400, exit: 3, retry: false },
  ERR_SETTINGS_FILE: { status: 500, exit: 1, retry: false },
  ERR_SETTING_LOCKED: { status: 400, exit: 3, retry: false },
  ERR_SETTING_UNSUPPORTED: { status: 400, exit: 3, retry: false },
  /** A kept profile would revert the setting at once. */
  ERR_SETTING_KEPT: { status: 400, exit: 3, retry: false },
  ERR_BODY_INVALID: { status: 400, exit: 1, retry: false },
  ERR_BODY_TOO_LARGE: { status: 413, exit: 1, retry: false },
  ERR_PRECONDITION_FAILED: { status: 412, exit: 6, retry: false },
  ERR_PLAN_STALE: { status: 409, exit: 6, retry: false },
  /** A later write changed the requested fields before they were in force. */
  ERR_SUPERSEDED: { status: 409, exit: 6, retry: false },
  ERR_PLAN_INVALID: { status: 400, exit: 3, retry: false },
  ERR_CONSENT_NEEDED: { status: 409, exit: 5, retry: false },
  ERR_WRONG_TARGET: { status: 409, exit: 3, retry: false },
  /** A stored file or a running service of another version of this program. */
  ERR_OTHER_VERSION: { status: 409, exit: 3, retry: false },
  ERR_UNAUTHORIZED: { status: 401, exit: 1, retry: false },
  ERR_FORBIDDEN: { status: 403, exit: 1, retry: false },
  ERR_NOT_FOUND: { status: 404, exit: 1, retry: false },
  /** A caller exceeds its limit of concurrent plans or event streams. */
  ERR_TOO_MANY: { status: 429, exit: 1, retry: true },
  ERR_EXTENSION_INVALID: { status: 422, exit: 1, retry: false },
  ERR_NOT_READY: { status: 503, exit: 1, retry: true },
  ERR_NOT_RUNNING: { status: 503, exit: 1, retry: false },
  /** The service was stopped before the request was in force. */
  ERR_STOPPED: { status: 503, exit: 1, retry: false },
  ERR_CONNECTION: { status: 502, exit: 1, retry: true },
  ERR_CONNECTION_SETTINGS: { status: 400, exit: 1, retry: false },
  ERR_ALREADY_RUNNING: { status: 409, exit: 1, retry: false },
  /** The directories were moved while in use. */
  ERR_HOME_MOVED: { status: 503, exit: 1, retry: false },
  ERR_PORT_IN_USE: { status: 409, exit: 1, retry: false },
  ERR_NO_DRIVER: { status: 503, exit: 1, retry: false },
  ERR_DRIVER_FAILED: { status: 502, exit: 1, retry: true },
  ERR_DRIVER_TERMINAL: { status: 502, exit: 1, retry: false },
  ERR_CONVERGE_FAILED: { status: 502, exit: 1, retry: false },
  /** The backend has converged, and files of the user could not be changed. */
  ERR_USER_FILES: { status: 500, exit: 1, retry: false },
  /** The backend's lock file exists, or an operation on its data is running. */
  ERR_BACKEND_LOCKED: { status: 409, exit: 1, retry: false },
  /** A path that decides what is executed is writable by another user. */
  ERR_NOT_PRIVATE: { status: 500, exit: 3, retry: false },
  /** A release that is not signed by a trusted key, does not run here, or is not ours to install. */
  ERR_UPGRADE_REFUSED: { status: 409, exit: 3, retry: false },
  ERR_SNAPSHOT: { status: 400, exit: 1, retry: false },
  /** There is no room for the safety snapshot before a loss of data. */
  ERR_NO_SPACE: { status: 507, exit: 5, retry: false },
  ERR_DEADLINE: { status: 504, exit: 4, retry: false },
  /** The loop cancels its own work silently; a cancellation it sees was meant for another caller. */
  ERR_CANCELLED: { status: 499, exit: 1, retry: true },
} as const;

/** The message of `ERR_BACKEND_LOCKED` while the lock file exists. Scripts match it. */
export const LOCKED =
  'backend lock file already exists; if there is no snapshot operation in progress, you can remove this error with `rdctl snapshot unlock`';

/** Part of the message of an operation that was canceled and completely rolled back. Clients match it. */
export const OPERATION_CANCELED = 'the operation was canceled';

/** A code of the catalog. */
export type ErrorCode = keyof typeof ERRORS;

/** Additional parts of an expected failure. */
export interface RdErrorOptions extends ErrorOptions {
  /** The next action to take, as one sentence; printed after the message. */
  advice?: string;
  /** Further lines, each a finding with its position (`file:line:column: …`). */
  details?: readonly string[];
  /** Problems with the settings sent, for a caller that knows their position in a file. */
  findings?: readonly SettingsFinding[];
}

/** A problem with one setting of a request. */
export interface SettingsFinding {
  /** RFC 6901, relative to the settings; `/state` and `/portForwards` are their siblings. */
  pointer: string;
  message: string;
  /** The accepted values, as a phrase. */
  expected?: string;
  /** The name or value probably intended. */
  suggestion?: string;
}

/** An expected failure. `message` is one sentence: what happened and where. A bug stays a plain `Error` with a stack. */
export class RdError extends Error {
  readonly code: ErrorCode;
  readonly advice: string | undefined;
  readonly details: readonly string[];
  readonly findings: readonly SettingsFinding[];

  constructor(code: ErrorCode, message: string, options: RdErrorOptions = {}) {
    super(message, options);
    this.name = 'RdError';
    this.code = code;
    this.advice = options.advice;
    this.details = options.details ?? [];
    this.findings = options.findings ?? [];
  }
}

/** Returns the message of an error, for a person. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
