import { rm } from 'node:fs/promises';
import { isObject } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import type { Forward } from './changes.ts';
import type { GuestAddress } from './listening.ts';

/** Records the forwards of a service for the next one: neither ssh nor QEMU reports which are ours. */
export interface ForwardRecord {
  /** Empty when the file is missing or cannot be parsed. */
  read(): Promise<Forward[]>;
  /** @throws RdError `ERR_IO`. */
  write(forwards: readonly Forward[]): Promise<void>;
  remove(): Promise<void>;
}

const ADDRESSES: readonly unknown[] = ['0.0.0.0', '::', '127.0.0.1', '::1'] satisfies GuestAddress[];

/** @param file in the machine's runtime directory. */
export function forwardRecord(file: string): ForwardRecord {
  let written = '';
  return {
    async read() {
      const text = await readIfThere(file);
      if (text === undefined) return [];
      try {
        const value: unknown = JSON.parse(text);
        return Array.isArray(value) ? value.flatMap(parsed) : [];
      } catch {
        return [];
      }
    },
    async write(forwards) {
      const kept = forwards.map(({ port, way, address }) => ({ port, way, address }));
      const text = `${JSON.stringify(kept)}\n`;
      if (text === written) return;
      await writeFileAtomic(file, text);
      written = text;
    },
    async remove() {
      written = '';
      await rm(file, { force: true });
    },
  };
}

/** Whether the forward still exists is a separate question. */
function parsed(value: unknown): Forward[] {
  if (!isObject(value)) return [];
  const { port, way, address } = value;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return [];
  if ((way !== 'ssh' && way !== 'qemu') || !isAddress(address)) return [];
  return [{ port, way, address, state: 'unproven' }];
}

function isAddress(value: unknown): value is GuestAddress {
  return ADDRESSES.includes(value);
}
