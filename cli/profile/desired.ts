import { arch, release } from 'node:os';
import { type DesiredDocument, type LoadedDocument, loadDesired } from '../../profiles/document/load.ts';
import { RdError } from '../../src/errors.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { type WantedForwards, withForwards } from '../../src/plan/port-forwards.ts';
import { formatFindings } from '../../src/settings/finding.ts';
import { supportedPlatform } from '../arguments/values.ts';
import type { Io } from '../command.ts';
import type { View } from '../views/view.ts';

/** Loads the `-f` sources of a command. Throws `ERR_USAGE` without any and `ERR_IO` for one that cannot be read. */
export async function loadFiles(files: readonly string[] | undefined, io: Io): Promise<LoadedDocument> {
  if (files === undefined || files.length === 0) {
    throw new RdError('ERR_USAGE', 'no profile was given', {
      advice: 'Give one with -f FILE, or -f - for standard input.',
    });
  }
  return loadDesired(files, {
    cwd: io.cwd,
    env: io.env,
    platform: supportedPlatform(io.platform),
    arch: arch(),
    osRelease: release(),
    readStdin: (limit) => io.readStdin(limit),
  });
}

/** What the documents say about port forwards, for plan and apply. */
export function forwardsOf({ portForwards, prunePortForwards }: DesiredDocument): WantedForwards {
  return { entries: portForwards, exclusive: prunePortForwards };
}

/** The request to plan and apply. */
export function requestOf(desired: DesiredDocument): PlanRequest {
  return withForwards(desired.request, forwardsOf(desired));
}

/** The desired state from the `-f` files. Shows warnings; throws `ERR_PROFILE_INVALID` with every finding. */
export async function desiredOf(files: readonly string[] | undefined, io: Io, view: View): Promise<DesiredDocument> {
  const { desired, findings, warnings, documents } = await loadFiles(files, io);
  view.warnings(warnings);
  if (desired) return desired;
  const n = findings.length;
  const labels = documents.map(({ file }) => file).join(', ');
  throw new RdError('ERR_PROFILE_INVALID', `${n} error${n === 1 ? '' : 's'} in ${labels}; nothing was sent.`, {
    details: formatFindings(findings),
  });
}
