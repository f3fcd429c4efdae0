import { RdError } from '../errors.ts';
import type { SentKeep, SentWindow } from '../plan/kept.ts';
import { DEFAULT_MAX_DEFER, type MaintenanceWindow, parseDefer, parseWindow } from '../settings/maintenance-window.ts';
import { HEAL_LEVELS } from '../settings/watch-rules.ts';
import type { Keep } from './context.ts';

export const WINDOW_SCHEMA = {
  description: 'What restarts waits for this window, as in the `apply` block of a profile.',
  type: 'object',
  additionalProperties: false,
  required: ['window'],
  properties: {
    window: { description: 'Sat 02:00-04:00', type: 'string', maxLength: 1000 },
    maxDefer: { description: '7d', type: 'string', maxLength: 10 },
  },
} as const;

const LEVEL = { enum: HEAL_LEVELS } as const;

export const KEEP_SCHEMA = {
  description: 'Keeps the profile: the service compares the desktop with it from now on, and heals as it says.',
  type: 'object',
  additionalProperties: false,
  required: ['name', 'watch'],
  properties: {
    name: {
      description: '`metadata.name`; a kept profile of this name is replaced.',
      type: 'string',
      minLength: 1,
      maxLength: 256,
    },
    watch: {
      type: 'object',
      additionalProperties: false,
      required: ['heal', 'fields'],
      properties: {
        heal: { description: 'What is done about drift of a field that is not in `fields`.', ...LEVEL },
        fields: {
          description: 'By path of a setting or section, `state` or `portForwards`.',
          type: 'object',
          maxProperties: 500,
          additionalProperties: LEVEL,
        },
      },
    },
    maintenance: WINDOW_SCHEMA,
    places: {
      description: 'Where the profile mentions a field, by path.',
      type: 'object',
      maxProperties: 2000,
      additionalProperties: { type: 'string', maxLength: 5000 },
    },
    now: { description: 'This apply does not wait for the window.', type: 'boolean', default: false },
  },
} as const;

/** Throws `ERR_BODY_INVALID` for a window that is not one. */
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

/** Throws as `windowOf` does. */
export function keepOf({ maintenance, places = {}, ...keep }: SentKeep): Keep {
  return { ...keep, places, ...(maintenance ? { maintenance: windowOf(maintenance) } : {}) };
}
