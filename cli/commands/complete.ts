import { createClient } from '../../src/client/client.ts';
import type { Client } from '../../src/client/contract.ts';
import { discover } from '../../src/client/discovery.ts';
import { isObject } from '../../src/json.ts';
import { parseArguments } from '../arguments/arguments.ts';
import { type Command, defineCommand, type GlobalFlags, type Invocation, type Io } from '../command.ts';
import { completionContext, type Offer, type Offers, offersFor, type Sources } from '../completion/offers.ts';

/** Values of the last line of a completion answer, in the protocol of Rancher Desktop's `rdctl`. */
const DIRECTIVE = { files: 0, nothing: 4, directories: 16 } as const;
/** Milliseconds that a completion waits for a service. */
const LIMIT = 1_000;

/** Answers `rdctl __complete WORD… ''`: a line per word, with a tab before its description, and `:N` at the end. */
export const complete = completing('__complete', true);
/** Answers `rdctl __completeNoDesc WORD… ''`: words without descriptions. */
export const completeNoDesc = completing('__completeNoDesc', false);

function completing(name: string, descriptions: boolean) {
  return defineCommand({
    name,
    summary: descriptions ? 'Answer a completion script' : 'Answer a completion script, without descriptions',
    usage: '[WORD]...',
    description: 'The last word is the one being typed; it may be empty.',
    flags: {},
    classic: true,
    passesWords: true,
    async run(invocation) {
      const { offers, otherwise } = await offersOf(invocation);
      const lines = offers.map(({ word, about }) => (descriptions && about ? `${word}\t${oneLine(about)}` : word));
      invocation.io.out([...lines, `:${DIRECTIVE[otherwise]}\n`].join('\n'));
      return 0;
    },
  });
}

async function offersOf({ args, io, commands }: Invocation): Promise<Offers> {
  const words = args.length === 0 ? [''] : args;
  const context = await completionContext(words, commands);
  const command = context.what === 'argument' ? context.command : undefined;
  return offersFor(context, io.platform, commands, liveSources(words, command, io));
}

/** Returns the first sentence, because a completion has one line per word. */
function oneLine(text: string): string {
  return (text.split(/\n|(?<=\.) /, 1)[0] ?? '').replace(/[\t\r]/g, ' ').replace(/\.$/, '');
}

/** Returns the names known to a running service; none when it is slow or not running, because a completion must not fail. */
function liveSources(words: readonly string[], command: Command | undefined, io: Io): Sources {
  const ask = (path: string) => answerOf(path, globalsOf(words, command), io);
  return {
    async snapshots() {
      const list = await ask('/v1/snapshots');
      return (Array.isArray(list) ? list : []).flatMap((each) => snapshotOffer(each));
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
    async logs() {
      const { homeLogs, LOGS } = await import('../../src/drivers/log-places.ts');
      const { homeOf } = await import('../../src/client/session/home.ts');
      const logs = await Promise.resolve()
        .then(() => homeLogs(homeOf(io)))
        .then(
          (home) => home.logs,
          () => ({}),
        );
      return Object.entries(LOGS).flatMap(([word, about]) => (Object.hasOwn(logs, word) ? [{ word, about }] : []));
    },
  };
}

function snapshotOffer(value: unknown): Offer[] {
  if (!isObject(value) || typeof value.name !== 'string') return [];
  const { name, description } = value;
  return [typeof description === 'string' && description !== '' ? { word: name, about: description } : { word: name }];
}

async function answerOf(path: string, globals: GlobalFlags, io: Io): Promise<unknown> {
  try {
    const client: Client = createClient(await discover(globals, io.env, io.platform));
    const { status, body } = await client.request({ method: 'GET', path, timeoutMs: LIMIT });
    return status === 200 ? JSON.parse(body.toString('utf8')) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the connection flags among the words; flags after a mistake are ignored. */
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
