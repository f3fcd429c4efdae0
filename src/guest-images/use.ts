import { join } from 'node:path';
import { isObject } from '../json.ts';
import { readIfThere } from '../storage/atomic-file.ts';

/**
 * Digest of the image that the machine of a home boots, as the record of the qemu driver says; `undefined` when there is none, or one
 * that is not understood.
 * @param state directory of the home's state.
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
