import { isObject } from '../../../json.ts';
import { parseK3s } from './version.ts';

/** Newest release of each channel, by the name of the channel: `stable`, `latest`, `v1.33`. */
export type Channels = ReadonlyMap<string, string>;

/**
 * Reads a channel list (real-components facts, 4). What is not known is passed over, because its shape has changed before: entries
 * without a release, pre-releases, names of types. Undefined for what is no such list at all, such as the page of a login.
 */
export function readChannels(value: unknown): Channels | undefined {
  if (!isObject(value) || !Array.isArray(value.data)) return undefined;
  const channels = new Map<string, string>();
  for (const entry of value.data) {
    if (!isObject(entry) || typeof entry.latest !== 'string') continue;
    const name = typeof entry.name === 'string' ? entry.name : entry.id;
    const release = parseK3s(entry.latest);
    if (typeof name === 'string' && name !== '' && release) channels.set(name, release.text);
  }
  // A list out of which nothing can be read is no list either; the one of yesterday is better.
  return channels.size > 0 ? channels : undefined;
}
