import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, parseJson } from '../../json.ts';
import { readIfThere } from '../../os/atomic-file.ts';
import { isThere } from '../../os/regular-file.ts';
import { acceptsConnections } from '../../os/socket.ts';
import { PRODUCT } from '../../product.ts';
import { currentContext, deselect, type Selection, select, selectionFrom } from './docker-config.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { outcomeOf } from './outcome.ts';
import type { IntegrationTargets } from './targets.ts';
import { type EditContext, editUserFile, isFreeOf, removeDrafts, removeEmptyDirectories } from './user-file.ts';

/** Our part of a context's metadata; docker preserves unknown members. */
interface ContextRecord {
  endpoint?: string;
  /** How to undo our selection; absent if we never selected the context. */
  selection?: Selection;
  /** Set while the context is deselected because the engine stopped, or not yet selected: the next start selects it. */
  givenBack?: true;
}

/**
 * Creates our engine's context, and selects it if that overrides nothing: `config.json` selects `default`, nothing or a context that does not exist,
 * and no system engine responds there. A selection that a user made after ours stays. Restores a selection that `releaseContext` undid, unless
 * another context is selected by now. Never throws.
 */
export async function provideContext(
  endpoint: string,
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  const meta = metaFile(targets);
  const config = join(targets.dockerConfig, 'config.json');
  const name = targets.identity.dockerContext;
  let ours: ContextRecord | undefined;
  let verb: 'makes' | 'updates' = 'updates';
  const created = await outcomeOf({ part: 'docker-context', file: meta }, async () => {
    const before = await readRecord(targets);
    if (before === 'foreign') return { left: `rdctl did not create the context ${name}` };
    ours = { ...before, endpoint };
    if (!before) verb = 'makes';
    await writeRecord(ours, targets, context, verb);
    return 'managed';
  });
  if (created.state !== 'managed' || !ours) return [created];
  const record: ContextRecord = ours;
  const selected = await outcomeOf({ part: 'docker-context', file: config }, async () => {
    const text = await textOf(config);
    const current = currentContext(text);
    const { givenBack, ...settled } = record;
    const { selection } = settled;
    // While a nonexistent context is selected, every docker command fails.
    const isNothing = current !== name && current !== 'default' && !(await isThere(metaFile(targets, current)));
    if (current !== 'default' && !isNothing) {
      // A selection made meanwhile takes precedence from now on.
      if (givenBack) await writeRecord(settled, targets, context);
      return current === name ? 'managed' : { left: `the context ${current} is selected there` };
    }
    if (selection && !givenBack && !isNothing) return { left: `default was selected again after ${name}` };
    const chosen = selection?.how === 'chosen' ? selection : undefined;
    if (!chosen && (await acceptsConnections({ path: targets.systemSocket }))) {
      return {
        left: `default is an engine that answers at ${targets.systemSocket}; \`docker context use ${name}\` selects ours`,
      };
    }
    let undo = chosen ?? select(text, name).selection;
    // Written before the selection: otherwise, a service that is killed in between would mistake our selection for the user's.
    await writeRecord({ ...settled, selection: undo, givenBack: true }, targets, context);
    const change = (now: string | undefined) => {
      const next = select(now, name);
      undo = chosen ?? next.selection;
      return next.text;
    };
    const what = `selects docker context ${name}`;
    await editUserFile(config, change, { ...options(targets, context), mode: 0o600, what });
    await writeRecord({ ...settled, selection: undo }, targets, context, verb);
    return 'managed';
  });
  return [created, selected];
}

/**
 * Undoes our selection because the engine has stopped: a selected context without its engine would hide a system engine. The context itself
 * stays. Never throws.
 */
export async function releaseContext(
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  const config = join(targets.dockerConfig, 'config.json');
  const name = targets.identity.dockerContext;
  const record = await readRecord(targets).catch(() => undefined);
  if (record === 'foreign' || !record) return [];
  const ours = async () =>
    !(await isFreeOf(config, `"${name}"`, context)) && currentContext(await textOf(config)) === name;
  const selection = record.selection ?? { how: 'chosen' };
  const noted = await outcomeOf({ part: 'docker-context', file: metaFile(targets) }, async () => {
    if (await ours().catch(() => false)) await writeRecord({ ...record, selection, givenBack: true }, targets, context);
    return 'managed';
  });
  const released = await outcomeOf({ part: 'docker-context', file: config }, async () => {
    if ((await mayBeAside(config, record)) || (await ours())) await deselectOurs(config, selection, targets, context);
    return 'clean';
  });
  return [noted, released];
}

/** Removes the context, and the selection if it is still ours. Never throws. */
export async function withdrawContext(
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  const meta = metaFile(targets);
  const config = join(targets.dockerConfig, 'config.json');
  const name = targets.identity.dockerContext;
  const record = await readRecord(targets).catch(() => undefined);
  if (record === 'foreign') return [];
  const outcomes: IntegrationOutcome[] = [];
  if ((await textOf(config).catch(() => '')) === undefined) await removeDrafts(config, context);
  else {
    const deselected = await outcomeOf({ part: 'docker-context', file: config }, async () => {
      // The file may come back, and while a missing context is selected, every docker command fails.
      const free = !(await mayBeAside(config, record)) && (await isFreeOf(config, `"${name}"`, context));
      if (!free) await deselectOurs(config, record?.selection ?? { how: 'inserted' }, targets, context);
      return 'clean';
    });
    outcomes.push(deselected);
    // Docker fails while a missing context is selected, so the context stays.
    if (deselected.state === 'failed') return outcomes;
  }
  const removed = await outcomeOf({ part: 'docker-context', file: meta }, async () => {
    const what = `removes docker context ${name}`;
    const edit = options(targets, context);
    await editUserFile(meta, () => undefined, { ...edit, what });
    // Empty directories may remain from a service that was killed right after removing the file.
    if (!context.dryRun) await removeEmptyDirectories(meta, edit.within);
    return 'clean';
  });
  return [...outcomes, removed];
}

/**
 * Whether something else stands in place of the file in which we selected our context. A selection that was given back counts, because that is
 * recorded before it is done.
 */
async function mayBeAside(config: string, record: ContextRecord | undefined): Promise<boolean> {
  if (record?.selection === undefined) return false;
  return stat(config).then(
    (facts) => !facts.isFile(),
    () => false,
  );
}

/** Undoes the selection unless another context is selected by now. */
async function deselectOurs(
  config: string,
  selection: Selection,
  targets: IntegrationTargets,
  context: EditContext,
): Promise<void> {
  const name = targets.identity.dockerContext;
  const change = (text: string | undefined) =>
    text === undefined || currentContext(text) !== name ? text : deselect(text, selection);
  await editUserFile(config, change, { ...options(targets, context), what: 'selects docker context default' });
}

/** Returns the endpoint of our existing context. */
export async function contextEndpoint(targets: IntegrationTargets): Promise<string | undefined> {
  const record = await readRecord(targets).catch(() => undefined);
  return record === 'foreign' ? undefined : record?.endpoint;
}

/** Returns the metadata file of a context. Docker names its directory after the digest of the context's name. */
function metaFile({ dockerConfig, identity }: IntegrationTargets, context: string = identity.dockerContext): string {
  const digest = createHash('sha256').update(context).digest('hex');
  return join(dockerConfig, 'contexts', 'meta', digest, 'meta.json');
}

/** Reads our record; returns `foreign` for a context of that name without our mark. In drop-in mode the name is ours in any case. */
async function readRecord(targets: IntegrationTargets): Promise<ContextRecord | 'foreign' | undefined> {
  const text = await textOf(metaFile(targets));
  if (text === undefined) return undefined;
  const value = parseJson(text);
  const mark = isObject(value) && isObject(value.Metadata) ? value.Metadata[PRODUCT.name] : undefined;
  if (!isObject(mark)) {
    return targets.identity.dockerContext === PRODUCT.name ? 'foreign' : endpointOf(value);
  }
  const selection = selectionFrom(mark.selection);
  return {
    ...endpointOf(value),
    ...(selection ? { selection } : {}),
    ...(mark.givenBack === true ? { givenBack: true } : {}),
  };
}

function endpointOf(document: unknown): { endpoint?: string } {
  const endpoints = isObject(document) ? document.Endpoints : undefined;
  const docker = isObject(endpoints) ? endpoints.docker : undefined;
  return isObject(docker) && typeof docker.Host === 'string' ? { endpoint: docker.Host } : {};
}

async function writeRecord(
  record: ContextRecord,
  targets: IntegrationTargets,
  context: EditContext,
  verb: 'makes' | 'updates' = 'updates',
): Promise<void> {
  const { endpoint, ...mark } = record;
  const document = {
    Name: targets.identity.dockerContext,
    Metadata: { Description: `The moby engine of ${PRODUCT.name}`, [PRODUCT.name]: mark },
    Endpoints: { docker: { Host: endpoint, SkipTLSVerify: false } },
  };
  const text = Buffer.from(JSON.stringify(document), 'utf8').toString('latin1');
  const what = `${verb} docker context ${targets.identity.dockerContext}`;
  await editUserFile(metaFile(targets), () => text, { ...options(targets, context), mode: 0o644, what });
}

function options({ home, dockerConfig }: IntegrationTargets, context: EditContext) {
  return { within: [home, dockerConfig], ...context };
}

/** Reads a text file through links, which users have who keep their files elsewhere. */
async function textOf(file: string): Promise<string | undefined> {
  return readIfThere(file, { follow: true });
}
