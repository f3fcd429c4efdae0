import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { RdError } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import { fullName, parseReference, splitTag } from '../../settings/image-reference.ts';
import type { ImageStore, OpenImage } from '../driver.ts';
import { askMoby, callMoby, mobyRefusal, textOf } from './moby-http.ts';

/** A pull reports progress at least this often, or it hangs. */
const PULL_SILENCE_MS = 180_000;
/** Label of the never-started containers created to read an image; the value identifies their owner. */
const READER = `${PRODUCT.name}.image-reader`;
const OWNER_ID = randomUUID();

/** Images of the dockerd at the socket. Image files are read through a container that never runs. */
export function mobyImages(socket: () => Promise<string>): ImageStore {
  const inspect = async (reference: string, signal: AbortSignal) =>
    askMoby(await socket(), { method: 'GET', path: `/images/${reference}/json` }, signal);

  return {
    has: async (reference, signal) => (await inspect(reference, signal)) !== undefined,
    async pull(reference, signal) {
      const { name, tag = 'latest' } = splitTag(reference);
      const query = new URLSearchParams({ fromImage: name, tag });
      const call = { method: 'POST', path: `/images/create?${query}`, silenceMs: PULL_SILENCE_MS } as const;
      const answer = await callMoby(await socket(), call, signal);
      if (answer.statusCode !== 200) throw mobyRefusal(answer.statusCode ?? 0, await textOf(answer));
      for await (const line of createInterface({ input: answer })) {
        const failure = failureIn(line);
        if (failure !== undefined) throw pullFailure(reference, failure);
      }
      if (signal.aborted) throw new RdError('ERR_CANCELLED', `the pull of ${reference} was cancelled`);
    },
    async tags(name, signal) {
      const list = await askMoby(await socket(), { method: 'GET', path: '/images/json' }, signal);
      const references = Array.isArray(list)
        ? list.flatMap((image) => (isObject(image) ? textsOf(image.RepoTags) : []))
        : [];
      return references.flatMap((text) => {
        const found = parseReference(text);
        return found?.tag !== undefined && fullName(found) === name ? [found.tag] : [];
      });
    },
    async open(reference, signal, look) {
      const at = await socket();
      const image = await inspect(reference, signal);
      if (!isObject(image)) throw new RdError('ERR_NOT_FOUND', `moby has no image ${reference}`);
      await removeStrays(at, signal);
      const container = await makeReader(at, reference, signal);
      try {
        return await look({ labels: labelsOf(image), archive: (path) => archiveOf(at, container, path, signal) });
      } finally {
        // Also after a cancellation.
        await removeReader(at, container, AbortSignal.timeout(20_000)).catch(() => undefined);
      }
    },
  };
}

async function makeReader(socket: string, image: string, signal: AbortSignal): Promise<string> {
  // A container of an image without a command needs an explicit one.
  const body = { Image: image, Cmd: ['none'], NetworkDisabled: true, Labels: { [READER]: OWNER_ID } };
  const made = await askMoby(socket, { method: 'POST', path: '/containers/create', body }, signal);
  if (isObject(made) && typeof made.Id === 'string') return made.Id;
  throw new RdError('ERR_NOT_FOUND', `moby no longer has the image ${image}`);
}

/** Containers that a killed service left. */
async function removeStrays(socket: string, signal: AbortSignal): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [READER] }));
  const list = await askMoby(socket, { method: 'GET', path: `/containers/json?all=1&filters=${filters}` }, signal);
  for (const container of Array.isArray(list) ? list.filter(isObject) : []) {
    const { Id, Labels } = container;
    if (typeof Id === 'string' && isObject(Labels) && Labels[READER] !== OWNER_ID)
      await removeReader(socket, Id, signal);
  }
}

async function removeReader(socket: string, id: string, signal: AbortSignal): Promise<void> {
  await askMoby(socket, { method: 'DELETE', path: `/containers/${id}?force=1&v=1` }, signal);
}

/** dockerd resolves links within the container, the last one only for the path that it leads to. */
async function archiveOf(
  socket: string,
  container: string,
  path: string,
  signal: AbortSignal,
): ReturnType<OpenImage['archive']> {
  const at = (inside: string) => `/containers/${container}/archive?path=${encodeURIComponent(inside)}`;
  const head = await callMoby(socket, { method: 'HEAD', path: at(path) }, signal);
  head.resume();
  if (head.statusCode === 404) return undefined;
  const target = linkTarget(head.headers['x-docker-container-path-stat']);
  const answer = await callMoby(socket, { method: 'GET', path: at(target ?? path) }, signal);
  if (answer.statusCode === 200) return answer;
  const text = await textOf(answer);
  const refusal = mobyRefusal(answer.statusCode ?? 0, text);
  // A path below a file is a server error of dockerd.
  if (answer.statusCode === 404 || /not a directory/.test(refusal.message)) return undefined;
  throw refusal;
}

function linkTarget(header: string | string[] | undefined): string | undefined {
  const stat: unknown = JSON.parse(Buffer.from(String(header ?? 'e30='), 'base64').toString('utf8'));
  const target = isObject(stat) ? stat.linkTarget : undefined;
  return typeof target === 'string' && target !== '' ? target : undefined;
}

function labelsOf(image: JsonObject): Record<string, string> {
  const labels = isObject(image.Config) ? image.Config.Labels : undefined;
  if (!isObject(labels)) return {};
  return Object.fromEntries(
    Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The error in a line of a response that began with status 200. */
export function failureIn(line: string): string | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) && typeof value.error === 'string' ? value.error : undefined;
  } catch {
    return undefined;
  }
}

function pullFailure(reference: string, why: string): RdError {
  const code = /manifest unknown|not found/i.test(why)
    ? 'ERR_NOT_FOUND'
    : /denied|forbidden/i.test(why)
      ? 'ERR_FORBIDDEN'
      : 'ERR_DRIVER_FAILED';
  return new RdError(code, `moby could not pull ${reference}: ${why}`);
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
