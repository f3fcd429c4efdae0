import type { Row } from '../row.ts';
import { backendStateRows } from './backend-state.ts';
import { diagnosticsRows } from './diagnostics.ts';
import { extensionRows } from './extensions.ts';
import { listingRows } from './listings.ts';
import { olderVersionRows } from './older-version.ts';
import { ownRows } from './own.ts';
import { portForwardRows } from './port-forwards.ts';
import { resetRows } from './resets.ts';
import { settingsRows } from './settings.ts';
import { shutdownRows } from './shutdown.ts';
import { snapshotRows } from './snapshots.ts';
import { transientSettingsRows } from './transient-settings.ts';

/** Every table. A new resource is one file and one line here. */
export const TABLES: Readonly<Record<string, readonly Row[]>> = {
  listings: listingRows,
  'older version': olderVersionRows,
  settings: settingsRows,
  'backend state': backendStateRows,
  diagnostics: diagnosticsRows,
  'transient settings': transientSettingsRows,
  shutdown: shutdownRows,
  extensions: extensionRows,
  'port forwards': portForwardRows,
  resets: resetRows,
  snapshots: snapshotRows,
  own: ownRows,
};
