import { type Client, createClient } from '../../src/client/client.ts';
import { discover } from '../../src/client/discovery.ts';
import { isObject } from '../../src/json.ts';
import { parseArguments } from '../arguments/arguments.ts';
import { supportedPlatform } from '../arguments/platform.ts';
import type { Command, GlobalFlags, Io } from '../command.ts';
import type { Offer, Sources } from './offers.ts';

/** Milliseconds that a completion waits for a service. */
const LIMIT = 1_000;

/** Names known to a running service; none when it is slow or not running, because a completion must not fail. */
export function liveSources(words: readonly string[], command: Command | undefined, io: Io): Sources {
  const ask = (path: string) => answer(path, globalsOf(words, command), io);
  return {
    async snapshots() {
      const list = await ask('/v1/snapshots');
      return (Array.isArray(list) ? list : []).flatMap((each) => named(each));
    },
    async extensions() {
      const map = await ask('/v1/extensions');
      if (!isObject(map)) return [];
      return Object.entries(map).map(([word, each]) => ({
        word,
        ...(isObject(each) && typeof each.version === 'string' ? { about: each.version } : {}),
      }));
    },
    async endpoints() {
      const list = await ask('/');
      const lines = Array.isArray(list) ? list.filter((line) => typeof line === 'string') : [];
      const methods = new Map<string, string[]>();
      for (const line of lines) {
        const [method = '', path = ''] = line.split(' ');
        methods.set(path, [...(methods.get(path) ?? []), method]);
      }
      return [...methods].map(([word, about]) => ({ word, about: about.join(', ') }));
    },
    async settings() {
      const { FIELDS } = await import('../../src/settings/fields.gen.ts');
      return FIELDS.map(({ path, description }) => ({ word: path, about: description }));
    },
  };
}

function named(value: unknown): Offer[] {
  if (!isObject(value) || typeof value.name !== 'string') return [];
  const { name, description } = value;
  return [typeof description === 'string' && description !== '' ? { word: name, about: description } : { word: name }];
}

async function answer(path: string, globals: GlobalFlags, io: Io): Promise<unknown> {
  try {
    const client: Client = createClient(await discover(globals, io.env, supportedPlatform(io.platform)));
    const { status, body } = await client.request({ method: 'GET', path, timeoutMs: LIMIT });
    return status === 200 ? JSON.parse(body.toString('utf8')) : undefined;
  } catch {
    return undefined;
  }
}

/** The connection flags among the words; flags after a mistake are ignored. */
function globalsOf(words: readonly string[], command: Command | undefined): GlobalFlags {
  for (let end = words.length - 1; end >= 0; end--) {
    try {
      return parseArguments(words.slice(0, end), command?.flags ?? {}).globals;
    } catch {
      // Incomplete command lines are normal here.
    }
  }
  return {};
}
