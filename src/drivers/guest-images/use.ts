import { join } from 'node:path';
import { isObject } from '../../json.ts';
import { readIfThere } from '../../os/atomic-file.ts';

/**
 * Digest of the image that the machine of a home boots, from the record of the qemu driver; `undefined` when there is none or it cannot be
 * parsed.
 * @param state the home's state directory.
 */
export async function imageInUse(state: string): Promise<string | undefined> {
  const text = await readIfThere(join(state, 'drivers', 'qemu', 'machine.json'));
  try {
    const record: unknown = JSON.parse(text ?? '');
    return isObject(record) && typeof record.image === 'string' ? record.image : undefined;
  } catch {
    return undefined;
  }
}
