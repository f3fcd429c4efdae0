import { RdError } from '../errors.ts';
import type { SentKeep, SentWindow } from '../plan/kept.ts';
import type { Keep } from '../service/watch/keeper.ts';
import { DEFAULT_MAX_DEFER, type MaintenanceWindow, parseDefer, parseWindow } from '../settings/maintenance-window.ts';

/** Parses a maintenance window. @throws RdError `ERR_BODY_INVALID` for an invalid window or deferral. */
export function windowOf({ window, maxDefer }: SentWindow): MaintenanceWindow {
  const spans = parseWindow(window);
  if (!Array.isArray(spans)) {
    throw new RdError('ERR_BODY_INVALID', `window: ${spans.message}`, { advice: `Write ${spans.expected}.` });
  }
  const maxDeferMs = maxDefer === undefined ? DEFAULT_MAX_DEFER : parseDefer(maxDefer);
  if (maxDeferMs !== undefined) return { window, maxDeferMs };
  throw new RdError('ERR_BODY_INVALID', `maxDefer: ${JSON.stringify(maxDefer)} is not a time from 1m to 366d`, {
    advice: 'Write a number with m, h, d or w, such as 7d.',
  });
}

/** Parses the keep options of an apply. @throws RdError `ERR_BODY_INVALID` for an invalid maintenance window. */
export function keepOf({ maintenance, places = {}, ...keep }: SentKeep): Keep {
  return { ...keep, places, ...(maintenance ? { maintenance: windowOf(maintenance) } : {}) };
}
