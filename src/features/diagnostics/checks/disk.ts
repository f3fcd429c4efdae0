import { stat, statfs } from 'node:fs/promises';
import { basename } from 'node:path';
import { systemCode } from '../../../os/io-error.ts';
import { type Check, failed, passed } from '../check.ts';

const GIB = 1024 ** 3;
/** Minimum free space in bytes; a single image can use up less than this. */
const MIN_FREE_BYTES = 2 * GIB;

/** Checks that there is enough space for images and for writing settings. */
export const diskSpace: Check = {
  id: 'DISK_SPACE',
  category: 'Utilities',
  applies: () => true,
  async run({ data }) {
    const { bavail, bsize } = await statfs(data);
    const free = bavail * bsize;
    const text = `${(free / GIB).toFixed(1)} GiB are free where \`${data}\` is`;
    if (free >= MIN_FREE_BYTES) return [passed(`${text}.`)];
    return [
      failed(`Only ${text}; images and settings may not fit.`, [
        {
          description: 'Free some space, for example with `docker system prune`, which removes what no container uses.',
        },
      ]),
    ];
  },
};

/** Checks that files with passwords are readable only by their user. */
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
    (info) => info.mode & 0o777,
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
