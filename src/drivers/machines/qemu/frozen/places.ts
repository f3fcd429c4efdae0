import { dirname, join } from 'node:path';
import type { QemuPlaces } from '../places.ts';

/** Where a machine has its frozen state. Nothing in `directory` names a place, so that a copy of it serves another machine. */
export interface FrozenPlaces {
  directory: string;
  /** A state in the making; never taken for one. */
  draft: string;
  /** The root disk of a resumed machine: a layer over the one of the state. It is thrown away with the machine. */
  layer: string;
  /** What QEMU hands the state over by, in either direction. */
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
