import { rm } from 'node:fs/promises';
import { isObject, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import { GUEST_ADDRESS } from '../arguments.ts';
import type { Forward } from './forwards.ts';
import type { GuestAddress } from './rules.ts';

/** Records the forwards of a service for the next one: neither ssh nor QEMU reports which are ours. */
export interface ForwardRecord {
  /** Returns the recorded forwards; empty when the file is missing or cannot be parsed. */
  read(): Promise<Forward[]>;
  /**
   * Replaces the recorded forwards.
   * @throws RdError `ERR_IO`.
   */
  write(forwards: readonly Forward[]): Promise<void>;
  remove(): Promise<void>;
}

const ADDRESSES: readonly unknown[] = [GUEST_ADDRESS, '0.0.0.0', '::', '127.0.0.1', '::1'] satisfies GuestAddress[];

/**
 * Opens the record.
 * @param file in the machine's runtime directory.
 */
export function forwardRecord(file: string): ForwardRecord {
  let written = '';
  return {
    async read() {
      const text = await readIfThere(file);
      const value = text === undefined ? undefined : parseJson(text);
      return Array.isArray(value) ? value.flatMap(parseForward) : [];
    },
    async write(forwards) {
      const kept = forwards.map(({ protocol, port, way, address, binding }) => ({
        protocol,
        port,
        way,
        address,
        binding,
      }));
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

/** Parses a recorded forward as unproven, because it may no longer exist. */
function parseForward(value: unknown): Forward[] {
  if (!isObject(value)) return [];
  const { protocol = 'tcp', port, way, address, binding = 'loopback' } = value;
  if (protocol !== 'tcp' && protocol !== 'udp') return [];
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return [];
  if ((way !== 'ssh' && way !== 'qemu') || !isAddress(address)) return [];
  if (binding !== 'loopback' && binding !== 'all') return [];
  return [{ protocol, port, way, address, binding, state: 'unproven' }];
}

function isAddress(value: unknown): value is GuestAddress {
  return ADDRESSES.includes(value);
}
