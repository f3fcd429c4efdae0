import { MOST_LEVELS } from '../json.ts';
import { COMPATIBLE } from '../product.ts';

/** Largest accepted request body, in bytes. */
export const BODY_LIMIT = 4 * 1024 * 1024;

/** Sentences that scripts and the compatible tool match. */
export const TEXTS = {
  about:
    'This is version 1 of the management API. It is internal and experimental, and it may change at any time without notice.',
  unauthorized: 'Unauthorized',
  internal: 'Internal Server Error',
  noSettings: 'no settings specified in the request',
  notJson: 'error processing JSON request block',
  tooDeep: `the request body is nested more than ${MOST_LEVELS} levels deep`,
  bodyTooLong: `request body is too long, request body size exceeds ${BODY_LIMIT}`,
  notAnObject: 'settings payload is not an object',
  noChange: 'no changes necessary',
  noRestart: 'settings updated; no restart required',
  reconfiguring: `reconfiguring ${COMPATIBLE.productName} to apply changes (this may take a while)`,
  busy: 'UI is currently busy, but will eventually be reconfigured to apply requested changes',
  proposalErrors: 'Errors in proposed settings:',
  transientUpdated: 'Updated Transient Settings',
  transientUnchanged: 'No changes necessary',
  transientErrors: 'errors in attempt to update Transient Settings:',
  backendState: 'received backend state',
  shutdown: 'Shutting down.',
  factoryReset: 'Doing a full factory reset....',
  cannotForward: 'Could not forward port',
  missingParameters: 'missing required parameters',
  forwardDeleted: 'Port forwarding successfully deleted',
  cannotDeleteForward: 'Could not delete port forwarding',
  snapshotCreated: 'Snapshot successfully created',
  snapshotDeleted: 'Snapshot successfully deleted',
  snapshotRestored: 'Snapshot successfully restored',
  snapshotCanceled: 'Snapshot operation canceled',
  snapshotNameNeeded: 'The name field is required',
  snapshotNameInQuery: 'Snapshot name is required in query parameters',
  resetDone: {
    fast: `${COMPATIBLE.productName} fast reset successful`,
    wipe: `${COMPATIBLE.productName} wipe reset successful`,
  },
  extensionsNotReady: 'Extension manager is not ready yet.',
} as const;

export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const JSON_TYPE = 'application/json; charset=utf-8';
