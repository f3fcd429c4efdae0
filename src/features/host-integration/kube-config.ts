import { open, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../../errors.ts';
import { isObject, type JsonValue } from '../../json.ts';
import { readIfThere } from '../../os/atomic-file.ts';
import { systemClock } from '../../os/clock.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readableRecord } from '../../os/record.ts';
import type { KubeEntry } from './kube-entries.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { outcomeOf } from './outcome.ts';
import type { IntegrationTargets } from './targets.ts';
import { type DryRun, type EditContext, editUserFile, isFreeOf, removeEmptyDirectories } from './user-file.ts';

interface KubeEditContext extends EditContext {
  sleep?(ms: number): Promise<void>;
}

const LOCK_TRIES = 20;
const LOCK_PAUSE_MS = 100;

/**
 * Adds cluster, user and context of our cluster to the user's kubeconfig, and selects the context if none is selected. `kubeconfig` is the file of
 * the cluster. Never throws.
 */
export async function provideKubeContext(
  kubeconfig: string,
  targets: IntegrationTargets,
  context: KubeEditContext = {},
): Promise<IntegrationOutcome> {
  const file = await writtenFile(targets.kubeconfigs);
  const name = targets.identity.kubeContext;
  return outcomeOf({ part: 'kubeconfig', file }, async () =>
    putEntry(file, await entryOf(kubeconfig, name), targets, context),
  );
}

/**
 * Records the changes that `provideKubeContext` would make at a start of the cluster. An existing cluster keeps its keys; those of a `renewed` one
 * are not known yet.
 */
export async function previewKubeContext(renewed: boolean, targets: IntegrationTargets, dryRun: DryRun): Promise<void> {
  const file = await writtenFile(targets.kubeconfigs);
  const name = targets.identity.kubeContext;
  const fresh = { name, cluster: { server: 'https://127.0.0.1' }, user: { 'client-key-data': 'not known yet' } };
  await outcomeOf({ part: 'kubeconfig', file }, async () => {
    const there = renewed ? undefined : await ownEntry(file, name);
    return putEntry(file, there ?? fresh, targets, { dryRun });
  });
}

/** Returns the port of our cluster in the user's kubeconfig. */
export async function kubePort({ kubeconfigs, identity }: IntegrationTargets): Promise<number | undefined> {
  const entry = await ownEntry(await writtenFile(kubeconfigs), identity.kubeContext).catch(() => undefined);
  const port = /:(\d+)\/?$/.exec(entry?.cluster.server ?? '')?.[1];
  return port === undefined ? undefined : Number(port);
}

async function ownEntry(file: string, name: string): Promise<KubeEntry | undefined> {
  const text = await readIfThere(file, { follow: true });
  return text === undefined ? undefined : (await import('./kube-entries.ts')).entryIn(text, name);
}

async function putEntry(file: string, entry: KubeEntry, targets: IntegrationTargets, context: KubeEditContext) {
  const { name } = entry;
  const { withEntry } = await import('./kube-entries.ts');
  let foreign = false;
  const what = `adds cluster, user and context ${name}`;
  await edit(file, targets, { ...context, what }, (text) => {
    const next = withEntry(text, entry);
    foreign = next === 'foreign';
    return foreign ? text : next;
  });
  return foreign ? { left: `a cluster ${name} in it is on another computer` } : ('managed' as const);
}

/** Removes cluster, user and context from every file that kubectl reads. Never throws. */
export async function withdrawKubeContext(
  targets: IntegrationTargets,
  context: KubeEditContext = {},
): Promise<IntegrationOutcome[]> {
  const name = targets.identity.kubeContext;
  const what = `removes cluster, user and context ${name}`;
  const outcomes: IntegrationOutcome[] = [];
  for (const file of targets.kubeconfigs) {
    if (!(await exists(file))) continue;
    const outcome = await outcomeOf({ part: 'kubeconfig', file }, async () => {
      if (await isFreeOf(file, name, context)) return 'clean';
      const { withoutEntry } = await import('./kube-entries.ts');
      await edit(file, targets, { ...context, what }, (text) =>
        text === undefined ? undefined : withoutEntry(text, name),
      );
      return 'clean';
    });
    outcomes.push(outcome);
  }
  return outcomes;
}

/** Returns the file that kubectl writes new entries into: the first existing one, else the last. */
async function writtenFile(files: readonly string[]): Promise<string> {
  for (const file of files) if (await exists(file)) return file;
  return files.at(-1) ?? '';
}

async function edit(
  file: string,
  { home }: IntegrationTargets,
  { sleep = (ms) => systemClock.sleep(ms), ...context }: KubeEditContext & { what: string },
  change: (text: string | undefined) => string | undefined,
): Promise<void> {
  const inBytes = (bytes: string | undefined) => {
    const text = bytes === undefined ? undefined : textOf(bytes);
    const next = change(text);
    // Validated before a write, and there is a write only after a change.
    return next === text ? bytes : next === undefined ? undefined : Buffer.from(next, 'utf8').toString('latin1');
  };
  const options = { within: [home, dirname(file)], mode: 0o600, ...context };
  if (context.dryRun) {
    await editUserFile(file, inBytes, options);
    return;
  }
  await withFileLock(file, sleep, () => editUserFile(file, inBytes, options));
  // The lock was in the directory of the file, which is removed now.
  await removeEmptyDirectories(file, options.within);
}

/** Decodes the text of a file, given as one character per byte. Throws `ERR_IO` unless it is UTF-8. */
function textOf(bytes: string): string {
  const buffer = Buffer.from(bytes, 'latin1');
  const text = buffer.toString('utf8');
  if (Buffer.from(text, 'utf8').equals(buffer)) return text;
  throw new RdError('ERR_IO', 'the kubeconfig was not changed: it is not UTF-8', { advice: 'Save it as UTF-8.' });
}

/** Runs work while holding the lock file that kubectl uses for the same purpose. */
async function withFileLock(
  file: string,
  sleep: (ms: number) => Promise<void>,
  work: () => Promise<unknown>,
): Promise<void> {
  const lock = `${file}.lock`;
  await makeDirectory(dirname(file));
  for (let tries = 1; ; tries += 1) {
    try {
      const handle = await open(lock, 'wx', 0o600);
      await handle.close();
      break;
    } catch (cause) {
      if (systemCode(cause) !== 'EEXIST') throw ioError('create', lock, cause);
      if (tries >= LOCK_TRIES) {
        throw new RdError('ERR_IO', `${file} was not changed: another program holds its lock, ${lock}`, {
          advice: 'If no kubectl is running, delete the lock file.',
        });
      }
      await sleep(LOCK_PAUSE_MS);
    }
  }
  try {
    await work();
  } finally {
    await unlink(lock).catch(() => undefined);
  }
}

/** Returns the only cluster and user in the file of our cluster. */
async function entryOf(file: string, name: string): Promise<KubeEntry> {
  const record = await readableRecord(file);
  const cluster = firstOf(record?.clusters, 'cluster');
  const user = firstOf(record?.users, 'user');
  if (cluster && user) return { name, cluster, user };
  throw new RdError('ERR_IO', `the kubeconfig of the cluster is missing or damaged: ${file}`);
}

function firstOf(list: JsonValue | undefined, key: string): Record<string, string> | undefined {
  const [item] = Array.isArray(list) ? list : [];
  const value = isObject(item) ? item[key] : undefined;
  return isObject(value) && Object.values(value).every((member) => typeof member === 'string')
    ? (value as Record<string, string>)
    : undefined;
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: unknown) => systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR',
  );
}
