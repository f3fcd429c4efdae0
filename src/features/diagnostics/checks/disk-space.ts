import { statfs } from 'node:fs/promises';
import { type Check, failed, passed } from '../check.ts';

const GIB = 1024 ** 3;
/** A single image can use up less than this. */
const MIN_FREE_BYTES = 2 * GIB;

/** There is enough space for images and for writing settings. */
export const diskSpace: Check = {
  id: 'DISK_SPACE',
  category: 'Utilities',
  applies: () => true,
  async run({ data }) {
    const { bavail, bsize } = await statfs(data);
    const free = bavail * bsize;
    const room = `${(free / GIB).toFixed(1)} GiB are free where \`${data}\` is`;
    if (free >= MIN_FREE_BYTES) return [passed(`${room}.`)];
    return [
      failed(`Only ${room}; images and settings may not fit.`, [
        { description: 'Make room, for example with `docker system prune`, which removes what no container uses.' },
      ]),
    ];
  },
};
