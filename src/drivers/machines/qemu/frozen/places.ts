import { dirname, join } from 'node:path';
import type { QemuPlaces } from '../places.ts';

/** Where a machine keeps its frozen state. Files in `directory` contain no paths, so that a copy works for another machine. */
export interface FrozenPlaces {
  directory: string;
  /** A partial state; never read as a complete one. */
  draft: string;
  /** The root disk of a resumed machine: a layer over the one of the state. Deleted with the machine. */
  layer: string;
  /** The migration socket, in either direction. */
  socket: string;
}

/** Files in the directory. */
export const STATE = 'state';
export const ROOT = 'root.qcow2';
export const MANIFEST = 'frozen.json';

export function frozenPlaces({ record, run }: Pick<QemuPlaces, 'record' | 'run'>): FrozenPlaces {
  const home = dirname(record);
  return {
    directory: join(home, 'frozen'),
    draft: join(home, 'frozen.new'),
    layer: join(home, 'layer.qcow2'),
    socket: join(run, 'state'),
  };
}
