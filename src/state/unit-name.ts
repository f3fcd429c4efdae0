import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { runtimeDirectory } from '../os/user-directories.ts';
import { PRODUCT } from '../product.ts';
import type { Places } from './places.ts';

/** Returns the name of this home's unit for the service manager: `rdctl`, with a suffix if the home is not the user's own. */
export function unitName({ home, dropIn }: Pick<Places, 'home' | 'dropIn'>): string {
  if (home !== undefined) return `${PRODUCT.name}-${createHash('sha256').update(home).digest('hex').slice(0, 8)}`;
  return dropIn === undefined ? PRODUCT.name : `${PRODUCT.name}-${dropIn}`;
}

/** Returns the path of the socket whose first connection starts the service of this home, or undefined on Windows. */
export function activationSocket(places: Pick<Places, 'home' | 'dropIn'>): string | undefined {
  const uid = process.getuid?.();
  return uid === undefined ? undefined : join(runtimeDirectory(uid), `${unitName(places)}.activate.sock`);
}
