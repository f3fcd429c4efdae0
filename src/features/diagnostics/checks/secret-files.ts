import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { systemCode } from '../../../os/io-error.ts';
import { type Check, failed, passed } from '../check.ts';

/** Files with passwords are readable only by their user. */
export const secretFiles: Check = {
  id: 'SETTINGS_FILE_PERMISSIONS',
  category: 'Utilities',
  applies: ({ platform }) => platform !== 'win32',
  async run({ secretFiles: files }) {
    const findings = await Promise.all(files.map(findingOf));
    return findings.flat();
  },
};

async function findingOf(file: string) {
  const sub = basename(file);
  const mode = await stat(file).then(
    (found) => found.mode & 0o777,
    (error: unknown) => {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw error;
    },
  );
  if (mode === undefined) return [];
  if ((mode & 0o077) === 0) return [passed(`Only you can read \`${file}\`.`, sub)];
  return [
    failed(
      `Others may read \`${file}\` (mode ${mode.toString(8).padStart(3, '0')}), and it can hold a password.`,
      [{ description: `Take the permission away: \`chmod 600 ${file}\`` }],
      sub,
    ),
  ];
}
