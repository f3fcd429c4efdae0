import { RdError } from '../../src/errors.ts';
import { type LineProblem, MOST_PROBLEMS, readRegistryFile } from '../../src/policies/registry-file.ts';
import { isRegistryFile } from '../../src/policies/registry-text.ts';
import type { Importer } from './importer.ts';
import { registryParts } from './registry-parts.ts';

/**
 * A file of the registry editor of Windows, in every form that it writes or takes. Deletions are lost, because a profile only
 * sets values; so is a value that a later line sets again.
 */
export const regImporter: Importer = {
  name: 'reg',
  platform: 'win32',
  recognises: isRegistryFile,
  async read(bytes, label) {
    const file = readRegistryFile(bytes);
    if (typeof file === 'string') {
      throw new RdError('ERR_PROFILE_INVALID', `${label} is not a registry file that can be read: ${file}`, {
        advice: 'Export the key again with `reg export`, or save the file as UTF-16.',
      });
    }
    if (file.problems.length > 0) throw notUnderstood(label, file.problems);
    const left = file.dropped.map(({ at, reason, ...place }) => ({ ...place, reason: `${reason} (line ${at})` }));
    const parts = registryParts(label, file.hives, left);
    if (!file.open) return parts;
    const note = `${label}: the last line has no end; make sure that the file was not cut off.`;
    return parts.map((part, index) => (index === 0 ? { ...part, notes: [...(part.notes ?? []), note] } : part));
  },
};

function notUnderstood(label: string, problems: readonly LineProblem[]): RdError {
  const count = problems.length === 1 ? '1 line' : `${problems.length} lines`;
  const details = problems.map(({ line, reason }) => `${label}:${line}: ${reason}`);
  return new RdError(
    'ERR_PROFILE_INVALID',
    `${label} has ${count} that ${problems.length === 1 ? 'is' : 'are'} not understood`,
    {
      details: problems.length < MOST_PROBLEMS ? details : [...details, 'Lines after these were not looked at.'],
      advice:
        'Correct the file, or export the key again with `reg export`; the registry editor would leave such lines out, or change them, without a word.',
    },
  );
}
