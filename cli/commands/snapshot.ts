import { defineGroup } from '../group.ts';
import { snapshotCreate } from './snapshot/create.ts';
import { snapshotDelete } from './snapshot/delete.ts';
import { snapshotList } from './snapshot/list.ts';
import { snapshotRestore } from './snapshot/restore.ts';
import { JSON_FLAG } from './snapshot/service.ts';
import { snapshotUnlock } from './snapshot/unlock.ts';

export const snapshot = defineGroup({
  name: 'snapshot',
  summary: 'Save the whole desktop, and go back to it',
  description: `A snapshot holds the settings and everything that the backend keeps: images, containers, volumes, the cluster.
All of it works with or without a running service.`,
  flags: JSON_FLAG,
  classic: true,
  subcommands: [snapshotCreate, snapshotDelete, snapshotList, snapshotRestore, snapshotUnlock],
});
